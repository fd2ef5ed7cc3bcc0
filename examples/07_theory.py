"""What the theory promises, and what hashing really does.

python examples/07_theory.py [pairs]
"""

import math
import sys

import numpy as np

import lser
from lser import theory

pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
rng = np.random.default_rng(0)
dim, bits = 16, 4

# Two observations at an angle share a SimHash code with probability (1 - angle/π)^bits.
print(f"angle   theory   measured over {pairs:,} pairs, {bits} bits")
for degrees in (5, 15, 30, 60, 90):
    angle, hits = math.radians(degrees), 0
    for seed in range(20):  # a memory draws its hyperplanes once: average over memories
        one, other = rng.normal(size=(2, max(1, pairs // 20), dim))
        one /= np.linalg.norm(one, axis=1, keepdims=True)
        other -= (other * one).sum(axis=1, keepdims=True) * one  # now at a right angle
        other /= np.linalg.norm(other, axis=1, keepdims=True)
        turned = math.cos(angle) * one + math.sin(angle) * other
        encoder = lser.SimHash(dim, bits=bits, seed=seed)
        first, second = (encoder.encode(rows.astype(np.float32)) for rows in (one, turned))
        hits += int((first == second).sum())
    share = hits / (20 * max(1, pairs // 20))
    print(f"{degrees:4}°   {theory.simhash_collision(angle, bits):6.3f}   {share:8.3f}")

# Lemma 1 bounds what an error in the distance does; its printed lower bound is too high.
print("\nLemma 1 at distance 2, cells 4 wide, error .3")
worst = theory.e2lsh_collision(2.3, 4.0), theory.e2lsh_collision(1.7, 4.0)
print(f"  the collision probability really lies between {worst[0]:.3f} and {worst[1]:.3f}")
for form in ("printed", "corrected", "sharp"):
    low, high = theory.lemma_1(2.0, 4.0, 0.3, form=form)
    print(f"  {form:10} {low:.3f} to {high:.3f}")

# What to expect of LSER's single table: similar users often differ in one of ten bits.
print("\nTen bits, users 20 degrees apart, 100,000 stored in 30 dimensions")
for row in theory.expectations(10, angle=math.radians(20), stored=100_000, dim=30):
    print(f"  {row.quantity:16} {row.value:10,.3f}  {row.meaning}")

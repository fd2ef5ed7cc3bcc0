"""Random numbers inside compiled code: SplitMix64, whose whole state is one word.

Steele, Lea and Flood (2014), "Fast splittable pseudorandom number generators". `state` is a uint64
array (1,).
"""

import numpy as np

from lser.compiled import Num, UInt64, kernel
from lser.types import Int64


@kernel
def next_bits(state: UInt64) -> Num:
    """The next 64 random bits."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def below(state: UInt64, n: Num) -> Num:
    """A uniform integer in [0, n), n < 2**32 (Lemire 2019: exact, by rejection)."""
    bound, low = np.uint64(n), np.uint64(0xFFFFFFFF)
    product = (next_bits(state) >> np.uint64(32)) * bound
    if (product & low) < bound:
        threshold = (np.uint64(1) << np.uint64(32)) % bound
        while (product & low) < threshold:
            product = (next_bits(state) >> np.uint64(32)) * bound
    return np.int64(product >> np.uint64(32))


@kernel
def unit(state: UInt64) -> Num:
    """A uniform number in [0, 1)."""
    return np.float64(next_bits(state) >> np.uint64(11)) * 2.0**-53


@kernel
def distinct(state: UInt64, n: Num, picks: Int64) -> Num:
    """Draw distinct integers below n into `picks`; returns how many, all n where it holds more.

    Floyd's algorithm, or a shuffle where all are taken.
    """
    count = len(picks)
    if n <= count:
        for k in range(n):
            other = below(state, k + 1)
            picks[k] = picks[other]
            picks[other] = k
        return n
    size = 4
    while size < 2 * count:
        size *= 2
    seen = np.full(size, -1, np.int64)
    for k in range(count):
        top = n - count + k
        pick = below(state, top + 1)
        for value in (pick, top):  # `top` is new for sure, so it stands in for a repeated pick
            at = (value * 0x9E3779B1) & (size - 1)
            while seen[at] != -1 and seen[at] != value:
                at = (at + 1) & (size - 1)
            if seen[at] == -1:
                seen[at] = value
                picks[k] = value
                break
    return count

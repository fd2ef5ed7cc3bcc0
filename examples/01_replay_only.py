"""LSER as a memory for a loop of your own: NumPy in, NumPy out, no agent needed.

python examples/01_replay_only.py [steps]
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import gymnasium as gym
import numpy as np

import lser

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000

# A marketplace where 2 % of what is shown at random gets clicked, and 64 users visiting it.
env = gym.make_vec("lser/Bazaar-v0", num_envs=64)
env.action_space.seed(0)
observation, _ = env.reset(seed=0)
sizes = (100_000, env.single_observation_space.shape[0], env.single_action_space.shape[0])
locality = lser.LocalityReplay(*sizes, bits=10, greedy=0.9, seed=0)
uniform = lser.UniformReplay(*sizes, seed=0)

# Store what happens, one block of 64 transitions at a time; both memories see the same.
for _ in range(max(1, steps // 64)):
    action = env.action_space.sample()
    following, reward, terminated, truncated, _ = env.step(action)
    for memory in (locality, uniform):
        memory.extend(observation, action, reward, following, terminated, truncated)
    observation = following

# Someone arrives. What should we learn from while we serve them?
query = observation[0]
for name, memory in (("LSER", locality), ("uniform", uniform)):
    likeness, clicks = [], []
    for _ in range(200):
        batch = memory.sample(32, query=query)
        norms = np.linalg.norm(batch.observation, axis=1) * np.linalg.norm(query)
        likeness.append((batch.observation @ query / norms).mean())
        clicks.append(batch.reward.mean())
    print(f"{name:8} cosine to the query {np.mean(likeness):.2f}, clicks {np.mean(clicks):.2f}")

# A memory saved and loaded continues with exactly the same next batch.
with TemporaryDirectory() as folder:
    locality.save(Path(folder) / "memory.lser")
    again = lser.load_replay(Path(folder) / "memory.lser")
same = np.array_equal(locality.sample(32, query=query).ids, again.sample(32, query=query).ids)
print(f"{len(again):,} transitions in {locality.stats()['occupied_codes']:.0f} codes; same: {same}")

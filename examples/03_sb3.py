"""LSER inside Stable-Baselines3: one argument more than you already pass.

pip install -e '.[sb3]'; python examples/03_sb3.py [steps]
"""

import sys

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import DDPG
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.noise import NormalActionNoise

import lser  # noqa: F401  registers the simulators
from lser.adapters.sb3 import MemoryReplayBuffer, QueryCallback

torch.set_num_threads(1)
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000

# A small shop: 200 items, pages of five, and what suits one user does not suit the next.
dials = {"items": 200, "slate": 5, "features": 4, "demographics": (2, 4), "sparsity": 0.05}
env = gym.make("lser/Bazaar-v0", **dials)
shape = env.action_space.shape
model = DDPG(
    "MlpPolicy",
    env,
    learning_starts=100,
    batch_size=64,
    gamma=0.9,
    buffer_size=100_000,
    policy_kwargs={"net_arch": [64, 64]},
    action_noise=NormalActionNoise(np.zeros(shape), np.full(shape, 0.3)),
    replay_buffer_class=MemoryReplayBuffer,
    replay_buffer_kwargs={"memory": "lser-steady", "bits": 6, "greedy": 0.5},
    seed=0,
)

# The callback makes the memory ask about the user who is being served, also when one just left.
visitors = Monitor(gym.make("lser/Bazaar-v0", **dials))
before, _ = evaluate_policy(model, visitors, n_eval_episodes=100)
model.learn(steps, callback=QueryCallback())
after, _ = evaluate_policy(model, visitors, n_eval_episodes=100)
print(f"clicks per session: {before:.2f} before, {after:.2f} after {steps:,} pages")
for key, value in model.replay_buffer.memory.stats().items():
    print(f"  {key:20} {value:,.2f}")

"""Small environments and buffers for the tests of Stable-Baselines3's adapter."""

from functools import partial

import gymnasium as gym
import numpy as np
from counting import Counting
from gymnasium import spaces
from small_shop import DIALS
from stable_baselines3.common.vec_env import DummyVecEnv

from lser.adapters.sb3 import MemoryReplayBuffer

BOX, ACTION = Counting.observation_space, Counting.action_space


class Wares(gym.Env):
    """A Dict of numbers and categories."""

    observation_space = spaces.Dict(
        {
            "taste": spaces.Box(-5, 5, (2, 2), np.float32),
            "shelf": spaces.Discrete(4),
            "flags": spaces.MultiBinary(2),
            "kinds": spaces.MultiDiscrete([3, 2]),
        }
    )
    action_space = ACTION

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.t = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.t += 1
        return self.observation_space.sample(), float(self.t), self.t == 5, False, {}


def fill(buffer, steps=20, n=1, seed=0):
    """Random vector steps into `buffer`; returns them stacked, one row per transition."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(steps):
        obs, after = rng.normal(size=(2, n, 3)).astype(np.float32)
        action = rng.uniform(-1, 1, (n, 2)).astype(np.float32)
        reward = rng.normal(size=n).astype(np.float32)
        done = rng.random(n) < 0.3
        infos = [{"TimeLimit.truncated": bool(cut)} for cut in rng.random(n) < 0.5]
        buffer.add(obs, after, action, reward, done, infos)
        cut = np.array([info["TimeLimit.truncated"] for info in infos])
        rows.append(np.hstack([obs, action, after, (done & ~cut)[:, None], reward[:, None]]))
    return np.vstack(rows)


def stacked(samples):
    return np.hstack([part.numpy() for part in samples[:5]])


def model_of(algorithm, env, buffer=MemoryReplayBuffer, **knobs):
    return algorithm(
        "MultiInputPolicy" if isinstance(env.observation_space, spaces.Dict) else "MlpPolicy",
        env,
        buffer_size=1000,
        learning_starts=20,
        batch_size=16,
        policy_kwargs={"net_arch": [16, 16]},
        replay_buffer_class=buffer,
        replay_buffer_kwargs=knobs,
        seed=3,
    )


def bazaar(n=1, **dials):
    return DummyVecEnv([partial(gym.make, "lser/Bazaar-v0", **DIALS, **dials)] * n)

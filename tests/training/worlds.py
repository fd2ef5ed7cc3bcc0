"""A hand-made world in which every observation says who and when it is."""

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv


class Counting(gym.Env):
    """User k's page t is observed as (k, t); a session ends after `length` pages."""

    observation_space = gym.spaces.Box(-1e6, 1e6, (2,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, first: int, length: int, truncates: bool = False) -> None:
        self.user = first - 1
        self.length = length
        self.truncates = truncates

    def _observation(self):
        return np.array([self.user, self.page], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.user += 1
        self.page = 0
        return self._observation(), {}

    def step(self, action):
        self.page += 1
        over = self.page == self.length
        reward = float(self.user + self.page / 10)
        return self._observation(), reward, over and not self.truncates, over and self.truncates, {}


def counting(mode: AutoresetMode, truncates: bool = False) -> SyncVectorEnv:
    """Two streams: users 0, 1, 2, ... with two pages each, users 100, 101, ... with three."""
    makers = [lambda: Counting(0, 2, truncates), lambda: Counting(100, 3, truncates)]
    return SyncVectorEnv(makers, autoreset_mode=mode)

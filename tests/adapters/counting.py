"""An environment whose every number is known, and what memories libraries with rows refuse."""

import gymnasium as gym
import numpy as np

WIDTH = 3
NEEDS_ROWS = [  # memory, knobs, and the reason that is told
    ("aer", {}, "needs rows of its own"),
    ("der", {}, "needs rows of its own"),
    ("der-uniform", {}, "needs rows of its own"),
    ("her", {}, "goals need rows"),
    ("ser", {"strategy": "coverage"}, "strategy='coverage' needs rows"),
]


class Counting(gym.Env):
    """Observation base + t / 10 after t steps; ends after `last` steps, cut off after `limit`."""

    observation_space = gym.spaces.Box(-10, 10, (WIDTH,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, last=100, limit=100, base=0):
        self.last, self.limit, self.base, self.t = last, limit, base, 0

    def observe(self):
        return np.full(WIDTH, self.base + self.t / 10, np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observe(), {}

    def step(self, action):
        self.t += 1
        info = {"t": self.t}
        return self.observe(), float(self.t), self.t == self.last, self.t == self.limit, info

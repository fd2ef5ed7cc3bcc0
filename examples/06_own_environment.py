"""Bring your own environment and your own logged sessions.

python examples/06_own_environment.py [steps]
"""

import sys

import gymnasium as gym
import numpy as np

import lser

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 6_000


class NewsDesk(gym.Env):
    """A reader has a taste we can see; a headline pleases if it points the same way."""

    observation_space = action_space = gym.spaces.Box(-1, 1, (4,), np.float32)

    def reset(self, *, seed=None, options=None):
        """Another reader opens the paper."""
        super().reset(seed=seed, options=options)
        self.taste = self.np_random.uniform(-1, 1, 4).astype(np.float32)
        return self.taste, {}

    def step(self, action):
        """Show a headline; only the reader's leaving terminates."""
        read = action @ self.taste + self.np_random.normal(0, 0.2) > 0.5
        return self.taste, float(read), bool(self.np_random.random() < 0.2), False, {}


# Yesterday's log, however it is kept, as arrays with one row per page: here, random headlines.
rng = np.random.default_rng(0)
taste, shown = rng.uniform(-1, 1, (2, 2_000, 4)).astype(np.float32)
read = ((taste * shown).sum(axis=1) > 0.5).astype(np.float32)
left = rng.random(2_000) < 0.2
steady = {"greedy": 0.5, "greedy_per": "item", "random_from": "memory", "newest": 8}
replay = lser.LocalityReplay(20_000, 4, 4, bits=6, **steady, seed=0)  # as `lser-steady` has it
replay.extend(taste, shown, read, taste, left, np.zeros(2_000, bool))
# Today's readers: the agent learns from the log and from what they do.
desk, judges = (gym.vector.SyncVectorEnv([NewsDesk] * count) for count in (8, 50))
knobs = {"actor_lr": 1e-3, "tau": 0.01, "discount": 0.5, "value_bound": "auto"}
agent = lser.DDPG(4, desk.single_action_space, **knobs, seed=0)
before = lser.evaluate(agent, judges, sessions=200, seed=9).metric
for step in lser.train(desk, agent, replay, horizon="session"):
    if step.steps >= steps:
        break
after = lser.evaluate(agent, judges, sessions=200, seed=9).metric
print(f"read before: {before:.2f} a page, after: {after:.2f}")

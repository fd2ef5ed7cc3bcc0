"""Vector environments whose observations end in numbers that the environment does not show."""

from abc import ABC, abstractmethod
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike

from lser.types import Bool, Float32


class AppendedEnv(VectorWrapper, ABC):  # not subscripted: Gymnasium 1.1 has no parameters here
    """Appends `shown()`, within `low` and `high`, to every observation.

    The last observation of a session ends in `parting()`.
    """

    def __init__(self, env: VectorEnv[Float32, Any, Any], low: ArrayLike, high: ArrayLike) -> None:
        super().__init__(env)
        if env.metadata.get("autoreset_mode") is not AutoresetMode.SAME_STEP:
            name = type(self).__name__
            raise ValueError(f"{name} needs an environment that autoresets in the same step")
        space = env.single_observation_space
        if not isinstance(space, gym.spaces.Box):
            raise ValueError(f"observations must be vectors in a Box, got {space}")
        bounds = np.append(space.low, low), np.append(space.high, high)
        least, most = (one.astype(np.float32) for one in bounds)
        self.single_observation_space = gym.spaces.Box(least, most)
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)

    @abstractmethod
    def shown(self) -> Float32:
        """What the observations of all users end in now, (N, k)."""

    @abstractmethod
    def parting(self) -> Float32:
        """What the last observations end in of sessions that have just ended, (N, k)."""

    def begin(self, seed: int | None) -> None:
        """All sessions start; here nothing has to be drawn."""
        del seed

    def renew(self, done: Bool) -> None:
        """The sessions of `done` (N,) start; here nothing has to be drawn."""
        del done

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32, dict[str, Any]]:
        """Start sessions."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.begin(seed)
        return np.hstack([observation, self.shown()]), info

    def step(self, actions: Any) -> tuple[Float32, Any, Any, Any, dict[str, Any]]:
        """One page."""
        observation, reward, terminated, truncated, info = self.env.step(actions)
        done = terminated | truncated
        if done.any():
            info["final_obs"] = np.hstack([info["final_obs"], self.parting()])
            self.renew(done)
        return np.hstack([observation, self.shown()]), reward, terminated, truncated, info

"""Sight for the oracle: a vector environment whose observations end in the best action known."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space

from lser.types import Float32


class SightedEnv(VectorWrapper):  # not subscripted: Gymnasium 1.1 has no parameters here
    """Appends to every observation what the environment's own `best_action()` says.

    After a session's last page nobody is there to act on: its last observation ends in the middle
    of the actions' bounds.
    """

    def __init__(self, env: VectorEnv[Float32, Any, Any]) -> None:
        super().__init__(env)
        if not hasattr(env.unwrapped, "best_action"):
            raise ValueError(f"no oracle is known for {env.unwrapped}: it has no best_action()")
        if env.metadata.get("autoreset_mode") is not AutoresetMode.SAME_STEP:
            raise ValueError("SightedEnv needs an environment that autoresets in the same step")
        seen, action = env.single_observation_space, env.single_action_space
        if not isinstance(seen, gym.spaces.Box) or not isinstance(action, gym.spaces.Box):
            raise ValueError(f"the oracle acts in a Box, got {action} and observations in {seen}")
        self._nobody = ((action.low + action.high) / 2).astype(np.float32)
        bounds = np.append(seen.low, action.low), np.append(seen.high, action.high)
        low, high = (one.astype(np.float32) for one in bounds)
        self.single_observation_space = gym.spaces.Box(low, high)
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)

    def _sighted(self, observation: Float32) -> Float32:
        best = np.asarray(self.env.unwrapped.best_action(), np.float32)  # type: ignore[attr-defined]
        return np.hstack([observation, best])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32, dict[str, Any]]:
        """Start sessions."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._sighted(observation), info

    def step(self, actions: Any) -> tuple[Float32, Any, Any, Any, dict[str, Any]]:
        """One page."""
        observation, reward, terminated, truncated, info = self.env.step(actions)
        if "final_obs" in info:
            nobody = np.broadcast_to(self._nobody, (self.num_envs, self._nobody.size))
            info["final_obs"] = np.hstack([info["final_obs"], nobody])
        return self._sighted(observation), reward, terminated, truncated, info

    def state_dict(self) -> dict[str, Any]:
        """The environment's state: sight has none of its own."""
        state: dict[str, Any] = self.env.state_dict()  # type: ignore[attr-defined]  # ours have it
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict()`."""
        self.env.load_state_dict(state)  # type: ignore[attr-defined]  # ours have it

"""Sight for the oracle: a vector environment whose observations end in the best action known."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv

from lser.training.appended import AppendedEnv
from lser.types import Float32


class SightedEnv(AppendedEnv):
    """Appends to every observation what the environment's own `best_action()` says.

    After a session's last page nobody is there to act on: its last observation ends in the middle
    of the actions' bounds.
    """

    def __init__(self, env: VectorEnv[Float32, Any, Any]) -> None:
        if not hasattr(env.unwrapped, "best_action"):
            raise ValueError(f"no oracle is known for {env.unwrapped}: it has no best_action()")
        action = env.single_action_space
        if not isinstance(action, gym.spaces.Box):
            raise ValueError(f"the oracle acts in a Box, got {action}")
        super().__init__(env, action.low, action.high)
        middle = ((action.low + action.high) / 2).astype(np.float32)
        self._nobody = np.broadcast_to(middle, (env.num_envs, middle.size))

    def shown(self) -> Float32:
        """The best action for every user."""
        found = self.env.unwrapped.best_action()  # type: ignore[attr-defined]  # asked for above
        best = np.asarray(found, np.float32)
        if best.shape != self._nobody.shape or not np.isfinite(best).all():
            raise ValueError(
                f"best_action() must be finite numbers of shape {self._nobody.shape}, got {found!r}"
            )
        return best

    def parting(self) -> Float32:
        """The middle of the bounds."""
        return self._nobody

    def state_dict(self) -> dict[str, Any]:
        """The environment's state: sight has none of its own."""
        state: dict[str, Any] = self.env.state_dict()  # type: ignore[attr-defined]  # ours have it
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict()`."""
        self.env.load_state_dict(state)  # type: ignore[attr-defined]  # ours have it

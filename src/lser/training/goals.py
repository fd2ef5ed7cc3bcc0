"""Goals for hindsight replay: a vector environment whose observations end in the goal aimed at."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from lser.training.appended import AppendedEnv
from lser.types import Bool, Float32


class GoalEnv(AppendedEnv):
    """Appends a goal, scaled by the highest one, to every observation.

    A goal is a reward to reach on a page. Training draws one per session; evaluation
    (`highest=True`) always aims at the highest. Rewards stay the environment's own: the memory
    turns them into successes when it replays.
    """

    def __init__(
        self,
        env: VectorEnv[Float32, Any, Any],
        goals: Sequence[float],
        *,
        highest: bool = False,
    ) -> None:
        levels = np.sort(np.asarray(goals, np.float64))
        if levels.size == 0 or not levels[-1] > 0:
            raise ValueError(f"goals must hold a positive reward, got {goals!r}")
        self.levels = (levels * (1 / levels[-1])).astype(np.float32)  # as the memory scales them
        super().__init__(env, self.levels[0], 1.0)
        self.highest = highest
        self.current = np.full(env.num_envs, self.levels[-1])
        self._draws = np.random.default_rng()

    def shown(self) -> Float32:
        """The goals of all sessions."""
        return self.current[:, None]

    def parting(self) -> Float32:
        """A session ends with the goal it had."""
        return self.current[:, None]

    def begin(self, seed: int | None) -> None:
        """Fresh goals for everybody."""
        if seed is not None:
            self._draws = np.random.default_rng([seed, 1])  # apart from the users' own draws
        self.current = self._draw(self.num_envs)

    def renew(self, done: Bool) -> None:
        """A newcomer gets a goal of its own."""
        self.current = np.where(done, self._draw(self.num_envs), self.current)

    def _draw(self, count: int) -> Float32:
        if self.highest:
            return np.full(count, self.levels[-1])
        drawn: Float32 = self.levels[self._draws.integers(self.levels.size, size=count)]
        return drawn

    def state_dict(self) -> dict[str, Any]:
        """The environment's state, the goals and their rng."""
        return {
            "env": self.env.state_dict(),  # type: ignore[attr-defined]  # ours have it
            "goals": self.current.copy(),
            "rng": self._draws.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict()`."""
        self.env.load_state_dict(state["env"])  # type: ignore[attr-defined]  # ours have it
        self.current = np.array(state["goals"], np.float32)
        self._draws.bit_generator.state = state["rng"]

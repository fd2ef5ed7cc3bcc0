"""Goals for hindsight replay: a vector environment whose observations end in the goal aimed at."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space

from lser.types import Float32


class GoalEnv(VectorWrapper):  # not subscripted: Gymnasium 1.1 has no parameters here
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
        super().__init__(env)
        if env.metadata.get("autoreset_mode") is not AutoresetMode.SAME_STEP:
            raise ValueError("GoalEnv needs an environment that autoresets in the same step")
        levels = np.sort(np.asarray(goals, np.float64))
        if levels.size == 0 or not levels[-1] > 0:
            raise ValueError(f"goals must hold a positive reward, got {goals!r}")
        self.shown = (levels * (1 / levels[-1])).astype(np.float32)  # as the memory scales them
        self.highest = highest
        space = env.single_observation_space
        assert isinstance(space, gym.spaces.Box)
        low = np.append(space.low, self.shown[0])
        high = np.append(space.high, 1.0)
        self.single_observation_space = gym.spaces.Box(
            low.astype(np.float32), high.astype(np.float32)
        )
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)
        self.current = np.full(env.num_envs, self.shown[-1])
        self._draws = np.random.default_rng()

    def _draw(self, count: int) -> Float32:
        if self.highest:
            return np.full(count, self.shown[-1])
        drawn: Float32 = self.shown[self._draws.integers(self.shown.size, size=count)]
        return drawn

    def _with_goal(self, observation: Float32) -> Float32:
        return np.hstack([observation, self.current[:, None]])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32, dict[str, Any]]:
        """Start sessions with fresh goals."""
        observation, info = self.env.reset(seed=seed, options=options)
        if seed is not None:
            self._draws = np.random.default_rng([seed, 1])  # apart from the users' own draws
        self.current = self._draw(self.num_envs)
        return self._with_goal(observation), info

    def step(self, actions: Any) -> tuple[Float32, Any, Any, Any, dict[str, Any]]:
        """One page; a newcomer gets a goal of its own."""
        observation, reward, terminated, truncated, info = self.env.step(actions)
        done = terminated | truncated
        if done.any():
            info["final_obs"] = self._with_goal(info["final_obs"])
            self.current = np.where(done, self._draw(self.num_envs), self.current)
        return self._with_goal(observation), reward, terminated, truncated, info

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

"""RecSim's long-term satisfaction: clickbait engages now and wears the user down.

As in recsim 0.2.4 (`long_term_satisfaction`), drawn for many users at once: see
`dynamics` for the formulas and docs/simulators/long_term_satisfaction.md.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lser.simulators.base import Anchor, Info, Lengths, Metric, Outcome, UserEnv, UserVectorEnv
from lser.simulators.recsim.draws import draw_units
from lser.simulators.recsim.long_term_satisfaction.dynamics import (
    Constants,
    advance,
    fill_observation,
    nearest,
    satisfied,
)
from lser.simulators.recsim.long_term_satisfaction.optimum import best_document, expected_returns
from lser.simulators.recsim.long_term_satisfaction.params import (
    Params,
    draw_catalogue,
)
from lser.types import Float32, Float64, Int64

_LOWEST = np.finfo(np.float32).min


@dataclass
class Users:
    """Sessions in progress."""

    exposure: Float64  # (n,) net positive exposure, hidden
    satisfaction: Float64  # (n,) in (0, 1), hidden
    budget: Float64  # (n,) pages left
    memory: Float64  # (n, 3) reckoned exposure, last clickbait, log of the last observed engagement
    clickbait: Float64  # (n, candidates)


class LongTermSatisfaction:
    """Batched dynamics of long-term satisfaction."""

    params_type: ClassVar[type] = Params
    metric: ClassVar[Metric] = Metric("reward_per_step", "engagement", "steps")
    goals: ClassVar[tuple[float, ...]] = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0)  # engagement
    session_length: ClassVar[float] = 60.0
    lengths: ClassVar[Lengths] = Lengths(quick=30, medium=1_000, paper=1_000)
    capacity: ClassVar[int] = 10_000
    medium_updates: ClassVar[float] = 0.25  # sessions are ten times as long as VirtualTaobao's

    def __init__(self, params: Params) -> None:
        self.params = params
        self.constants = Constants(
            **{name: float(getattr(params, name)) for name in Constants._fields}
        )
        self._fixed: Float64 | None = None
        if not params.resample_documents:
            self._fixed = np.array(params.catalogue or draw_catalogue(params))
        reach = 1.0 / (1.0 - params.exposure_memory)
        ceiling = np.log(params.max_engagement)
        self.single_observation_space: gym.Space[Float32] = gym.spaces.Box(
            np.array([-reach, 0, _LOWEST, 0, 0, 0, 0], np.float32),
            np.array([reach, 1, ceiling, 1, 1, 1, 1], np.float32),
        )
        self.single_action_space = self._action_space()

    def _action_space(self) -> gym.Space[Any]:
        p = self.params
        if p.actions == "continuous":
            return gym.spaces.Box(0.0, 1.0, (1,), np.float32)
        if p.actions == "discrete":
            return gym.spaces.Discrete(p.num_candidates)
        empty = np.full(p.slate_size, int(p.short_slates))
        empty[0] = 0  # the user takes the first document, so there has to be one
        return gym.spaces.MultiDiscrete(p.num_candidates + empty, start=-empty)

    def arrive(self, rng: np.random.Generator, n: int) -> Users:
        """Draw `n` new users, alike but for the exposure they come with."""
        p = self.params
        start = rng.random((n, 2))  # exposure, candidates
        exposure = (start[:, 0] - 0.5) * (1 / (1.0 - p.memory_discount))
        users = Users(
            exposure=exposure,
            satisfaction=satisfied(exposure, p.sensitivity),
            budget=np.full(n, float(p.time_budget)),
            memory=np.zeros((n, 3)),
            clickbait=np.empty((n, p.num_candidates)),
        )
        users.memory[:, 1] = 0.5  # neither choc nor kale yet
        if self._fixed is not None:
            users.clickbait[:] = self._fixed
        self._new_candidates(users, start[:, 1])
        return users

    def _new_candidates(self, users: Users, uniform: Float64) -> None:
        if self._fixed is None:
            draw_units(uniform, users.clickbait)

    def observe(self, users: Users) -> Float32:
        """Reckoned exposure, last clickbait and log engagement, time gone, candidates' range."""
        out = np.empty((len(users.budget), 7), np.float32)
        fill_observation(
            users.memory, users.budget, users.clickbait, self.constants.time_budget, out
        )
        return out

    def _slate(self, users: Users, action: NDArray[Any]) -> Int64:
        match self.params.actions:
            case "continuous":
                return nearest(action, users.clickbait, self.params.slate_size)
            case "slate":
                return np.ascontiguousarray(action, np.int64)
            case _:
                return np.ascontiguousarray(action, np.int64)[:, None]

    def step(self, users: Users, action: NDArray[Any], rng: np.random.Generator) -> Outcome:
        """Show one page to every user; new candidates follow."""
        slate = self._slate(users, action)
        n = len(slate)
        response = advance(
            users.exposure,
            users.satisfaction,
            users.budget,
            users.memory,
            users.clickbait,
            slate,
            rng.standard_normal((n, 2)),
            self.constants,
        )
        self._new_candidates(users, rng.random(n))
        ones = np.ones(n, np.int64)
        info: Info = {
            "steps": ones,
            "clicks": ones,
            "shown": (slate >= 0).sum(axis=1)
            if self.params.short_slates
            else ones * slate.shape[1],
            "engagement": response.engagement,
            "observed_engagement": response.observed,
            "clickbait": response.clickbait,
            "satisfaction": users.satisfaction.copy(),
            "exposure": users.exposure.copy(),
            "slate": slate,
        }
        return Outcome(response.reward, response.terminated, info)

    def best_action(self, users: Users) -> Float32:
        """The optimum's actions, by dynamic programming over the hidden exposure."""
        best = best_document(self.params, users.exposure, users.budget, users.clickbait)
        return users.clickbait[np.arange(len(best)), best, None].astype(np.float32)

    def describe(self, users: Users, info: Info | None) -> str:
        """The user, the slate and the engagement in words."""
        lines = [
            f"user with {users.budget[0]:.0f} pages left, satisfaction "
            f"{users.satisfaction[0]:.3f} (net positive exposure {users.exposure[0]:+.2f})"
        ]
        if info is not None:
            rest = "".join(f", document {d}" for d in info["slate"][0, 1:] if d >= 0)
            lines.append(
                f"shown: document {info['slate'][0, 0]} "
                f"(clickbait {info['clickbait'][0]:.2f}){rest}"
            )
            lines.append(f"clicked the first: engagement {info['engagement'][0]:.1f}")
        return "\n".join(lines)

    def anchors(self) -> tuple[Anchor, Anchor]:
        """Reward per step of random documents and of the optimum, by dynamic programming."""
        random, best = expected_returns(self.params)
        steps = int(np.ceil(self.params.time_budget))
        return (
            Anchor("random document", random / steps, "dynamic programming"),
            Anchor("optimum that sees the exposure", best / steps, "dynamic programming"),
        )


class LongTermSatisfactionEnv(UserEnv):
    """One long-term-satisfaction user at a time."""

    simulator_type = LongTermSatisfaction


class LongTermSatisfactionVectorEnv(UserVectorEnv):
    """Many long-term-satisfaction users side by side."""

    simulator_type = LongTermSatisfaction

"""RecSim's interest evolution: videos that shape what a user likes and how long they stay.

As in recsim 0.2.4 (`interest_evolution`), drawn for many users at once: see
`dynamics` for the formulas and docs/simulators/interest_evolution.md.
"""

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lser.simulators.base import Anchor, Info, Lengths, Metric, Outcome, UserEnv, UserVectorEnv
from lser.simulators.recsim.draws import draw_integers, make_keys
from lser.simulators.recsim.interest_evolution.dynamics import (
    Constants,
    advance,
    fill_observation,
    qualities,
    rank,
)
from lser.simulators.recsim.interest_evolution.params import (
    Params,
    draw_catalogue,
)
from lser.types import Float32, Float64, Int64

_LARGEST = float(np.finfo(np.float32).max)


@dataclass
class Users:
    """Sessions in progress."""

    interests: Float64  # (n, C) in [-1, 1]
    budget: Float64  # (n,) time left
    cluster: NDArray[np.int16]  # (n, candidates)
    key: NDArray[np.uint64]  # (n,) what the candidates and their hidden qualities come from
    response: Float64  # (n, 2) the last page's click and the quality of what was clicked
    steps: Int64  # (n,) pages so far


# (num_candidates, slate_size) -> AverageQuality of random and best known, defaults otherwise
_KNOWN = {(20, 3): (-0.597, 2.24), (20, 1): (-0.590, 2.47), (100, 5): (-0.592, 2.76)}


class InterestEvolution:
    """Batched dynamics of interest evolution."""

    params_type: ClassVar[type] = Params
    metric: ClassVar[Metric] = Metric("quality", "quality", "clicks")
    goals: ClassVar[tuple[float, ...]] = (1.0, 2.0, 4.0)  # watch time; a full video is 4
    session_length: ClassVar[float] = 85.0
    lengths: ClassVar[Lengths] = Lengths(quick=30, medium=1_000, paper=1_000)
    capacity: ClassVar[int] = 10_000
    medium_updates: ClassVar[float] = 0.25  # sessions are ten times as long as VirtualTaobao's

    def __init__(self, params: Params) -> None:
        self.params = params
        self.cluster_means = params.cluster_means()
        self.constants = Constants(
            **{name: float(getattr(params, name)) for name in Constants._fields}
        )
        self._fixed_cluster: NDArray[np.int16] | None = None
        self.catalogue_quality: Float64 = np.empty(0)
        if not params.resample_documents:
            catalogue = params.catalogue or draw_catalogue(params)
            self._fixed_cluster = np.array(catalogue.cluster, np.int16)
            self.catalogue_quality = np.array(catalogue.quality, np.float64)
        self.single_observation_space: gym.Space[Float32] = self._observation_space()
        self.single_action_space = self._action_space()
        extras = 2 * params.observe_response + params.observe_step
        self._observation_size = 2 * params.num_clusters + extras

    def _observation_space(self) -> gym.Space[Float32]:
        p = self.params
        low = [-1.0] * p.num_clusters + [0.0] * p.num_clusters
        high = [1.0] * p.num_clusters + [float(p.num_clusters)] * p.num_clusters
        if p.observe_response:
            low, high = [*low, 0.0, -_LARGEST], [*high, 1.0, _LARGEST]
        if p.observe_step:
            low, high = [*low, 0.0], [*high, _LARGEST]
        return gym.spaces.Box(np.array(low, np.float32), np.array(high, np.float32))

    def _action_space(self) -> gym.Space[Any]:
        p = self.params
        if p.actions == "continuous":
            return gym.spaces.Box(-1.0, 1.0, (p.num_clusters,), np.float32)
        if p.actions == "discrete":
            return gym.spaces.Discrete(p.num_candidates)
        empty = int(p.short_slates)
        return gym.spaces.MultiDiscrete(
            [p.num_candidates + empty] * p.slate_size, start=[-empty] * p.slate_size
        )

    def arrive(self, rng: np.random.Generator, n: int) -> Users:
        """Draw `n` new users with uniform interests and a full budget."""
        p = self.params
        users = Users(
            interests=rng.uniform(-1.0, 1.0, (n, p.num_clusters)),
            budget=np.full(n, float(p.time_budget)),
            cluster=np.empty((n, p.num_candidates), np.int16),
            key=np.empty(n, np.uint64),
            response=np.zeros((n, 2)),
            steps=np.zeros(n, np.int64),
        )
        if self._fixed_cluster is not None:
            users.cluster[:] = self._fixed_cluster
        self._new_candidates(users, rng.random(n))
        return users

    def _new_candidates(self, users: Users, uniform: Float64) -> None:
        make_keys(uniform, users.key)
        if self._fixed_cluster is None:
            draw_integers(users.key, self.params.num_clusters, users.cluster)

    def quality(self, users: Users) -> Float64:
        """The hidden quality (n, candidates) of every user's candidates."""
        return qualities(
            users.key,
            users.cluster,
            self.cluster_means,
            self.catalogue_quality,
            self.constants.quality_std,
        )

    def observe(self, users: Users) -> Float32:
        """Interests, the clusters' share of the candidates, and what `Params` adds."""
        n, c = users.interests.shape
        out = np.empty((n, self._observation_size), np.float32)
        fill_observation(users.interests, users.cluster, out)
        if self.params.observe_response:
            out[:, 2 * c : 2 * c + 2] = users.response
        if self.params.observe_step:
            out[:, -1] = users.steps / 100
        return out

    def _slate(self, users: Users, action: NDArray[Any]) -> Int64:
        match self.params.actions:
            case "continuous":
                return rank(action, users.cluster, self.params.slate_size)
            case "slate":
                return np.ascontiguousarray(action, np.int64)
            case _:
                return np.ascontiguousarray(action, np.int64)[:, None]

    def step(self, users: Users, action: NDArray[Any], rng: np.random.Generator) -> Outcome:
        """Show one page to every user; new candidates follow."""
        slate = self._slate(users, action)
        uniform = rng.random((len(slate), 3))  # choice, direction of the move, candidates
        response = advance(
            users.interests,
            users.budget,
            users.cluster,
            users.key,
            slate,
            uniform,
            self.constants,
            self.cluster_means,
            self.catalogue_quality,
        )
        clicks = response.selected >= 0
        users.response[:, 0] = clicks
        users.response[:, 1] = response.quality
        users.steps += 1
        self._new_candidates(users, uniform[:, 2])
        info: Info = {
            "clicks": clicks.astype(np.int64),
            "shown": response.shown,
            "quality": response.quality,
            "watch_time": response.watch_time,
            "selected": response.selected,
            "cluster": response.cluster,
            "budget": users.budget.copy(),
            "slate": slate,
            "slate_cluster": response.slate_cluster,
        }
        reward = response.reward
        if self.params.reward == "quality":
            reward = np.where(clicks, response.quality, 0.0).astype(np.float32)
        return Outcome(reward, response.terminated, info)

    def describe(self, users: Users, info: Info | None) -> str:
        """The user, the slate and the click in words."""
        order = np.argsort(-users.interests[0], kind="stable")
        likes = ", ".join(f"{c} ({users.interests[0, c]:+.2f})" for c in order[:3])
        lines = [
            f"user after {users.steps[0]} pages, {users.budget[0]:.1f} minutes left; "
            f"likes clusters {likes}"
        ]
        if info is not None:
            shown = ", ".join(
                "nothing" if c < 0 else f"document {d} of cluster {c}"
                for d, c in zip(info["slate"][0], info["slate_cluster"][0], strict=True)
            )
            lines.append(f"shown: {shown}")
            lines.append(
                f"clicked slot {info['selected'][0]}: quality {info['quality'][0]:+.2f}, "
                f"watched {info['watch_time'][0]:.1f} minutes"
                if info["clicks"][0]
                else "no click"
            )
        return "\n".join(lines)

    def anchors(self) -> tuple[Anchor, Anchor]:
        """AverageQuality of random slates and of the policy with the best return known.

        Not a number where the parameters are not those that were searched.
        """
        p = self.params
        setting = (p.num_candidates, 1 if p.actions == "discrete" else p.slate_size)
        free = ("num_candidates", "slate_size", "actions", "short_slates", "catalogue_seed")
        plain = Params(**{name: getattr(p, name) for name in free})
        keep = [f.name for f in fields(p) if not f.name.startswith("observe")]
        known = all(getattr(p, name) == getattr(plain, name) for name in keep)
        low, high = _KNOWN.get(setting, (np.nan, np.nan)) if known else (np.nan, np.nan)
        return (
            Anchor("random slate", low, "RecSim 0.2.4, recorded sessions"),
            Anchor("ratio policy", high, "best return of a search over ratio policies on RecSim"),
        )


class InterestEvolutionEnv(UserEnv):
    """One interest-evolution user at a time."""

    simulator_type = InterestEvolution


class InterestEvolutionVectorEnv(UserVectorEnv):
    """Many interest-evolution users side by side."""

    simulator_type = InterestEvolution

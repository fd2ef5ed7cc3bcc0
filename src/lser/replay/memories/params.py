"""The settings of the memories: constructor's, command line's and record's; light to import."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, Self

import numpy as np

from lser.checks import check_choice, check_count, check_fraction, check_number
from lser.params import MemoryParams

Features = Literal["raw", "centred", "standardised"]
Strategy = Literal["distribution", "surprise", "reward", "coverage"]
FEATURES: tuple[Features, ...] = ("raw", "centred", "standardised")
STRATEGIES: tuple[Strategy, ...] = ("distribution", "surprise", "reward", "coverage")

# what holds where a run does not say
DISCOUNT = 0.99
ANNEAL = 100_000  # draws
GOALS = tuple(float(goal) for goal in range(1, 11))


@dataclass(frozen=True, kw_only=True)
class LocalityParams(MemoryParams):
    """What LSER stores and draws."""

    bits: int = 10
    """Hyperplanes, n_h."""
    greedy: float = 0.9
    """Share of reward-driven draws, ε."""
    greedy_per: Literal["batch", "item"] = "batch"
    """Whether one coin decides for a batch, or one for each item."""
    random_from: Literal["bucket", "memory"] = "bucket"
    """Where random draws come from."""
    fill: Literal["repeat", "uniform"] = "repeat"
    """What completes a batch that a bucket cannot fill."""
    unseen: Literal["drop", "evict"] = "drop"
    """At capacity, what becomes of a newcomer whose code has no bucket."""
    order: Literal["reward", "return"] = "reward"
    """What orders a bucket."""
    discount: float | None = None
    """Of the return; the agent's in a run, else 0.99."""
    features: Features = "raw"
    """What is hashed: observations, centred, or standardised ones."""
    warmup: int = 10_000
    """Observations from which centred and standardised features are computed."""
    store: Literal["reward", "fifo"] = "reward"
    """At capacity: Algorithm 1, or always the oldest of all makes room."""
    sampling: Literal["locality", "uniform"] = "locality"
    """Algorithm 1, or independent draws from the whole memory."""
    codes: Literal["simhash", "constant", "random", "shuffled"] = "simhash"
    """SimHash, one bucket for everything, uniformly random codes, or SimHash of somebody else."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("bits", self.bits, high=32)
        check_fraction("greedy", self.greedy)
        check_choice("greedy_per", self.greedy_per, ("batch", "item"))
        check_choice("random_from", self.random_from, ("bucket", "memory"))
        check_choice("fill", self.fill, ("repeat", "uniform"))
        check_choice("unseen", self.unseen, ("drop", "evict"))
        check_choice("order", self.order, ("reward", "return"))
        if self.discount is not None:
            check_fraction("discount", self.discount)
        check_choice("features", self.features, FEATURES)
        check_count("warmup", self.warmup)
        check_choice("store", self.store, ("reward", "fifo"))
        check_choice("sampling", self.sampling, ("locality", "uniform"))
        check_choice("codes", self.codes, ("simhash", "constant", "random", "shuffled"))

    def for_run(self, updates: int, discount: float, goals: tuple[float, ...]) -> Self:
        """These settings in a run: returns are discounted as the agent does."""
        return self if self.discount is not None else replace(self, discount=discount)


@dataclass(frozen=True, kw_only=True)
class UniformParams(MemoryParams):
    """Uniform replay has nothing to set."""


@dataclass(frozen=True, kw_only=True)
class PrioritizedParams(MemoryParams):
    """Settings of prioritized replay."""

    alpha: float = 0.6
    """Power of the priorities; 0 is uniform."""
    beta: float = 0.4
    """Power of the importance weights at the start; it rises to 1."""
    anneal: int | None = None
    """Draws in which beta rises: a run's updates, else 100,000."""
    offset: float = 1e-6
    """Added to |TD error|, so that nothing is lost for good."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("alpha", self.alpha, low=0.0)
        check_fraction("beta", self.beta)
        check_count("anneal", ANNEAL if self.anneal is None else self.anneal)
        check_number("offset", self.offset, low=0.0, above=True)

    def for_run(self, updates: int, discount: float, goals: tuple[float, ...]) -> Self:
        """These settings in a run: beta reaches 1 at its end."""
        return self if self.anneal is not None else replace(self, anneal=updates)


@dataclass(frozen=True, kw_only=True)
class DynamicParams(MemoryParams):
    """Settings of dynamic replay."""

    prioritized: bool = True
    """Draw by priority in a shard, or uniformly."""
    alpha: float = 0.5
    """Power of the priorities."""
    beta: float = 0.4
    """Power of the importance weights."""
    offset: float = 1e-6
    """Added to |TD error|."""
    shards: int = 4
    """Independent parts of the memory."""
    zone: float = 0.1
    """Share of a shard that is kept for successful sessions."""
    fragment: int = 64
    """Transitions that go to one shard before another is drawn."""
    quantile: float = 0.9
    """A session is successful at or above this quantile of mean rewards."""
    window: int = 1000
    """Sessions that the quantile is taken over."""
    pool: int = 100
    """Successful sessions that wait for a zone."""
    period: int = 100
    """Sessions after which a zone takes one from the pool."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("alpha", self.alpha, low=0.0)
        check_fraction("beta", self.beta)
        check_number("offset", self.offset, low=0.0, above=True)
        check_fraction("zone", self.zone)
        check_fraction("quantile", self.quantile)
        for name in ("shards", "fragment", "window", "pool", "period"):
            check_count(name, getattr(self, name))


@dataclass(frozen=True, kw_only=True)
class AttentiveParams(MemoryParams):
    """Settings of attentive replay."""

    candidates: float = 4.0
    """Candidates per place in the batch, at the start; it falls to 1."""
    anneal: int | None = None
    """Draws in which it falls: half of a run's updates, else 100,000."""
    features: Literal["standardised", "raw"] = "standardised"
    """What is compared."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("candidates", self.candidates, low=1.0, high=1e6)
        check_count("anneal", ANNEAL if self.anneal is None else self.anneal)
        check_choice("features", self.features, ("standardised", "raw"))

    def slot_bytes(self, observation_dim: int) -> int:
        """The same with a sketch of the observation: 32 numbers in a cache line of 64 bytes."""
        return super().slot_bytes(observation_dim) + 64 * -(-observation_dim // 32)

    def for_run(self, updates: int, discount: float, goals: tuple[float, ...]) -> Self:
        """These settings in a run: draws are uniform from its half on."""
        return self if self.anneal is not None else replace(self, anneal=max(1, updates // 2))


@dataclass(frozen=True, kw_only=True)
class SelectiveParams(MemoryParams):
    """Settings of selective replay."""

    strategy: Strategy = "distribution"
    """What ranks transitions for the long term."""
    discount: float | None = None
    """Of the return, for strategy="reward"; the agent's in a run, else 0.99."""
    radius: float = 1.0
    """Within which two observations are neighbours, for strategy="coverage"."""
    probes: int = 64
    """Long-term transitions compared with one that leaves, for strategy="coverage"."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("strategy", self.strategy, STRATEGIES)
        check_fraction("discount", DISCOUNT if self.discount is None else self.discount)
        check_number("radius", self.radius, low=0.0, high=1e9, above=True)
        check_count("probes", self.probes)

    def for_run(self, updates: int, discount: float, goals: tuple[float, ...]) -> Self:
        """These settings in a run: returns are discounted as the agent does."""
        return self if self.discount is not None else replace(self, discount=discount)


@dataclass(frozen=True, kw_only=True)
class HindsightParams(MemoryParams):
    """Settings of hindsight replay."""

    goals: tuple[float, ...] | None = None
    """Rewards to reach, rising; the simulator's in a run, else 1 to 10."""
    goal_scale: float | None = None
    """What a goal is multiplied with in the observation; by default one over the largest."""
    ratio: float = 0.8
    """Share of a batch that takes a goal which its session went on to reach."""
    balanced: bool = False
    """No goals: half of a batch has reward above zero, half has not."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_goals(GOALS if self.goals is None else self.goals)
        if self.goals is not None:
            object.__setattr__(self, "goals", tuple(float(goal) for goal in self.goals))
        if self.goal_scale is not None:
            check_number("goal_scale", self.goal_scale, low=1e-9, high=1e9)
        check_fraction("ratio", self.ratio)

    def for_run(self, updates: int, discount: float, goals: tuple[float, ...]) -> Self:
        """These settings in a run: the simulator's goals."""
        return self if self.goals is not None else replace(self, goals=goals)


def check_goals(goals: Sequence[float]) -> tuple[float, ...]:
    """Goals that rise, or ValueError."""
    if isinstance(goals, str | bytes) or not np.iterable(goals):
        raise ValueError(f"goals must be numbers that rise, got {goals!r}")
    values = tuple(check_number("goals", goal, low=-1e9, high=1e9) for goal in goals)
    rising = all(low < high for low, high in pairwise(values))
    if not values or not rising or not any(values):
        raise ValueError(f"goals must rise from one to the next and not be only 0, got {goals!r}")
    return values

"""Attentive experience replay: of some random candidates, replay those most like the present.

Sun, Zhou, Li (2020), "Attentive Experience Replay", AAAI.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from lser.checks import as_floats, check_choice, check_count, check_number
from lser.compiled import Num, UInt64, inner, kernel, unordered_kernel
from lser.moments import Moments
from lser.params import MemoryParams
from lser.random import below
from lser.replay.memories.prioritized import annealed
from lser.replay.memory import Arrays, Block, Memory
from lser.replay.store import prefetch_row
from lser.types import Float32, Float64, Int64

_ANNEAL = 100_000


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
        check_number("candidates", self.candidates, low=1.0)
        check_count("anneal", _ANNEAL if self.anneal is None else self.anneal)
        check_choice("features", self.features, ("standardised", "raw"))

    def for_run(self, updates: int, discount: float, goals: tuple[float, ...]) -> Self:
        """These settings in a run: draws are uniform from its half on."""
        return self if self.anneal is not None else replace(self, anneal=max(1, updates // 2))


class AttentiveReplay(Memory):
    """A FIFO memory that draws `candidates` times the batch and keeps the most similar to `query`.

    Similarity is the cosine of observations, standardised by the mean and deviation of everything
    ever added (`features="raw"`: as they are). The factor falls linearly from `candidates` to 1
    over the first `anneal` calls of `sample`; from then on, and without a query, draws are uniform.
    """

    KIND = "aer"
    Params = AttentiveParams
    params: AttentiveParams
    reads_rows = True

    def begin(self) -> None:
        """No statistics yet."""
        self._moments = Moments(self.store.observation_dim)
        self.draws = 0

    @property
    def candidates(self) -> float:
        """Candidates per place in the batch, at the next draw."""
        anneal = _ANNEAL if self.params.anneal is None else self.params.anneal
        return annealed(self.params.candidates, 1.0, self.draws, anneal)

    def insert(self, block: Block) -> Int64:
        """Over the oldest."""
        ids, write = self.store.appending(block.rows)
        moments = self._moments
        if self.params.features == "standardised":
            moments = moments.after(block.rows)
        self.commit(write, partial(setattr, self, "_moments", moments))
        return ids

    def draw(self, size: int, query: ArrayLike | None) -> tuple[Int64, Float32 | None]:
        """Those most similar to `query` of a uniform draw."""
        wide = (self.store.observation_dim,)
        target = None if query is None else as_floats("query", query, wide)
        factor = self.candidates
        self.rewind("draws")
        self.draws += 1
        drawn = size if target is None else max(round(factor * size), size)
        if target is None or drawn == size:
            return self.rng.integers(len(self), size=size), None
        state = np.array([self.rng.bit_generator.random_raw() >> 1], np.uint64)
        slots = np.empty(size, np.int64)
        attend(self.store.rows, len(self), *self._moments.parts, target, state, drawn, slots)
        return slots, None

    def own_stats(self) -> dict[str, float]:
        """The present factor of candidates."""
        return {"candidates": self.candidates}

    def own_state(self) -> tuple[dict[str, Any], Arrays]:
        """The draws so far and the moments of observations."""
        return {"draws": self.draws}, self._moments.arrays()

    def restore(self, own: dict[str, Any], arrays: Arrays) -> None:
        """Continue from `own_state()`."""
        self.draws = check_count("draws", own["draws"], low=0)
        self._moments = Moments.from_arrays(arrays, self.store.observation_dim)


@inner
def features_of(
    count: Num, mean: Float64, squares: Float64, query: Float32
) -> tuple[Float64, Float64, Float64]:
    """What turns x into features (x - shift) * scale, and the query's direction in them.

    Without statistics (a count of 0) features are observations as they are.
    """
    shift, scale = np.zeros(len(query)), np.ones(len(query))
    direction, largest = np.empty(len(query)), 0.0
    for j in range(len(query)):
        if count > 0:
            shift[j] = mean[j]
            scale[j] = 1.0 / np.sqrt(squares[j] / count) if squares[j] > 0 else 0.0
        direction[j] = (query[j] - shift[j]) * scale[j]
        largest = max(largest, abs(direction[j]))
    if largest > 0:
        direction /= largest  # first, lest a square be too large
        direction /= np.sqrt(np.sum(direction * direction))
    return shift, scale, direction


@unordered_kernel
def cosine(row: Float32, shift: Float64, scale: Float64, direction: Float64) -> Num:
    """The cosine of an observation's features to a direction; 0 for one without features."""
    product, squares = 0.0, 0.0
    for j in range(len(shift)):
        feature = (row[j] - shift[j]) * scale[j]
        product += feature * direction[j]
        squares += feature * feature
    return product / np.sqrt(squares) if squares > 0 else 0.0


@kernel
def attend(
    rows: Float32,
    stored: Num,
    count: Int64,
    mean: Float64,
    squares: Float64,
    query: Float32,
    state: UInt64,
    candidates: Num,
    slots: Int64,
) -> None:
    """Fill `slots` with the most similar of so many uniform draws, in the order drawn.

    Of equally similar ones the earlier are kept.
    """
    drawn, cosines = np.empty(candidates, np.int64), np.empty(candidates)
    for i in range(candidates):
        drawn[i] = below(state, stored)
        prefetch_row(rows, drawn[i], len(query))
    shift, scale, direction = features_of(count[0], mean, squares, query)
    for i in range(candidates):
        found = cosine(rows[drawn[i]], shift, scale, direction)
        cosines[i] = found if abs(found) <= 2.0 else 0.0  # features too large to be squared
    least = np.partition(cosines, candidates - len(slots))[candidates - len(slots)]
    ties = len(slots) - np.sum(cosines > least)
    kept = 0
    for i in range(candidates):
        tied = cosines[i] == least and ties > 0
        if cosines[i] > least or tied:
            slots[kept] = drawn[i]
            kept += 1
            ties -= tied

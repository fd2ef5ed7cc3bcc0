"""Attentive experience replay: of some random candidates, replay those most like the present.

Sun, Zhou, Li (2020), "Attentive Experience Replay", AAAI.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from lser.checks import as_floats, check_choice, check_count, check_number
from lser.compiled import Num, unordered_kernel
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
        if self.params.features == "standardised":
            self._moments.add(block.rows)
        return self.store.append(block.rows)

    def draw(self, size: int, query: ArrayLike | None) -> tuple[Int64, Float32 | None]:
        """Those most similar to `query` of a uniform draw."""
        wide = (self.store.observation_dim,)
        target = None if query is None else as_floats("query", query, wide)
        factor = self.candidates
        self.draws += 1
        drawn = size if target is None else max(round(factor * size), size)
        if target is None or drawn == size:
            return self.rng.integers(len(self), size=size), None
        shift, scale, direction = self._frame(target)
        state = np.array([self.rng.bit_generator.random_raw() >> 1], np.uint64)
        slots, cosines = np.empty(drawn, np.int64), np.empty(drawn)
        attend(self.store.rows, state, len(self), shift, scale, direction, slots, cosines)
        least = np.partition(cosines, drawn - size)[drawn - size]
        keep = cosines > least
        ties = np.flatnonzero(cosines == least)  # the earlier ones are kept
        keep[ties[: size - np.count_nonzero(keep)]] = True
        return slots[keep], None

    def _frame(self, query: Float32) -> tuple[Float64, Float64, Float64]:
        """What turns x into features (x - shift) * scale, and the query's direction in them."""
        if self.params.features == "standardised":
            shift, scale = self._moments.mean, self._moments.scale
        else:
            shift, scale = np.zeros(len(query)), np.ones(len(query))
        direction = (query - shift) * scale
        largest = np.abs(direction).max(initial=0.0)
        if largest > 0:
            direction /= largest  # first, lest a square be too large
            direction /= np.sqrt(np.sum(direction * direction))
        return shift, scale, direction

    def own_stats(self) -> dict[str, float]:
        """The present factor of candidates."""
        return {"candidates": self.candidates}

    def own_state(self) -> tuple[dict[str, Any], Arrays]:
        """The draws so far and the moments of observations."""
        return {"draws": self.draws}, self._moments.arrays()

    def restore(self, own: dict[str, Any], arrays: Arrays) -> None:
        """Continue from `own_state()`."""
        self.draws = check_count("draws", own["draws"], low=0)
        self._moments = Moments.from_arrays(arrays)


@unordered_kernel
def attend(
    rows: Float32,
    state: Any,
    stored: Num,
    shift: Float64,
    scale: Float64,
    direction: Float64,
    slots: Int64,
    cosines: Float64,
) -> None:
    """Draw candidates into `slots`, with their observations' cosines to the query's direction."""
    for i in range(len(slots)):
        slots[i] = below(state, stored)
        prefetch_row(rows, slots[i], len(shift))
    for i in range(len(slots)):
        row = rows[slots[i]]
        product, squares = 0.0, 0.0
        for j in range(len(shift)):
            feature = (row[j] - shift[j]) * scale[j]
            product += feature * direction[j]
            squares += feature * feature
        cosines[i] = product / np.sqrt(squares) if squares > 0 else 0.0

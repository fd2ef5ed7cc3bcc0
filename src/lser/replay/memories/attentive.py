"""Attentive experience replay: of some random candidates, replay those most like the present.

Sun, Zhou, Li (2020), "Attentive Experience Replay", AAAI.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lser.checks import as_floats, check_count
from lser.moments import Moments
from lser.replay.generator import NO_POINTS, address_of, draw_numbers
from lser.replay.memories.attention import attend
from lser.replay.memories.params import ANNEAL, AttentiveParams
from lser.replay.memories.prioritized import annealed
from lser.replay.memories.sketch import new_sketches, sketch_rows, take_in
from lser.replay.memory import Arrays, Block, Memory
from lser.types import Float32, Int64

_PART = 1 << 16  # rows


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
        self._sketches = new_sketches(self.capacity, self.store.observation_dim)
        self._draws: Int64 = np.zeros(1, np.int64)  # kernels count

    @property
    def draws(self) -> int:
        """How many draws there were."""
        return self._draws.item()

    @property
    def candidates(self) -> float:
        """Candidates per place in the batch, at the next draw."""
        anneal = ANNEAL if self.params.anneal is None else self.params.anneal
        return annealed(self.params.candidates, 1.0, self.draws, anneal)

    def insert(self, block: Block) -> Int64:
        """Over the oldest."""
        store, ids = self.store, np.empty(len(block.rows), np.int64)
        take_in(
            store.rows, store.ids, store.counts, self._sketches, *self._moments.parts,
            self.params.features == "standardised", block.rows, ids,
        )  # fmt: skip
        return ids

    def draw(self, size: int, query: ArrayLike | None) -> tuple[Int64, Float32 | None]:
        """Those most similar to `query` of a uniform draw."""
        shape = (self.store.observation_dim,)
        target = None if query is None else as_floats("query", query, shape)
        drawn = size if target is None else max(round(self.candidates * size), size)
        slots, generator = np.empty(size, np.int64), address_of(self.rng)
        if target is None or drawn == size:
            draw_numbers(generator, len(self), slots, NO_POINTS, self._draws)
        else:
            attend(
                self.store.rows, self._sketches, len(self), *self._moments.parts, target,
                generator, self._draws, drawn, slots,
            )  # fmt: skip
        return slots, None

    def own_stats(self) -> dict[str, float]:
        """The present factor of candidates."""
        return {"candidates": self.candidates}

    def own_state(self) -> tuple[dict[str, Any], Arrays]:
        """The draws so far and the moments of observations."""
        return {"draws": self.draws}, self._moments.arrays()

    def restore(self, own: dict[str, Any], arrays: Arrays) -> None:
        """Continue from `own_state()`."""
        self._draws[0] = check_count("draws", own["draws"], low=0, high=2**62)
        self._moments = Moments.from_arrays(arrays, self.store.observation_dim)
        for first in range(0, len(self), _PART):  # rows in a file need not fit into memory
            rows = np.array(self.store.rows[first : min(first + _PART, len(self))])
            sketch_rows(self._sketches, first, rows, self.store.observation_dim)

"""Selective experience replay: half the memory for the newest, half for a chosen few of the past.

Isele & Cosgun (2018), "Selective Experience Replay for Lifelong Learning", AAAI.

Places for the newest transitions form a ring; whatever leaves the ring competes for one of the
long-term places by its rank, ties decided by a random key drawn on arrival. With equal ranks that
is reservoir sampling: every transition that left the ring is kept with the same probability. Rows
never move: what changes is which set a slot belongs to.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lser.moments import Moments
from lser.replay.commit import Step
from lser.replay.memories.params import DISCOUNT, SelectiveParams
from lser.replay.memories.places import Neighbours, Places, new_places, place, rerank
from lser.replay.memory import Arrays, Block, Memory
from lser.replay.rows import name_writes, write_rows
from lser.replay.sessions import Sessions, discounted_returns
from lser.replay.store import Store
from lser.types import Float32, Float64, Int64

_NO_SCALE: Float64 = np.empty(0)


class SelectiveReplay(Memory):
    """A FIFO memory of half the capacity, and a long-term memory of what leaves it.

    The long-term half keeps the transitions ranked highest by `strategy`: "distribution" (a random
    key: a uniform sample of the past), "surprise" (|TD error| as last reported), "reward" (|return|
    of the session from there, discounted by `discount`) or "coverage" (fewest neighbours within
    `radius` among `probes` long-term transitions, in standardised observations). Ties are decided
    at random. A batch takes half from each.
    """

    KIND = "ser"
    Params = SelectiveParams
    params: SelectiveParams
    follows_sessions = True

    def _set_up(self, store: Store, rng: np.random.Generator) -> None:
        if store.storage == "none" and self.params.strategy == "coverage":
            raise ValueError("storage='none': strategy='coverage' needs rows of its own")
        super()._set_up(store, rng)

    def begin(self) -> None:
        """Both parts empty."""
        self.places = new_places(self.capacity - self.capacity // 2, self.capacity // 2)
        self._sessions = Sessions(limit=self.capacity)
        self._moments = Moments(self.store.observation_dim)

    def insert(self, block: Block) -> Int64:
        """To the newest; those they push out compete for the long term."""
        self.rewind()
        ids = np.empty(len(block.rows), dtype=np.int64)
        width = len(self.places.ring)  # the rows compared must have been written before
        steps: list[Step] = []
        moments = self._moments
        for first in range(0, len(ids), width):
            part = slice(first, first + width)
            rows = block.rows[part]
            if self.params.strategy == "coverage":
                moments = moments.after(rows)
            written = self.store.written + first
            steps += self._adding(rows, block.reward[part], moments, ids[part], written)
        steps.append(partial(setattr, self, "_moments", moments))
        if self.params.strategy == "reward":
            steps += self._ending(block, ids)
        self.commit(*steps)
        return ids

    def _adding(
        self, rows: Float32, reward: Float32, moments: Moments, ids: Int64, written: int
    ) -> list[Step]:
        """The steps that place newcomers and write them, and their `ids`."""
        count, p = len(rows), self.params
        rank = np.zeros(count)
        if p.strategy == "reward":  # what is known before the session ends
            rank = np.abs(reward.astype(np.float64))
        key = self.rng.random(count)
        coverage = p.strategy == "coverage"
        probes = self.rng.random((count, p.probes)) if coverage else np.empty((count, 0))
        scale = moments.scale if coverage else _NO_SCALE
        near = Neighbours(self.store.rows, scale, p.radius, probes)
        slots, ran = np.empty(count, dtype=np.int64), np.zeros(1, np.int64)
        store = self.store

        def write() -> None:
            name_writes(written, store.capacity, slots, ids)
            arrays = (store.rows, store.ids, store.counts, slots, rows, ids)
            write_rows(*arrays, written + count)

        return [partial(place, self.places, rank, key, near, slots, ran), write]

    def _ending(self, block: Block, ids: Int64) -> list[Step]:
        """The steps that follow sessions, and rank what was in those that end."""
        discount = DISCOUNT if self.params.discount is None else self.params.discount
        found: list[Any] = []

        def follow() -> None:
            found[:] = self._sessions.following(block.streams, ids, block.reward, block.ended)

        def rank() -> None:
            for session in found[0]:
                slots = self.store.slots(session.ids)
                ranks = np.abs(discounted_returns(session.reward, discount))
                rerank(self.places, slots[slots >= 0], ranks[slots >= 0])

        return [follow, lambda: found[1](), rank]

    def draw(self, size: int, query: ArrayLike | None) -> tuple[Int64, Float32 | None]:
        """Half from either part (the odd one from the newest)."""
        _, newest, _, kept = self.places.counts.tolist()
        old = size // 2 if kept else 0
        points = self.rng.random(size)
        slots = np.empty(size, dtype=np.int64)
        slots[old:] = self.places.ring[(points[old:] * newest).astype(np.int64)]
        slots[:old] = self.places.heap[(points[:old] * kept).astype(np.int64)]
        return slots, None

    def feedback(self, slots: Int64, td_errors: Float64) -> None:
        """Rank by surprise; other strategies ignore it."""
        if self.params.strategy == "surprise":
            rerank(self.places, slots, np.abs(td_errors))

    def own_stats(self) -> dict[str, float]:
        """How many transitions are the newest, and how many are kept for the long term."""
        return {
            "short_term": float(self.places.counts[1]),
            "long_term": float(self.places.counts[3]),
        }

    def own_state(self) -> tuple[dict[str, Any], Arrays]:
        """Places, open sessions and the moments of observations."""
        places = {f"places_{name}": array for name, array in self.places._asdict().items()}
        return {}, {**places, **self._sessions.arrays(), **self._moments.arrays()}

    def restore(self, own: dict[str, Any], arrays: Arrays) -> None:
        """Continue from `own_state()`."""
        fields = {name: arrays[f"places_{name}"].copy() for name in Places._fields}
        _check_places(fields, self.places, len(self.store))
        self.places = Places(**fields)
        self._sessions = Sessions.from_arrays(self.capacity, arrays)
        self._moments = Moments.from_arrays(arrays, self.store.observation_dim)


def _check_places(found: dict[str, Any], like: Places, held: int) -> None:
    """Refuse places from a file whose shapes or slots are not those of such a memory."""
    for name, array in found.items():
        model = getattr(like, name)
        if array.shape != model.shape or array.dtype != model.dtype:
            raise ValueError(f"places_{name} has shape {array.shape} of {array.dtype}")
    used, newest, head, kept = found["counts"].tolist()
    capacity, short, long = len(like.where), len(like.ring), len(like.heap)
    fits = 0 <= newest <= short and 0 <= kept <= long and 0 <= head < max(short, 1)
    if not fits or used != held or newest + kept != used:
        raise ValueError(f"places_counts = {found['counts']} does not fit {held} transitions")
    slots = np.concatenate([found["ring"][:newest], found["heap"][:kept]])
    where = found["where"]
    if not np.array_equal(np.sort(slots), np.arange(used)):
        raise ValueError("the saved places do not name every slot once")
    inside = np.flatnonzero(where >= 0)
    if len(inside) != kept or where.max(initial=-1) >= max(kept, 1) or capacity < used:
        raise ValueError("the saved places do not lead back to their slots")
    if not np.array_equal(found["heap"][where[inside]], inside):
        raise ValueError("the saved places do not lead back to their slots")

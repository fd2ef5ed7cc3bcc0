"""Selective experience replay: half the memory for the newest, half for a chosen few of the past.

Isele & Cosgun (2018), "Selective Experience Replay for Lifelong Learning", AAAI.

Places for the newest transitions form a ring; whatever leaves the ring competes for one of the
long-term places by its rank, ties decided by a random key drawn on arrival. With equal ranks that
is reservoir sampling: every transition that left the ring is kept with the same probability. Rows
never move: what changes is which set a slot belongs to.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from lser.checks import check_choice, check_count, check_fraction, check_number
from lser.compiled import kernel
from lser.moments import Moments
from lser.params import MemoryParams
from lser.replay.memory import Arrays, Block, Memory, Step
from lser.replay.sessions import Sessions, discounted_returns
from lser.replay.store import Store, write_rows
from lser.types import Float32, Float64, Int64

Strategy = Literal["distribution", "surprise", "reward", "coverage"]
STRATEGIES: tuple[Strategy, ...] = ("distribution", "surprise", "reward", "coverage")
_DISCOUNT = 0.99


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
        check_choice("strategy", self.strategy, STRATEGIES)
        check_fraction("discount", _DISCOUNT if self.discount is None else self.discount)
        check_number("radius", self.radius, low=0.0, above=True)
        check_count("probes", self.probes)

    def for_run(self, updates: int, discount: float, goals: tuple[float, ...]) -> Self:
        """These settings in a run: returns are discounted as the agent does."""
        return self if self.discount is not None else replace(self, discount=discount)


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
        near = Neighbours(self.store.rows, moments.scale, p.radius, probes)
        slots, ran = np.empty(count, dtype=np.int64), np.zeros(1, np.int64)
        store, places = self.store, self.places

        def write() -> None:
            ids[:] = np.arange(written, written + count) * store.capacity + slots
            arrays = (store.rows, store.ids, store.counts, slots, rows, ids)
            write_rows(*arrays, int(places.counts[0]), written + count)

        return [partial(place, places, rank, key, near, slots, ran), write]

    def _ending(self, block: Block, ids: Int64) -> list[Step]:
        """The steps that follow sessions, and rank what was in those that end."""
        discount = _DISCOUNT if self.params.discount is None else self.params.discount
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
        newest, kept = int(self.places.counts[1]), int(self.places.counts[3])
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


class Places(NamedTuple):
    """The two sets of slots, as arrays; `counts` holds used slots, ring size, ring head, kept."""

    ring: Int64  # (short,) slots of the newest transitions
    heap: Int64  # (long,) slots of the kept ones, lowest rank first
    where: Int64  # (capacity,) a slot's position in the heap, -1 in the ring
    rank: Float64  # (capacity,)
    key: Float64  # (capacity,)
    counts: Int64  # (4,)


class Neighbours(NamedTuple):
    """What ranks a leaving transition by its neighbours: fewest stay. No probes: rank as it is."""

    rows: Float32  # (capacity, columns) the store's rows, observation first
    scale: Float64  # (O,) each feature's scale
    radius: float  # root mean square over features
    probes: Float64  # (N, probes) uniform numbers that pick kept transitions to compare with


def new_places(short: int, long: int) -> Places:
    """Empty places for `short` newest and `long` kept transitions."""
    capacity = short + long
    return Places(
        ring=np.zeros(short, dtype=np.int64),
        heap=np.zeros(long, dtype=np.int64),
        where=np.full(capacity, -1, dtype=np.int64),
        rank=np.zeros(capacity),
        key=np.zeros(capacity),
        counts=np.zeros(4, dtype=np.int64),
    )


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


@kernel
def place(
    places: Places,
    rank: Float64,
    key: Float64,
    neighbours: Neighbours,
    slots: Int64,
    ran: Int64,
) -> None:
    """Choose the slots of up to `short` newcomers with ranks and keys (N,); fills `slots`.

    `ran` (1,) is 0; it becomes 1, and a second call does nothing.
    """
    if ran[0]:
        return
    ran[0] = 1
    counts, short, long = places.counts, len(places.ring), len(places.heap)
    for i in range(len(slots)):
        if counts[1] < short:
            slot = counts[0]
            counts[0] += 1
            places.ring[counts[1]] = slot
            counts[1] += 1
        else:
            leaving = places.ring[counts[2]]
            if neighbours.probes.shape[1] > 0 and counts[3] > 0:
                places.rank[leaving] = -_crowding(places, neighbours, leaving, i)
                # The kept ones' neighbours change too: one of them is counted again each time.
                kept = places.heap[int(neighbours.probes[i, 0] * counts[3])]
                places.rank[kept] = -_crowding(places, neighbours, kept, i)
                _sift(places, kept)
            if counts[3] < long:
                slot = counts[0]
                counts[0] += 1
                places.heap[counts[3]] = leaving
                places.where[leaving] = counts[3]
                counts[3] += 1
                _sift(places, leaving)
            elif long > 0 and _below(places, places.heap[0], leaving):
                slot = places.heap[0]
                places.where[slot] = -1
                places.heap[0] = leaving
                places.where[leaving] = 0
                _sift(places, leaving)
            else:
                slot = leaving
            places.ring[counts[2]] = slot
            counts[2] = (counts[2] + 1) % short
        places.rank[slot] = rank[i]
        places.key[slot] = key[i]
        slots[i] = slot


@kernel
def rerank(places: Places, slots: Int64, rank: Float64) -> None:
    """Give slots (n,) new ranks (n,), wherever they are."""
    for i in range(len(slots)):
        places.rank[slots[i]] = rank[i]
        if places.where[slots[i]] >= 0:
            _sift(places, slots[i])


@kernel
def _below(places: Places, left: int, right: int) -> bool:
    if places.rank[left] != places.rank[right]:
        return bool(places.rank[left] < places.rank[right])
    return bool(places.key[left] < places.key[right])


@kernel
def _sift(places: Places, slot: int) -> None:
    """Move one slot of the heap to where its rank belongs."""
    heap, where, size = places.heap, places.where, places.counts[3]
    at = where[slot]
    while at > 0 and _below(places, slot, heap[(at - 1) // 2]):
        heap[at] = heap[(at - 1) // 2]
        where[heap[at]] = at
        at = (at - 1) // 2
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _below(places, heap[child + 1], heap[child]):
            child += 1
        if not _below(places, heap[child], slot):
            break
        heap[at] = heap[child]
        where[heap[at]] = at
        at = child
    heap[at] = slot
    where[slot] = at


@kernel
def _crowding(places: Places, neighbours: Neighbours, slot: int, i: int) -> float:
    """The share of probed kept transitions that lie within the radius of `slot`."""
    probes, scale = neighbours.probes.shape[1], neighbours.scale
    kept = places.counts[3]
    limit = neighbours.radius * neighbours.radius * len(scale)
    everyone = kept <= probes
    compared = near = 0
    for j in range(min(kept, probes)):
        other = places.heap[j if everyone else int(neighbours.probes[i, j] * kept)]
        if other == slot:
            continue
        distance = 0.0
        for k in range(len(scale)):
            step = (neighbours.rows[slot, k] - neighbours.rows[other, k]) * scale[k]
            distance += step * step
        compared += 1
        near += distance < limit
    return float(near / max(compared, 1))

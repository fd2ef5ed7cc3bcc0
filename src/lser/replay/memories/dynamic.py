"""Dynamic experience replay: prioritized shards, each with a zone for whole successful sessions.

Luo & Li (2020), "Dynamic Experience Replay", CoRL, https://arxiv.org/abs/2003.02372, without its
human demonstrations.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lser.checks import check_count, check_fraction, check_number
from lser.params import MemoryParams
from lser.replay.memory import Arrays, Block, Memory
from lser.replay.sessions import Session, Sessions
from lser.replay.sum_tree import SumTree
from lser.types import Float32, Float64, Int64


class RunningQuantile:
    """The quantile of the last `window` scores."""

    def __init__(self, quantile: float, window: int, scores: Iterable[float] = ()) -> None:
        self.quantile = quantile
        self.scores = deque(scores, maxlen=window)  # oldest first
        self._sorted = sorted(self.scores)

    def reaches(self, score: float) -> bool:
        """Take in a score; says whether it is at or above the quantile, itself included."""
        if len(self.scores) == self.scores.maxlen:
            del self._sorted[bisect_left(self._sorted, self.scores[0])]
        self.scores.append(score)
        insort(self._sorted, score)
        rank = max(ceil(self.quantile * len(self._sorted)), 1)
        return score >= self._sorted[rank - 1]


class Zone:
    """Slots `first` to `first + size` that hold whole sessions, the oldest making room."""

    def __init__(self, first: int, size: int) -> None:
        self.first = first
        self.size = size
        self.sessions: list[tuple[int, int]] = []  # offset and length, oldest first
        self._cursor = 0

    def make_room(self, length: int) -> tuple[Int64, Int64]:
        """Place a session of `length` <= size steps; returns its slots and the slots it empties."""
        if self._cursor + length > self.size:
            self._cursor = 0
        start, end = self._cursor, self._cursor + length
        gone = [s for s in self.sessions if s[0] < end and start < s[0] + s[1]]
        self.sessions = [s for s in self.sessions if s not in gone]
        self.sessions.append((start, length))
        self._cursor = end
        emptied = [np.arange(offset, offset + steps) for offset, steps in gone]
        slots = self.first + np.concatenate([np.empty(0, dtype=np.int64), *emptied])
        return self.first + np.arange(start, end), slots

    def restore(self, sessions: Iterable[tuple[int, int]]) -> None:
        """Continue with these sessions, oldest first."""
        self.sessions = [(int(offset), int(steps)) for offset, steps in sessions]
        self._cursor = sum(self.sessions[-1]) if self.sessions else 0


class Shard(NamedTuple):
    """Slots `first` on: a ring of `ring` for ordinary traffic, then the zone."""

    first: int
    ring: int
    zone: Zone
    tree: SumTree


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
        check_number("alpha", self.alpha, low=0.0)
        check_fraction("beta", self.beta)
        check_number("offset", self.offset, low=0.0, above=True)
        check_fraction("zone", self.zone)
        check_fraction("quantile", self.quantile)
        for name in ("shards", "fragment", "window", "pool", "period"):
            check_count(name, getattr(self, name))


class DynamicReplay(Memory):
    """Prioritized shards; traffic goes to a random one, successful sessions to protected zones.

    A session is successful if its mean reward is at or above the `quantile` of the last `window`
    sessions. It enters a pool of at most `pool`; every `period` sessions a random shard takes a
    random session from the pool into its zone, `zone` of the shard's slots. A batch comes from one
    random shard. ``prioritized=False`` keeps the zones and draws uniformly in a shard.
    """

    KIND = "der"
    Params = DynamicParams
    params: DynamicParams
    follows_sessions = True
    reads_rows = True  # sessions in the pool are copies

    def begin(self) -> None:
        """Empty shards, zones and pool."""
        p = self.params
        self.shards = _split(self.capacity, p.shards, p.zone)
        self._starts = np.array([shard.first for shard in self.shards])
        self._written = [0] * p.shards  # ordinary transitions each shard took
        self._sessions = Sessions(limit=self.capacity)
        self._success = RunningQuantile(p.quantile, p.window)
        self._pool: list[Float32] = []  # packed rows of whole sessions
        self._ended = 0
        self._largest = 1.0  # raw priority, before the power

    def insert(self, block: Block) -> Int64:
        """In fragments to random shards; sessions that end may enter the pool."""
        rows = block.rows
        ids = np.empty(len(rows), dtype=np.int64)
        step = min(self.params.fragment, *(shard.ring for shard in self.shards))
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            chosen = int(self.rng.integers(len(self.shards)))
            shard, written = self.shards[chosen], self._written[chosen]
            fragment = rows[part]
            slots = shard.first + np.arange(written, written + len(fragment)) % shard.ring
            ids[part] = self._write(shard, slots, fragment)
            self._written[chosen] += len(fragment)
        for session in self._sessions.follow(block.streams, ids, block.reward, block.ended):
            self._close(session)
        return ids

    def _write(self, shard: Shard, slots: Int64, rows: Float32) -> Int64:
        ids = self.store.put(slots, rows)
        newest = self._largest**self.params.alpha if self.params.prioritized else 1.0
        shard.tree.set(slots - shard.first, newest)
        return ids

    def _close(self, session: Session) -> None:
        """Pool a session if it was successful; now and then a zone takes one from the pool."""
        success = self._success.reaches(float(session.reward.mean(dtype=np.float64)))
        slots = self.store.slots(session.ids)
        fits = len(slots) <= min(shard.zone.size for shard in self.shards)
        if success and fits and bool((slots >= 0).all()):
            self._pool.append(self.store.rows[slots])
            del self._pool[: -self.params.pool]
        self._ended += 1
        if self._ended % self.params.period == 0 and self._pool:
            shard = self.shards[int(self.rng.integers(len(self.shards)))]
            rows = self._pool.pop(int(self.rng.integers(len(self._pool))))
            slots, emptied = shard.zone.make_room(len(rows))
            shard.tree.set(emptied - shard.first, 0.0)
            self.store.forget(emptied)
            self._write(shard, slots, rows)

    def draw(self, size: int, query: ArrayLike | None) -> tuple[Int64, Float32 | None]:
        """By priority from one random shard that holds any."""
        filled = [shard for shard in self.shards if not shard.tree.empty]
        shard = filled[int(self.rng.integers(len(filled)))]
        # a power of 0 makes every weight 1
        beta = self.params.beta if self.params.prioritized else 0.0
        slots, weights = shard.tree.draw(self.rng.random(size), beta)
        return slots + shard.first, weights

    def feedback(self, slots: Int64, td_errors: Float64) -> None:
        """Set the priorities of what was sampled."""
        if not self.params.prioritized:
            return
        priority = np.abs(td_errors) + self.params.offset
        self._largest = max(self._largest, float(priority.max(initial=0.0)))
        owner = np.searchsorted(self._starts, slots, side="right") - 1
        for number, shard in enumerate(self.shards):
            mine = owner == number
            if mine.any():
                shard.tree.set(slots[mine] - shard.first, priority[mine] ** self.params.alpha)

    def own_stats(self) -> dict[str, float]:
        """Its zones, its pool, and the sessions seen."""
        zones = sum(steps for shard in self.shards for _, steps in shard.zone.sessions)
        return {
            "in_zones": float(zones),
            "pooled": float(len(self._pool)),
            "sessions": float(self._ended),
        }

    def own_state(self) -> tuple[dict[str, Any], Arrays]:
        """Priorities, zones, pool and open sessions."""
        own = {
            "written": self._written,
            "zones": [shard.zone.sessions for shard in self.shards],
            "scores": list(self._success.scores),
            "pooled": [len(rows) for rows in self._pool],
            "ended": self._ended,
            "largest": self._largest,
        }
        none = np.empty((0, self.store.layout.width), dtype=np.float32)
        arrays = {
            "priorities": np.concatenate([shard.tree.priorities for shard in self.shards]),
            "pool": np.concatenate([none, *self._pool]),
        }
        return own, {**self._sessions.arrays(), **arrays}

    def restore(self, own: dict[str, Any], arrays: Arrays) -> None:
        """Continue from `own_state()`."""
        for shard, sessions in zip(self.shards, own["zones"], strict=True):
            shard.zone.restore(sessions)
            priorities = arrays["priorities"][shard.first : shard.first + shard.tree.capacity]
            shard.tree.load(priorities)
        self._written = [check_count("written", count, low=0) for count in own["written"]]
        if len(self._written) != len(self.shards):
            raise ValueError(f"written names {len(self._written)} shards of {len(self.shards)}")
        self._sessions = Sessions.from_arrays(self.capacity, arrays)
        p = self.params
        self._success = RunningQuantile(p.quantile, p.window, map(float, own["scores"]))
        lengths = [check_count("pooled", count) for count in own["pooled"]]
        pool = np.asarray(arrays["pool"], np.float32)
        if pool.shape != (sum(lengths), self.store.layout.width):
            raise ValueError(f"the pool has shape {pool.shape}, which does not fit its sessions")
        self._pool = np.split(pool, np.cumsum(lengths)[:-1]) if lengths else []
        self._ended = check_count("ended", own["ended"], low=0)
        self._largest = check_number("largest", own["largest"], low=0.0)


def _split(capacity: int, shards: int, zone: float) -> list[Shard]:
    """Cut the slots into shards of nearly equal size, each a ring and at least one zone slot."""
    bounds = [capacity * number // shards for number in range(shards + 1)]
    cut = []
    for first, end in pairwise(bounds):
        protected = max(round(zone * (end - first)), 1)
        ring = end - first - protected
        if ring < 1:
            raise ValueError(
                f"capacity={capacity} is too small for shards={shards} with zone={zone}"
            )
        cut.append(Shard(first, ring, Zone(first + ring, protected), SumTree(end - first)))
    return cut

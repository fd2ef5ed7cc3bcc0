"""Dynamic experience replay: prioritized shards, each with a zone for whole successful sessions.

Luo & Li (2020), "Dynamic Experience Replay", CoRL, https://arxiv.org/abs/2003.02372, without its
human demonstrations.
"""

from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lser.checks import check_count, check_number, check_shape
from lser.replay.commit import Commit, Step
from lser.replay.generator import NO_INTEGERS, address_of, draw_numbers
from lser.replay.memories.params import DynamicParams
from lser.replay.memories.prioritized import power, powers
from lser.replay.memories.zones import RunningQuantile, Zone
from lser.replay.memory import Arrays, Block, Memory
from lser.replay.sessions import Session, Sessions
from lser.replay.sum_tree import SumTree
from lser.types import Float32, Float64, Int64


class Shard(NamedTuple):
    """Slots `first` on: a ring of `ring` for ordinary traffic, then the zone."""

    first: int
    ring: int
    zone: Zone
    tree: SumTree


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
        self._smallest_zone = min(shard.zone.size for shard in self.shards)
        self._fragment = min(p.fragment, *(shard.ring for shard in self.shards))
        self._written = [0] * p.shards  # ordinary transitions each shard took
        self._sessions = Sessions(limit=self.capacity)
        self._success = RunningQuantile(p.quantile, p.window)
        self._pool: list[Float32] = []  # packed rows of whole sessions
        self._ended = 0
        self._largest = 1.0  # raw priority, before the power

    def insert(self, block: Block) -> Int64:
        """In fragments to random shards; sessions that end may enter the pool."""
        self.rewind()
        rows, written = block.rows, list(self._written)
        slots = np.empty(len(rows), dtype=np.int64)
        step, steps = self._fragment, list[Step]()
        for first in range(0, len(rows), step):
            part = slots[first : first + step]
            chosen = int(self.rng.integers(len(self.shards)))
            shard = self.shards[chosen]
            at = np.arange(written[chosen], written[chosen] + len(part)) % shard.ring
            part[:] = shard.first + at
            steps.append(shard.tree.setting(at, self._newest()))
            written[chosen] += len(part)
        ids, write = self.store.putting(slots, rows)
        over, follow = self._sessions.following(block.streams, ids, block.reward, block.ended)
        steps += [write, partial(setattr, self, "_written", written), follow]
        self.commit(*steps, *(_Closing(self, session) for session in over))
        return ids

    def _newest(self) -> float:
        return power(self._largest, self.params.alpha) if self.params.prioritized else 1.0

    def _entering(self, session: Session, score: float) -> list[Float32]:
        """The pool after a session, which enters it if it was successful."""
        if not self._success.reaches(score) or len(session.ids) > self._smallest_zone:
            return self._pool
        slots = self.store.slots(session.ids)
        if bool((slots < 0).any()):
            return self._pool
        return [*self._pool, self.store.rows[slots]][-self.params.pool :]

    def _close(self, pool: list[Float32], ended: int) -> None:
        self._pool, self._ended = pool, ended

    def _zoning(self, pool: list[Float32], ended: int) -> list[Step]:
        """The steps by which a zone takes a session from the pool when so many have ended."""
        shard = self.shards[int(self.rng.integers(len(self.shards)))]
        taken = int(self.rng.integers(len(pool)))
        rows, left = pool[taken], [*pool[:taken], *pool[taken + 1 :]]
        room = shard.zone.making_room(len(rows))
        _, put = self.store.putting(room.slots, rows)
        return [
            partial(self._close, left, ended),
            partial(shard.zone.restore, room.sessions),
            shard.tree.setting(room.emptied - shard.first, 0.0),
            partial(self.store.forget, room.emptied),
            put,
            shard.tree.setting(room.slots - shard.first, self._newest()),
        ]

    def draw(self, size: int, query: ArrayLike | None) -> tuple[Int64, Float32 | None]:
        """By priority from one random shard that holds any."""
        filled = [shard for shard in self.shards if shard.tree.total]
        chosen, uniforms = np.empty(1, np.int64), np.empty(size)
        draw_numbers(address_of(self.rng), len(filled), chosen, uniforms, NO_INTEGERS)
        shard = filled[chosen.item()]
        # a power of 0 makes every weight 1
        beta = self.params.beta if self.params.prioritized else 0.0
        slots, weights = shard.tree.draw(uniforms, beta)
        slots += shard.first
        return slots, weights

    def feedback(self, slots: Int64, td_errors: Float64) -> None:
        """Set the priorities of what was sampled."""
        if not self.params.prioritized:
            return
        priority = np.abs(td_errors) + self.params.offset
        largest = max(self._largest, float(priority.max(initial=0.0)))
        steps: list[Step] = [partial(setattr, self, "_largest", largest)]
        owner = np.searchsorted(self._starts, slots, side="right") - 1
        for number in set(owner.tolist()):
            shard, mine = self.shards[number], owner == number
            to = powers(priority[mine], self.params.alpha)
            steps.append(shard.tree.setting(slots[mine] - shard.first, to))
        self.commit(*steps)

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
        held = self.store.ids >= 0
        check_shape("priorities", arrays["priorities"], (self.capacity,))
        if not np.array_equal(arrays["priorities"] > 0, held):
            raise ValueError("the saved priorities are not those of the slots that are held")
        for shard, sessions in zip(self.shards, own["zones"], strict=True):
            shard.zone.restore(sessions)
            priorities = arrays["priorities"][shard.first : shard.first + shard.tree.capacity]
            shard.tree.load(priorities)
        self._written = [check_count("written", count, low=0) for count in own["written"]]
        if len(self._written) != len(self.shards):
            raise ValueError(f"written names {len(self._written)} shards of {len(self.shards)}")
        self._sessions = Sessions.from_arrays(self.capacity, arrays)
        p = self.params
        scores = [check_number("scores", score) for score in own["scores"]]
        self._success = RunningQuantile(p.quantile, p.window, scores)
        lengths = [check_count("pooled", count) for count in own["pooled"]]
        pool = np.asarray(arrays["pool"], np.float32)
        if pool.shape != (sum(lengths), self.store.layout.width):
            raise ValueError(f"the pool has shape {pool.shape}, which does not fit its sessions")
        if not np.isfinite(pool).all() or len(lengths) > p.pool:
            raise ValueError("the saved pool is not one that this memory can have")
        self._pool = np.split(pool, np.cumsum(lengths)[:-1]) if lengths else []
        self._ended = check_count("ended", own["ended"], low=0)
        self._largest = check_number("largest", own["largest"], low=0.0)


class _Closing:
    """The step that ends a session: it may enter the pool, and a zone may take one from there."""

    def __init__(self, memory: DynamicReplay, session: Session) -> None:
        self._memory, self._session = memory, session
        self._score = float(np.add.reduce(session.reward, dtype=np.float64)) / len(session.reward)
        self._rng: Any = None
        self._planned: Commit | None = None

    def __call__(self) -> None:
        """Work it out, if that has not been done, and do what is left of it."""
        if self._planned is None:
            self._planned = Commit(tuple(self._plan()))
        self._planned()

    def _plan(self) -> list[Step]:
        memory, ended = self._memory, self._memory._ended + 1
        pool = memory._entering(self._session, self._score)
        if ended % memory.params.period or not pool:
            return [partial(memory._close, pool, ended)]
        if self._rng is None:
            self._rng = memory.rng.bit_generator.state
        memory.rng.bit_generator.state = self._rng  # as it was before this was broken off
        return memory._zoning(pool, ended)


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

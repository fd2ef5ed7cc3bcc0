"""Dynamic experience replay: prioritized shards, each with a zone for whole successful sessions.

Luo & Li (2020), "Dynamic Experience Replay", CoRL, https://arxiv.org/abs/2003.02372, without its
human demonstrations.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from lser.replay.base import State, check_count, check_fraction, check_sample
from lser.replay.checks import check_feedback, check_number
from lser.replay.id_index import IdIndex
from lser.replay.persistence import rng_from_state, rng_state, save
from lser.replay.sessions import Session, Sessions, stream_labels
from lser.replay.store import Store
from lser.replay.sum_tree import SumTree
from lser.replay.zones import RunningQuantile, Zone
from lser.types import Batch, Float32, Int64


class Shard(NamedTuple):
    """Slots `first` on: a ring of `ring` for ordinary traffic, then the zone."""

    first: int
    ring: int
    zone: Zone
    tree: SumTree


class DynamicReplay:
    """Prioritized shards; traffic goes to a random one, successful sessions to protected zones.

    A session is successful if its mean reward is at or above the `quantile` of the last `window`
    sessions. It enters a pool of at most `pool`; every `period` sessions a random shard takes a
    random session from the pool into its zone, `zone` of the shard's slots. A batch comes from one
    random shard. ``prioritized=False`` keeps the zones and draws uniformly in a shard.
    """

    KIND = "der"

    def __init__(
        self,
        capacity: int,
        observation_dim: int,
        action_dim: int,
        *,
        seed: int = 0,
        prioritized: bool = True,
        alpha: float = 0.5,
        beta: float = 0.4,
        offset: float = 1e-6,
        shards: int = 4,
        zone: float = 0.1,
        fragment: int = 64,
        quantile: float = 0.9,
        window: int = 1000,
        pool: int = 100,
        period: int = 100,
    ) -> None:
        self.prioritized = prioritized
        self.alpha = check_number("alpha", alpha, low=0.0)
        self.beta = check_fraction("beta", beta)
        self.offset = check_number("offset", offset, low=0.0, above=True)
        self.shards = check_count("shards", shards)
        self.zone = check_fraction("zone", zone)
        self.fragment = check_count("fragment", fragment)
        self.quantile = check_fraction("quantile", quantile)
        self.window = check_count("window", window)
        self.pool = check_count("pool", pool)
        self.period = check_count("period", period)
        self._store = Store(capacity, observation_dim, action_dim)
        self._shards = _split(self._store.capacity, self.shards, self.zone)
        self._starts = np.array([shard.first for shard in self._shards])
        self._written = [0] * self.shards  # ordinary transitions each shard took
        self._index = IdIndex(self._store.ids)
        self._sessions = Sessions(limit=capacity)
        self._success = RunningQuantile(self.quantile, self.window)
        self._pool: list[Float32] = []  # packed rows of whole sessions
        self._ended = 0
        self._size = 0
        self._largest = 1.0  # raw priority, before the power
        self._rng = np.random.default_rng(check_count("seed", seed, low=0))

    @property
    def capacity(self) -> int:
        """The most transitions it holds; the zones' share only with successful sessions in it."""
        return self._store.capacity

    def __len__(self) -> int:
        return self._size

    def extend(
        self,
        observation: ArrayLike,
        action: ArrayLike,
        reward: ArrayLike,
        next_observation: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike,
        streams: ArrayLike | None = None,
    ) -> Int64:
        """Add a block of N transitions, in fragments to random shards; returns their ids."""
        rows = self._store.pack(
            observation, action, reward, next_observation, terminated, truncated
        )
        labels = stream_labels(streams, len(rows))
        at = self._store.layout
        ended = (rows[:, at.terminated] + rows[:, at.truncated]) > 0
        ids = np.empty(len(rows), dtype=np.int64)
        step = min(self.fragment, *(shard.ring for shard in self._shards))
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            chosen = int(self._rng.integers(self.shards))
            shard, written = self._shards[chosen], self._written[chosen]
            block = rows[part]
            slots = shard.first + np.arange(written, written + len(block)) % shard.ring
            ids[part] = self._write(shard, slots, block)
            self._written[chosen] += len(block)
        for session in self._sessions.follow(labels, ids, rows[:, at.reward], ended):
            self._close(session)
        return ids

    def _write(self, shard: Shard, slots: Int64, rows: Float32) -> Int64:
        local = slots - shard.first
        self._size += int(np.count_nonzero(shard.tree.priorities[local] == 0))
        ids = self._store.put(slots, rows)
        self._index.assign(slots, ids)
        shard.tree.set(local, self._largest**self.alpha if self.prioritized else 1.0)
        return ids

    def _close(self, session: Session) -> None:
        """Pool a session if it was successful; now and then a zone takes one from the pool."""
        success = self._success.reaches(float(session.reward.mean(dtype=np.float64)))
        slots = self._index.slots(session.ids)
        fits = len(slots) <= min(shard.zone.size for shard in self._shards)
        if success and fits and bool((slots >= 0).all()):
            self._pool.append(self._store.rows[slots])
            del self._pool[: -self.pool]
        self._ended += 1
        if self._ended % self.period == 0 and self._pool:
            shard = self._shards[int(self._rng.integers(self.shards))]
            rows = self._pool.pop(int(self._rng.integers(len(self._pool))))
            slots, emptied = shard.zone.make_room(len(rows))
            shard.tree.set(emptied - shard.first, 0.0)
            self._index.assign(emptied, np.full(len(emptied), -1))
            self._size -= len(emptied)
            self._write(shard, slots, rows)

    def sample(self, batch_size: int, query: ArrayLike | None = None) -> Batch:
        """Draw `batch_size` transitions from one random shard that holds any."""
        size = check_sample(batch_size, len(self))
        filled = [shard for shard in self._shards if not shard.tree.empty]
        shard = filled[int(self._rng.integers(len(filled)))]
        beta = self.beta if self.prioritized else 0.0  # a power of 0 makes every weight 1
        slots, weights = shard.tree.draw(self._rng.random(size), beta)
        return self._store.batch(slots + shard.first, weights)

    def update(self, ids: ArrayLike, td_errors: ArrayLike) -> None:
        """Set the priorities of sampled transitions; ids no longer held are skipped."""
        if not self.prioritized:
            return
        names, errors = check_feedback(ids, td_errors)
        slots = self._index.slots(names)
        slots, errors = slots[slots >= 0], errors[slots >= 0]
        priority = np.abs(errors) + self.offset
        self._largest = max(self._largest, float(priority.max(initial=0.0)))
        owner = np.searchsorted(self._starts, slots, side="right") - 1
        for number, shard in enumerate(self._shards):
            mine = owner == number
            if mine.any():
                shard.tree.set(slots[mine] - shard.first, priority[mine] ** self.alpha)

    def stop_exploring(self) -> None:
        """Nothing: no draw is reward-driven."""

    def stats(self) -> dict[str, float]:
        """How full it is, its zones, its pool, and the sessions seen."""
        zones = sum(steps for shard in self._shards for _, steps in shard.zone.sessions)
        return {
            "size": float(self._size),
            "in_zones": float(zones),
            "pooled": float(len(self._pool)),
            "sessions": float(self._ended),
        }

    def state(self) -> State:
        """Everything needed to continue exactly where it stands, the rng included."""
        store = self._store.state()
        config: dict[str, object] = {
            "knobs": {name: getattr(self, name) for name in _KNOBS},
            "store": store.config,
            "rng": rng_state(self._rng),
            "written": self._written,
            "zones": [shard.zone.sessions for shard in self._shards],
            "scores": list(self._success.scores),
            "pooled": [len(rows) for rows in self._pool],
            "ended": self._ended,
            "largest": self._largest,
        }
        none = np.empty((0, self._store.layout.width), dtype=np.float32)
        own = {
            "priorities": np.concatenate([shard.tree.priorities for shard in self._shards]),
            "pool": np.concatenate([none, *self._pool]),
        }
        return State(config, {**store.arrays, **self._sessions.arrays(), **own})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild a memory from `state()`."""
        config: Any = state.config
        arrays: Any = state.arrays
        store = Store.from_state(State(config["store"], arrays))
        replay = cls(store.capacity, store.observation_dim, store.action_dim, **config["knobs"])
        replay._store = store
        for shard, sessions in zip(replay._shards, config["zones"], strict=True):
            shard.zone.restore(sessions)
            size = shard.tree.capacity
            priorities = arrays["priorities"][shard.first : shard.first + size]
            shard.tree.set(np.arange(size), priorities)
        held = arrays["priorities"] > 0
        replay._index = IdIndex(np.where(held, store.ids, -1))
        replay._size = int(np.count_nonzero(held))
        replay._written = list(config["written"])
        replay._sessions = Sessions.from_arrays(store.capacity, arrays)
        replay._success = RunningQuantile(replay.quantile, replay.window, config["scores"])
        cuts = np.cumsum(config["pooled"])[:-1].astype(np.int64)
        replay._pool = np.split(arrays["pool"], cuts) if config["pooled"] else []
        replay._ended, replay._largest = config["ended"], config["largest"]
        replay._rng = rng_from_state(config["rng"])
        return replay

    def save(self, path: str | Path) -> None:
        """Write one file that `load_replay` reads back."""
        save(path, self.KIND, self.state())


_KNOBS = (
    "prioritized", "alpha", "beta", "offset", "shards", "zone", "fragment",
    "quantile", "window", "pool", "period",
)  # fmt: skip


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

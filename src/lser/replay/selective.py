"""Selective experience replay: half the memory for the newest, half for a chosen few of the past.

Isele & Cosgun (2018), "Selective Experience Replay for Lifelong Learning", AAAI.
"""

from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from lser.replay.base import State, check_choice, check_count, check_fraction, check_sample
from lser.replay.checks import Float64, check_feedback, check_number
from lser.replay.id_index import IdIndex
from lser.replay.long_term import Neighbours, Places, new_places, place, rerank
from lser.replay.moments import Moments
from lser.replay.persistence import rng_from_state, rng_state, save
from lser.replay.sessions import Sessions, discounted_returns, stream_labels
from lser.replay.store import Store
from lser.types import Batch, Float32, Int64

Strategy = Literal["distribution", "surprise", "reward", "coverage"]


class SelectiveReplay:
    """A FIFO memory of half the capacity, and a long-term memory of what leaves it.

    The long-term half keeps the transitions ranked highest by `strategy`: "distribution" (a random
    key: a uniform sample of the past), "surprise" (|TD error| as last reported), "reward" (|return|
    of the session from there, discounted by `discount`) or "coverage" (fewest neighbours within
    `radius` among `probes` long-term transitions, in standardised observations). Ties are decided
    at random. A batch takes half from each.
    """

    KIND = "ser"

    def __init__(
        self,
        capacity: int,
        observation_dim: int,
        action_dim: int,
        *,
        seed: int = 0,
        strategy: Strategy = "distribution",
        discount: float = 0.99,
        radius: float = 1.0,
        probes: int = 64,
    ) -> None:
        strategies: tuple[Strategy, ...] = ("distribution", "surprise", "reward", "coverage")
        self.strategy = check_choice("strategy", strategy, strategies)
        self.discount = check_fraction("discount", discount)
        self.radius = check_number("radius", radius, low=0.0, above=True)
        self.probes = check_count("probes", probes)
        self._store = Store(capacity, observation_dim, action_dim)
        self._places = new_places(capacity - capacity // 2, capacity // 2)
        self._index = IdIndex(self._store.ids)
        self._sessions = Sessions(limit=capacity)
        self._moments = Moments(observation_dim)
        self._rng = np.random.default_rng(check_count("seed", seed, low=0))

    @property
    def capacity(self) -> int:
        """The most transitions it holds."""
        return self._store.capacity

    def __len__(self) -> int:
        return len(self._store)

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
        """Add a block of N transitions; those they push out compete for the long term."""
        rows = self._store.pack(
            observation, action, reward, next_observation, terminated, truncated
        )
        labels = stream_labels(streams, len(rows))
        at = self._store.layout
        gains = rows[:, at.reward]
        ids = np.empty(len(rows), dtype=np.int64)
        step = len(self._places.ring)  # the rows compared must have been written before
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            ids[part] = self._add(rows[part])
        if self.strategy == "reward":
            ended = (rows[:, at.terminated] + rows[:, at.truncated]) > 0
            for session in self._sessions.follow(labels, ids, gains, ended):
                self._rank(session.ids, np.abs(discounted_returns(session.reward, self.discount)))
        return ids

    def _add(self, rows: Float32) -> Int64:
        count = len(rows)
        coverage = self.strategy == "coverage"
        if coverage:
            self._moments.add(rows)
        rank = np.zeros(count)
        if self.strategy == "reward":  # what is known before the session ends
            rank = np.abs(rows[:, self._store.layout.reward].astype(np.float64))
        key = self._rng.random(count)
        probes = self._rng.random((count, self.probes)) if coverage else np.empty((count, 0))
        near = Neighbours(self._store.rows, self._moments.scale, self.radius, probes)
        slots = np.empty(count, dtype=np.int64)
        place(self._places, rank, key, near, slots)
        ids = self._store.put(slots, rows)
        self._index.assign(slots, ids)
        return ids

    def sample(self, batch_size: int, query: ArrayLike | None = None) -> Batch:
        """Draw half of `batch_size` from either part (the odd one from the newest)."""
        size = check_sample(batch_size, len(self))
        newest, kept = int(self._places.counts[1]), int(self._places.counts[3])
        old = size // 2 if kept else 0
        points = self._rng.random(size)
        slots = np.empty(size, dtype=np.int64)
        slots[old:] = self._places.ring[(points[old:] * newest).astype(np.int64)]
        slots[:old] = self._places.heap[(points[:old] * kept).astype(np.int64)]
        return self._store.batch(slots)

    def update(self, ids: ArrayLike, td_errors: ArrayLike) -> None:
        """Rank by surprise; ids no longer held are skipped. Other strategies ignore it."""
        if self.strategy == "surprise":
            names, errors = check_feedback(ids, td_errors)
            self._rank(names, np.abs(errors))

    def _rank(self, ids: Int64, rank: Float64) -> None:
        slots = self._index.slots(ids)
        held = slots >= 0
        rerank(self._places, slots[held], rank[held])

    def stop_exploring(self) -> None:
        """Nothing: no draw is reward-driven."""

    def stats(self) -> dict[str, float]:
        """How many transitions are the newest, and how many are kept for the long term."""
        return {
            "size": float(len(self)),
            "short_term": float(self._places.counts[1]),
            "long_term": float(self._places.counts[3]),
        }

    def state(self) -> State:
        """Everything needed to continue exactly where it stands, the rng included."""
        store = self._store.state()
        config: dict[str, object] = {
            "knobs": {
                "strategy": self.strategy,
                "discount": self.discount,
                "radius": self.radius,
                "probes": self.probes,
            },
            "store": store.config,
            "rng": rng_state(self._rng),
        }
        places = {f"places_{name}": array for name, array in self._places._asdict().items()}
        own = {**self._sessions.arrays(), **self._moments.arrays()}
        return State(config, {**store.arrays, **places, **own})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild a memory from `state()`."""
        config: Any = state.config
        arrays: Any = state.arrays
        store = Store.from_state(State(config["store"], arrays))
        replay = cls(store.capacity, store.observation_dim, store.action_dim, **config["knobs"])
        replay._store = store
        replay._places = Places(*(arrays[f"places_{name}"].copy() for name in Places._fields))
        replay._index = IdIndex(store.ids)
        replay._sessions = Sessions.from_arrays(store.capacity, arrays)
        replay._moments = Moments.from_arrays(arrays)
        replay._rng = rng_from_state(config["rng"])
        return replay

    def save(self, path: str | Path) -> None:
        """Write one file that `load_replay` reads back."""
        save(path, self.KIND, self.state())

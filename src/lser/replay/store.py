"""Where transitions lie: one packed float32 row each, under ids that never repeat."""

from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lser.replay.base import (
    State,
    all_plain,
    as_flags,
    as_floats,
    check_choice,
    check_count,
    plain_flags,
    plain_floats,
)
from lser.replay.packing import gather, pack
from lser.types import Batch, Bool, Float32, Int64

Storage = Literal["memory", "memmap"]


class Layout(NamedTuple):
    """Which columns of a packed row hold what; the two flags are 0.0 or 1.0."""

    observation: slice
    action: slice
    reward: int
    next_observation: slice
    terminated: int
    truncated: int
    width: int

    @classmethod
    def of(cls, observation_dim: int, action_dim: int) -> Self:
        """The layout [observation | action | reward | next_observation | two flags]."""
        reward = observation_dim + action_dim
        ends = reward + 1 + observation_dim
        return cls(
            slice(0, observation_dim),
            slice(observation_dim, reward),
            reward,
            slice(reward + 1, ends),
            ends,
            ends + 1,
            ends + 2,
        )


class Store:
    """A fixed number of slots for packed transitions, used as a ring or slot by slot.

    A memory uses either `append` (a ring: slot = id % capacity) or `put` (it picks the slots),
    never both on one store. ``storage="memmap"`` keeps the rows in a file at `path`, for
    capacities beyond RAM; the file must not exist yet and is the caller's to remove.
    """

    def __init__(
        self,
        capacity: int,
        observation_dim: int,
        action_dim: int,
        *,
        storage: Storage = "memory",
        path: str | Path | None = None,
    ) -> None:
        self.capacity = check_count("capacity", capacity)
        self.observation_dim = check_count("observation_dim", observation_dim)
        self.action_dim = check_count("action_dim", action_dim)
        self.storage = check_choice("storage", storage, ("memory", "memmap"))
        self.path = None if path is None else Path(path)
        self.layout = Layout.of(self.observation_dim, self.action_dim)
        self.rows = self._allocate()  # (capacity, width)
        self.ids: Int64 = np.full(self.capacity, -1, np.int64)
        self._ones: Float32 = np.ones(0, np.float32)
        self._fields = tuple(np.s_[:, c] for c in self.layout[:4])  # as `Batch` has them
        self.written = 0
        self.size = 0

    def __len__(self) -> int:
        return self.size

    def pack(
        self,
        observation: ArrayLike,
        action: ArrayLike,
        reward: ArrayLike,
        next_observation: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike,
    ) -> Float32:
        """Check a block of N transitions and lay it out as packed rows, (N, width)."""
        given: Any = (observation, action, reward, next_observation, terminated, truncated)
        block = given
        if not all_plain(*given):
            try:
                block = (*map(plain_floats, given[:4]), *map(plain_flags, given[4:]))
            except (TypeError, ValueError):
                return self._pack_with_care(*given)
        if self.fits(*block):
            rows = np.empty((len(block[2]), self.layout.width), np.float32)
            s, a, r, t, ends, cut = block
            if pack(s, a, r, t, ends, cut, rows):
                return rows
        return self._pack_with_care(*given)

    def fits(self, s: Any, a: Any, r: Any, t: Any, ends: Any, cut: Any) -> bool:
        """Whether the shapes of six arrays are those of a block."""
        n = len(r) if r.ndim else -1
        return bool(
            s.shape == t.shape == (n, self.observation_dim)
            and a.shape == (n, self.action_dim)
            and r.shape == ends.shape == cut.shape == (n,)
        )

    def _pack_with_care(
        self,
        observation: ArrayLike,
        action: ArrayLike,
        reward: ArrayLike,
        next_observation: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike,
    ) -> Float32:
        """`pack` step by step: slower, but it can say which argument is wrong."""
        at, width = self.layout, self.observation_dim
        observation = as_floats("observation", observation, (None, width))
        count = observation.shape[0]
        rows = np.empty((count, at.width), np.float32)
        rows[:, at.observation] = observation
        rows[:, at.action] = as_floats("action", action, (count, self.action_dim))
        rows[:, at.reward] = as_floats("reward", reward, (count,))
        following = as_floats("next_observation", next_observation, (count, width))
        rows[:, at.next_observation] = following
        rows[:, at.terminated] = as_flags("terminated", terminated, count)
        rows[:, at.truncated] = as_flags("truncated", truncated, count)
        return rows

    def put(self, slots: Int64, rows: Float32) -> Int64:
        """Write packed rows into distinct slots; returns their new ids."""
        ids = np.arange(self.written, self.written + len(rows), dtype=np.int64)
        self.size += int(np.count_nonzero(self.ids[slots] < 0))
        self.rows[slots] = rows
        self.ids[slots] = ids
        self.written += len(rows)
        return ids

    def append(self, rows: Float32) -> Int64:
        """Write packed rows in ring order, over the oldest; returns their ids.

        A block larger than the capacity leaves its last `capacity` rows.
        """
        ids = np.arange(self.written, self.written + len(rows), dtype=np.int64)
        kept, keep = ids[-self.capacity :], rows[-self.capacity :]
        start = int(kept[0]) % self.capacity if len(kept) else 0
        first = min(len(keep), self.capacity - start)  # before the ring wraps
        self.rows[start : start + first] = keep[:first]
        self.ids[start : start + first] = kept[:first]
        self.rows[: len(keep) - first] = keep[first:]
        self.ids[: len(keep) - first] = kept[first:]
        self.written += len(rows)
        self.size = min(self.written, self.capacity)
        return ids

    def batch(self, slots: Int64, weights: Float32 | None = None) -> Batch:
        """Gather the rows of `slots` once."""
        rows, flags, ids = self.blank(len(slots))
        gather(self.rows, self.ids, slots, rows, flags, ids)
        return self.wrap(rows, flags, ids, weights)

    def blank(self, count: int) -> tuple[Float32, Bool, Int64]:
        """Rows, flags (2, count) and ids for `gather` to fill."""
        rows = np.empty((count, self.layout.width), np.float32)
        return rows, np.empty((2, count), np.bool_), np.empty(count, np.int64)

    def wrap(self, rows: Float32, flags: Bool, ids: Int64, weights: Float32 | None = None) -> Batch:
        """A batch of what `gather` filled; its float fields are views into `rows`."""
        if weights is None:
            if len(self._ones) != len(ids):
                self._ones = np.ones(len(ids), np.float32)
            weights = self._ones.copy()  # a third of the time of np.ones
        observation, action, reward, following = self._fields
        return Batch(
            rows[observation],
            rows[action],
            rows[reward],
            rows[following],
            flags[0],
            flags[1],
            ids,
            weights,
        )

    def slots(self, ids: ArrayLike) -> Int64:
        """The slots of `ids` in a store used as a ring, -1 where one is no longer held."""
        ids = np.asarray(ids, np.int64)
        slots = ids % self.capacity
        return np.where((ids >= 0) & (self.ids[slots] == ids), slots, -1)

    def state(self) -> State:
        """The settings and the occupied rows, for `persistence`."""
        used = np.flatnonzero(self.ids >= 0)
        top = int(used[-1]) + 1 if len(used) else 0
        config: dict[str, object] = {
            "capacity": self.capacity,
            "observation_dim": self.observation_dim,
            "action_dim": self.action_dim,
            "storage": self.storage,
            "path": None if self.path is None else str(self.path),
            "written": self.written,
        }
        rows, ids = self.rows[:top], self.ids[:top]
        if len(used) < top:  # what was never written is whatever the memory held before
            rows = np.where(ids[:, None] >= 0, rows, np.float32(0))
        return State(config, {"rows": rows, "ids": ids})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """A store with the contents of `state`; its config is as `state()` gave it."""
        config = dict(state.config)
        written = config.pop("written")
        store = cls(**config)  # type: ignore[arg-type]  # checked by the constructor
        rows, ids = state.arrays["rows"], state.arrays["ids"]
        if rows.shape != (len(ids), store.layout.width) or len(ids) > store.capacity:
            raise ValueError(f"rows has shape {rows.shape}, which does not fit the store {config}")
        if store.storage == "memory" and len(ids) == store.capacity and _own(rows):
            store.rows = rows  # nobody else has it: it was read from a file
        else:
            store.rows[: len(ids)] = rows
        store.ids[: len(ids)] = ids
        store.written = check_count("written", written, low=0)
        store.size = int(np.count_nonzero(store.ids >= 0))
        return store

    def _allocate(self) -> Float32:
        shape = (self.capacity, self.layout.width)
        if self.storage == "memory":
            if self.path is not None:
                raise ValueError(f"path={str(self.path)!r} is only for storage='memmap'")
            return np.empty(shape, np.float32)
        if self.path is None:
            raise ValueError("path=None: storage='memmap' needs the path of a new file")
        if self.path.exists():
            raise ValueError(f"path={str(self.path)!r} exists; the rows need a new file")
        return np.memmap(self.path, np.float32, "w+", shape=shape)


def _own(rows: NDArray[np.generic]) -> TypeGuard[Float32]:
    """Whether an array is float32 as kernels take it, and no view of another."""
    return rows.dtype == np.float32 and rows.flags.owndata and rows.flags.carray

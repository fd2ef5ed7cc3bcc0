"""Where transitions lie: one packed float32 row each, under ids that never repeat."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn, Self, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lser.checks import (
    as_flags,
    as_floats,
    check_choice,
    check_count,
    check_size,
    plain_flags,
    plain_floats,
)
from lser.files import State
from lser.replay.mapped import map_rows
from lser.replay.rows import (
    LARGEST,
    append_rows,
    empty_slots,
    find_held,
    gather,
    name_writes,
    pack,
    ring_writes,
    write_rows,
)
from lser.types import Batch, Bool, Float32, Float64, Int64, Layout

Storage = Literal["memory", "memmap", "none"]
Write = Callable[[], None]  # changes the store all at once
# A block, in the order of `Transitions`: as it is handed over, and as kernels take it.
Given = tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike, ArrayLike, ArrayLike]
Plain = tuple[Float32, Float32, Float32, Float32, Bool, Bool]
_PART = 1 << 16  # rows
_FLOAT32, _BOOL, _INT64 = np.dtype(np.float32), np.dtype(np.bool_), np.dtype(np.int64)


class Store:
    """A fixed number of slots for packed transitions, used as a ring or slot by slot.

    An id is the number of the write times the capacity, plus the slot: so it never repeats, grows
    with time, and leads to its slot.

    ``storage="memmap"`` keeps the rows in a file at `path`, for capacities beyond RAM; the file
    must not exist yet (with `reopen` it may be one that a killed process has left) and is the
    caller's to remove. ``storage="none"`` keeps no rows: they lie with somebody else, in the same
    slots.
    """

    def __init__(
        self,
        capacity: int,
        observation_dim: int,
        action_dim: int,
        *,
        storage: Storage = "memory",
        path: str | Path | None = None,
        reopen: bool = False,
    ) -> None:
        self.capacity = check_size("capacity", capacity, most=2**38)
        self.observation_dim = check_size("observation_dim", observation_dim)
        self.action_dim = check_size("action_dim", action_dim)
        self.storage = check_choice("storage", storage, ("memory", "memmap", "none"))
        self.layout = Layout.of(self.observation_dim, self.action_dim)
        # (capacity, width)
        self.rows = self._allocate(None if path is None else Path(path), reopen)
        self.ids: Int64 = np.full(self.capacity, -1, np.int64)
        self.counts: Int64 = np.zeros(2, np.int64)  # how many are held, and were ever written
        self._ones: Float32 = np.ones(0, np.float32)
        self._lent: Float32 | None = None
        self._fields = tuple(np.s_[:, c] for c in self.layout[:4])  # as `Batch` has them

    def __len__(self) -> int:
        return self.counts.item(0)

    @property
    def written(self) -> int:
        """How many transitions were ever written."""
        return self.counts.item(1)

    def plain(self, block: Given) -> Plain:
        """A block as arrays of the right types and shapes; whether all is finite is not checked."""
        arrays: Any = block
        if not _are_plain(*arrays):
            try:
                arrays = (*map(plain_floats, block[:4]), *map(plain_flags, block[4:]))
            except (TypeError, ValueError):
                return self.checked(block)
        s, a, r, t, ends, cut = arrays
        n = len(r) if r.ndim else -1
        if (
            s.shape == t.shape == (n, self.observation_dim)
            and a.shape == (n, self.action_dim)
            and r.shape == ends.shape == cut.shape == (n,)
        ):
            return s, a, r, t, ends, cut
        return self.checked(block)

    def pack(self, block: Given) -> Float32:
        """Check a block of N transitions and lay it out as packed rows, (N, width)."""
        return self.packed(block)[0]

    def packed(self, block: Given) -> tuple[Float32, Plain]:
        """What `pack` returns, and the block as arrays."""
        plain = self.plain(block)
        rows = np.empty((len(plain[2]), self.layout.width), np.float32)
        if not pack(*plain, rows):
            self.refuse(block)
        return rows, plain

    def checked(self, block: Given) -> Plain:
        """`plain`, argument by argument: slower, but its errors say which one is wrong."""
        observation, action, reward, next_observation, terminated, truncated = block
        wide = self.observation_dim
        n = _most_common_length(observation, action, reward, next_observation, terminated)
        return (
            as_floats("observation", observation, (n, wide)),
            as_floats("action", action, (n, self.action_dim)),
            as_floats("reward", reward, (n,)),
            as_floats("next_observation", next_observation, (n, wide)),
            plain_flags(as_flags("terminated", terminated, n)),
            plain_flags(as_flags("truncated", truncated, n)),
        )

    def refuse(self, block: Given) -> NoReturn:
        """Raise the ValueError that a block deserves which a kernel would not take."""
        self.checked(block)
        raise AssertionError("a block without fault was refused")

    def put(self, slots: Int64, rows: Float32) -> Int64:
        """Write packed rows into slots; of a slot named twice the last stays. Returns their ids."""
        ids, write = self.putting(slots, rows)
        write()
        return ids

    def putting(self, slots: Int64, rows: Float32) -> tuple[Int64, Write]:
        """What `put` would return, and what does it: at once, and the same when done twice."""
        ids, written = np.empty(len(rows), np.int64), self.written
        name_writes(written, self.capacity, slots, ids)
        return ids, self._writing(slots, rows, ids, written + len(rows))

    def append(self, rows: Float32) -> Int64:
        """Write packed rows in ring order, over the oldest; returns their ids.

        A block larger than the capacity leaves its last `capacity` rows.
        """
        ids = np.empty(len(rows), np.int64)
        append_rows(self.rows, self.ids, self.counts, np.ascontiguousarray(rows), ids)
        return ids

    def appending(self, rows: Float32) -> tuple[Int64, Int64, Write]:
        """What `append` would return, the slots of what stays, and what does it, as `putting`."""
        first, count = self.written, len(rows)
        slots, ids = np.empty(count, np.int64), np.empty(count, np.int64)
        ring_writes(first, self.capacity, slots, ids)
        kept, written = ids, first + count
        if count > self.capacity:
            last = np.s_[-self.capacity :]
            slots, rows, kept = slots[last], rows[last], ids[last]
        return ids, slots, self._writing(slots, rows, kept, written)

    def _writing(self, slots: Int64, rows: Float32, ids: Int64, written: int) -> Write:
        arrays = (self.rows, self.ids, self.counts, slots, np.ascontiguousarray(rows), ids)
        return partial(write_rows, *arrays, written)

    def forget(self, slots: Int64) -> None:
        """Empty slots."""
        empty_slots(self.ids, self.counts, slots)

    def batch(self, slots: Int64, weights: Float32 | None = None) -> Batch:
        """Gather the rows of `slots` once."""
        rows, flags, ids = self.blank(len(slots))
        gather(self.rows, self.ids, slots, rows, flags, ids)
        return self.wrap(rows, flags, ids, weights)

    def lend(self, rows: Float32) -> None:
        """Put the rows of the next batch into `rows` (b, width), if it is as large."""
        self._lent = rows

    def blank(self, count: int) -> tuple[Float32, Bool, Int64]:
        """Rows, flags (2, count) and ids for `gather` to fill."""
        lent, self._lent = self._lent, None
        if lent is None or len(lent) != count:
            rows = np.empty((count, self.layout.width), _FLOAT32)
        else:
            rows = lent
        return rows, np.empty((2, count), _BOOL), np.empty(count, _INT64)

    def wrap(self, rows: Float32, flags: Bool, ids: Int64, weights: Float32 | None = None) -> Batch:
        """A batch of what `gather` filled; its float fields are views into `rows`."""
        if weights is None:
            if len(self._ones) != len(ids):
                self._ones = np.ones(len(ids), np.float32)
            weights = self._ones.copy()  # a third of the time of np.ones
        s, a, r, t = self._fields
        fields = (rows[s], rows[a], rows[r], rows[t], flags[0], flags[1], ids, weights)
        return tuple.__new__(Batch, fields)  # half of the time of Batch(...)

    def slots(self, ids: ArrayLike) -> Int64:
        """The slots of `ids`, -1 where one is no longer held."""
        ids = np.asarray(ids, np.int64)
        slots = ids % self.capacity
        return np.where((ids >= 0) & (self.ids[slots] == ids), slots, -1)

    def held(self, ids: Int64, values: Float64) -> tuple[Int64, Float64]:
        """The slots of those `ids` that are still held, and their `values`."""
        slots, theirs = np.empty(len(ids), np.int64), np.empty(len(ids))
        count = find_held(self.ids, ids, values, slots, theirs)
        return slots[:count], theirs[:count]

    def state(self) -> State:
        """The settings and the occupied rows, as a file holds them."""
        used = np.flatnonzero(self.ids >= 0)
        top = int(used[-1]) + 1 if len(used) else 0
        config: dict[str, object] = {
            "capacity": self.capacity,
            "observation_dim": self.observation_dim,
            "action_dim": self.action_dim,
            "storage": self.storage,
            "written": self.written,
        }
        rows, ids = self.rows[:top], self.ids[:top]
        if len(used) < top:  # what was never written is whatever the memory held before
            rows = np.where(ids[:, None] >= 0, rows, np.float32(0))
        return State(config, {"rows": rows, "ids": ids})

    @classmethod
    def from_state(cls, state: State, *, path: str | Path | None = None) -> Self:
        """A store with the contents of `state`; the rows of a memmap go to a file at `path`."""
        config = dict(state.config)
        written = check_count("written", config.pop("written"), low=0)
        store = cls(**config, path=path, reopen=True)  # type: ignore[arg-type]  # checked by the constructor
        rows, ids = state.arrays["rows"], np.asarray(state.arrays["ids"], np.int64)
        if ids.ndim != 1 or rows.shape != (len(ids), store.rows.shape[1]):
            raise ValueError(f"rows has shape {rows.shape}, which does not fit the store {config}")
        _check_ids(ids, store.capacity, written)
        for first in range(0, len(ids), _PART):
            if not _are_finite(rows[first : first + _PART]):
                raise ValueError("the saved rows hold numbers that are not finite")
        if store.storage == "memory" and len(ids) == store.capacity and _own(rows):
            store.rows = rows  # nobody else has it: it was read from a file
        else:
            for first in range(0, len(ids), _PART):  # a map need not fit into memory
                store.rows[first : min(first + _PART, len(ids))] = rows[first : first + _PART]
        store.ids[: len(ids)] = ids
        store.counts[:] = np.count_nonzero(ids >= 0), written
        return store

    def _allocate(self, path: Path | None, reopen: bool) -> Float32:
        shape = (self.capacity, 0 if self.storage == "none" else self.layout.width)
        if self.storage != "memmap":
            if path is not None:
                raise ValueError(f"path={str(path)!r} is only for storage='memmap'")
            return np.empty(shape, np.float32)
        if path is None:
            raise ValueError("path=None: storage='memmap' needs the path of a new file")
        return map_rows(self, path, shape, reopen=reopen)


def _are_plain(s: Any, a: Any, r: Any, t: Any, ends: Any, cut: Any) -> bool:
    """Whether a block is arrays as kernels take them, in one expression: each call costs."""
    try:
        return (
            s.dtype is a.dtype is r.dtype is t.dtype is _FLOAT32
            and ends.dtype is cut.dtype is _BOOL
            and s.flags.carray
            and a.flags.carray
            and r.flags.carray
            and t.flags.carray
            and ends.flags.carray
            and cut.flags.carray
            and type(s) is type(a) is type(r) is type(t) is type(ends) is type(cut) is np.ndarray
        )
    except AttributeError:
        return False


def _most_common_length(*arrays: ArrayLike) -> int:
    """The length that most of a block's arrays have; 1 where none has one."""
    lengths = []
    for array in arrays:
        with suppress(TypeError):  # it has none
            lengths.append(len(array))  # type: ignore[arg-type]
    return max(lengths, key=lengths.count, default=1)


def _check_ids(ids: Int64, capacity: int, written: int) -> None:
    """Refuse ids that a store of this capacity cannot have given after so many writes."""
    held = np.flatnonzero(ids >= 0)
    if len(ids) > capacity or (ids < -1).any() or (ids[held] % capacity != held).any():
        raise ValueError("the saved ids do not belong to their slots")
    if len(held) and ids.max() // capacity >= written:
        raise ValueError(f"written={written}, but a saved id is from a later write")


def _are_finite(rows: NDArray[np.generic]) -> bool:
    """Whether rows of any type are numbers that float32 has."""
    if rows.dtype == np.float32:
        return bool(np.isfinite(rows).all())
    return bool((np.abs(rows.astype(np.float64)) <= LARGEST).all())


def _own(rows: NDArray[np.generic]) -> TypeGuard[Float32]:
    """Whether an array is float32 as kernels take it, and no view of another."""
    return rows.dtype == np.float32 and rows.flags.owndata and rows.flags.carray

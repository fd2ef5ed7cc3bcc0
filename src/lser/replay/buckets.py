"""The bucket index: code -> ids in reward order, and the memory its kernels work in."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from lser.replay import compiled, direct, draw, filing, header, index
from lser.replay.base import check_count
from lser.replay.blocks import WIDE
from lser.replay.compiled import UInt32
from lser.replay.foresight import GROUP, PLANNED
from lser.replay.hashing import SimHash
from lser.replay.store import Store
from lser.types import Batch, Float32, Int64

_FIRST_ROOM = 64  # buckets
_FIRST_ENTRIES = 256
_COUNTERS = {
    "dropped": header.DROPPED,
    "draws": header.DRAWS,
    "items": header.ITEMS,
    "greedy": header.GREEDY,
    "filled": header.FILLED,
    "fallbacks": header.FALLBACKS,
}


class Rules(NamedTuple):
    """The choices the kernels read from the header."""

    fifo: bool = False
    evict: bool = False
    rekeyed: bool = False  # order keys change after storing
    per_item: bool = False
    from_memory: bool = False
    repeat: bool = True
    uniform: bool = False


class Buckets:
    """Files the transitions of a store under codes, each code's in order of their keys.

    The kernels write the store's rows and ids by themselves; `sync` tells the store.
    """

    def __init__(self, store: Store, rules: Rules) -> None:
        if store.capacity >= 2**31:
            raise ValueError(f"capacity must be below 2**31, got {store.capacity}")
        self._store = store
        self.rules = rules
        self._h: Int64 = np.zeros(header.LENGTH, np.int64)
        self._held: dict[int, NDArray[np.generic]] = {}  # keeps alive what the header points to
        self._set(header.CAPACITY, store.capacity)
        self._set(header.SIZE, len(store))
        self._set(header.WRITTEN, store.written)
        self._set(header.WIDTH, store.layout.width)
        self._set(header.REWARD, store.layout.reward)
        self._point(header.ROWS, store.rows)
        self._point(header.IDS, store.ids)
        tracked = rules.fifo or rules.rekeyed
        self._set(header.TRACKED, tracked)
        for place in (header.KEYS, header.HOMES):
            self._point(place, np.empty(store.capacity if tracked else 1, np.int32))
        self._point(header.FREE, np.full(header.CLASSES, -1, np.int64))
        self._set(header.SPARE, -1)
        self._point(header.PLAN, np.empty((PLANNED, GROUP), np.int64))
        self._set(header.RANKED, -1)
        self._set(header.FIFO, rules.fifo)
        self._set(header.EVICT, rules.evict)
        self._set(header.PER_ITEM, rules.per_item)
        self._set(header.FROM_MEMORY, rules.from_memory)
        self._set(header.REPEAT, rules.repeat)
        self._set(header.UNIFORM, rules.uniform)
        self._make_room(_FIRST_ROOM)
        self._make_arena(_FIRST_ENTRIES)

    def __len__(self) -> int:
        return int(self._h[header.SIZE])

    @property
    def written(self) -> int:
        """How many transitions were ever stored; the next one's id."""
        return int(self._h[header.WRITTEN])

    @property
    def counters(self) -> dict[str, int]:
        """What was dropped and how draws went so far."""
        return {name: int(self._h[place]) for name, place in _COUNTERS.items()}

    @counters.setter
    def counters(self, values: dict[str, int]) -> None:
        for name, place in _COUNTERS.items():
            self._set(place, check_count(name, values[name], low=0))

    @property
    def rng(self) -> int:
        """The state of the generator behind all random choices."""
        return int(self._h[header.RNG])

    @rng.setter
    def rng(self, state: object) -> None:
        self._set(header.RNG, check_count("rng", state, low=-(2**63), high=2**63 - 1))

    def insert(self, rows: Float32, codes: UInt32) -> tuple[Int64, Int64]:
        """Store packed rows under their codes; returns ids and slots, -1 for a dropped row."""
        ids, slots = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        done = index.extend(self._h, rows, codes, ids, slots, 0)
        while done < len(rows):
            self._grow()
            done = index.extend(self._h, rows, codes, ids, slots, done)
        return ids, slots

    def attach(self, encoder: SimHash) -> None:
        """Prepare `insert_plain` and `replay`, which hash with this encoder as it is now."""
        vectors, shift, scale = encoder.projection
        self._set(header.DIM, encoder.observation_dim)
        self._set(header.BITS, encoder.bits)
        self._set(header.COLUMNS, vectors.shape[1])
        self._point(header.VECTORS, vectors)
        self._point(header.SHIFT, shift)
        self._point(header.SCALE, scale)
        self._point(header.SCRATCH, np.empty(2 + self._store.layout.width, np.int64))
        none, flags = np.empty((0, encoder.observation_dim), np.float32), np.empty(0, np.bool_)
        action = np.empty((0, self._store.action_dim), np.float32)
        self.insert_plain(none, action, none[:, 0].copy(), none, flags, flags)
        self.replay(none[:, 0].copy(), 0, 0.0)
        compiled.refuse_others(direct.extend_plain)
        compiled.refuse_others(direct.replay_plain)

    def insert_plain(self, s: Any, a: Any, r: Any, t: Any, ends: Any, cut: Any) -> Int64 | None:
        """Store a block as it is; returns ids, or None, nothing stored, if it needs a closer look.

        Numba looks at types, layout and dimensions of all arguments, so nothing here has to.
        """
        try:
            n = len(r)
            ids = np.empty(n, np.int64)
            done = direct.extend_plain(self._h, s, a, r, t, ends, cut, ids, 0)
        except TypeError:
            return None
        if done < 0:
            return None
        while done < n:
            self._grow()
            done = direct.extend_plain(self._h, s, a, r, t, ends, cut, ids, done)
        return ids

    def pick(self, code: int, count: int, greedy: float) -> Int64:
        """The slots that a query of this code replays."""
        slots = np.empty(count, np.int64)
        draw.pick(self._h, code, greedy, slots)
        return slots

    def replay(self, query: Any, count: int, greedy: float) -> Batch | None:
        """`pick` for a query (O,), hashed with the attached encoder, and gather.

        Returns None, nothing drawn, if the arguments need a closer look.
        """
        rows, flags, ids = self._store.blank(count)
        try:
            if not direct.replay_plain(self._h, query, greedy, rows, flags, ids):
                return None
        except TypeError:
            return None
        return self._store.wrap(rows, flags, ids)

    def rekey(self, slots: Int64, ids: Int64, keys: Float32) -> None:
        """Move entries still held under `ids` to the places of new order keys."""
        done = index.rekey(self._h, slots, ids, keys, 0)
        while done < len(slots):
            self._grow()
            done = index.rekey(self._h, slots, ids, keys, done)

    def sizes(self) -> Int64:
        """The number of transitions under each occupied code, in no particular order."""
        listed = self._held[header.LISTED_BUCKETS][: int(self._h[header.OCCUPIED])]
        sizes: Int64 = self._held[header.BUCKETS][listed, header.COUNT]
        return sizes

    def sync(self) -> None:
        """Tell the store what the kernels wrote."""
        self._store.written = self.written
        self._store.size = len(self)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The index as named arrays: codes, their sizes, and each one's entries, best first."""
        occupied = int(self._h[header.OCCUPIED])
        sizes, slots = np.empty(occupied, np.int64), np.empty(len(self), np.int64)
        keys = np.empty(len(self), np.float32)
        filing.write_out(self._h, sizes, slots, keys)
        codes = self._held[header.LISTED_CODES][:occupied].copy()
        return {"codes": codes, "sizes": sizes, "slots": slots, "keys": keys}

    @classmethod
    def from_arrays(
        cls, store: Store, rules: Rules, arrays: dict[str, NDArray[np.generic]]
    ) -> Self:
        """Rebuild the index over a restored store; ValueError where they do not belong together."""
        buckets = cls(store, rules)
        codes, sizes = arrays["codes"].astype(np.uint32), arrays["sizes"].astype(np.int64)
        slots, keys = arrays["slots"].astype(np.int64), arrays["keys"].astype(np.float32)
        whole = len(store) == len(slots) == len(keys) == sizes.sum() and len(codes) == len(sizes)
        if not whole or (sizes < 1).any() or len(np.unique(codes)) != len(codes):
            raise ValueError("the saved index does not cover the saved transitions")
        if len(slots) and not 0 <= slots.min() <= slots.max() < len(slots):
            raise ValueError("the saved index names slots outside the saved transitions")
        buckets._make_room(max(_FIRST_ROOM, len(codes)))
        buckets._make_arena(max(_FIRST_ENTRIES, filing.room_for(sizes)))
        filing.read_in(buckets._h, codes, sizes, slots, keys)
        buckets.check()
        return buckets

    def refiled(self, codes: UInt32) -> Self:
        """The same transitions under other codes, given by slot."""
        before = self.arrays()
        slots, keys = before["slots"], before["keys"]
        under = codes[slots]
        order = np.lexsort((self._store.ids[slots], keys, under))
        names, starts, sizes = np.unique(under[order], return_index=True, return_counts=True)
        # best first: each bucket backwards
        order = order[np.repeat(2 * starts + sizes - 1, sizes) - np.arange(len(order))]
        arrays = {"codes": names, "sizes": sizes, "slots": slots[order], "keys": keys[order]}
        self.sync()
        buckets = self.from_arrays(self._store, self.rules, arrays)
        buckets.counters, buckets.rng = self.counters, self.rng
        return buckets

    def check(self) -> None:
        """Raise ValueError if any invariant of the index is broken."""
        found = filing.problem(self._h, np.zeros(self._store.capacity, np.int64))
        if found:
            raise ValueError(f"the bucket index is damaged: {filing.PROBLEMS[found]}")

    def _set(self, place: int, value: int) -> None:
        self._h[place] = value

    def _point(self, place: int, array: NDArray[np.generic]) -> None:
        self._held[place] = array
        self._h[place] = array.ctypes.data

    def _grow(self) -> None:
        h = self._h
        if h[header.SPARE] < 0 and h[header.TOP] >= h[header.ROOM]:
            self._make_room(2 * int(h[header.ROOM]))
            return
        classes = self._held[header.BUCKETS][: h[header.TOP], header.CLASS]
        longest = 2 ** (int(classes.max(initial=1)) + 1) + 2 * WIDE
        room, top = int(h[header.ARENA_ROOM]), int(h[header.ARENA_TOP])
        self._make_arena(max(room + room // 2, top + longest))

    def _make_room(self, buckets: int) -> None:
        """Reallocate everything that is per bucket."""
        old = int(self._h[header.ROOM])
        self._set(header.ROOM, buckets)
        ranking = buckets if self.rules.evict else 1
        for place, shape, dtype in (
            (header.BUCKETS, (buckets, header.FIELDS), np.int64),
            (header.LISTED_CODES, (buckets,), np.uint32),
            (header.LISTED_BUCKETS, (buckets,), np.int32),
            (header.RANKING, (ranking,), np.int32),
        ):
            array: NDArray[np.generic] = np.empty(shape, dtype)
            if place in self._held and old:
                before = self._held[place][: len(array)]
                array[: len(before)] = before
            self._point(place, array)
        table = np.full(1 << (2 * buckets - 1).bit_length(), -1, np.int64)
        self._set(header.MASK, len(table) - 1)
        self._point(header.TABLE, table)
        filing.relink(self._h)

    def _make_arena(self, room: int) -> None:
        spare = np.empty(room + 8, np.int64)
        skip = -spare.ctypes.data % 64 // 8  # blocks begin with a cache line
        arena = spare[skip : skip + room]
        if header.ARENA in self._held:
            top = int(self._h[header.ARENA_TOP])
            arena[:top] = self._held[header.ARENA][:top]
        self._set(header.ARENA_ROOM, room)
        self._point(header.ARENA, arena)

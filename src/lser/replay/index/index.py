"""The index as Python sees it: makes room, points the header at arrays, reads and writes it."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from lser.checks import check_count
from lser.compiled import UInt32
from lser.replay.index import calls
from lser.replay.index.blocks import WIDE
from lser.replay.index.dump import PROBLEMS, room_for
from lser.replay.index.layout import BUCKET, CLASSES, HEADER
from lser.types import Float32, Int64

COUNTERS = ("dropped", "draws", "items", "greedy", "filled", "fallbacks")
POINTERS = (
    *("ids", "arena", "free_runs", "buckets", "table", "listed_codes", "listed_buckets"),
    *("keys", "homes", "rng", "rows", "planes", "shift", "scale", "features", "sums"),
)
_FIRST_BUCKETS = 64
_FIRST_WORDS = 256


class Rules(NamedTuple):
    """The choices that kernels read from the header."""

    fifo: bool = False
    evict: bool = False
    rekeyed: bool = False  # order keys change after storing
    per_item: bool = False
    from_memory: bool = False
    repeat: bool = True
    uniform: bool = False


class Newcomers(NamedTuple):
    """What kernels fill in for N newcomers, as `placing.place_all` says."""

    ids: Int64  # (N,)
    places: Int64  # (N + 1,) codes, then slots; and the newcomer to go on from

    @classmethod
    def of(cls, codes: UInt32) -> Self:
        """Newcomers of these codes, none of them placed."""
        newcomers = cls.uncoded(len(codes))
        newcomers.places[:-1] = codes
        return newcomers

    @classmethod
    def uncoded(cls, count: int) -> Self:
        """So many newcomers whose codes a kernel finds."""
        places = np.empty(count + 1, np.int64)
        places[count] = 0
        return cls(np.empty(count, np.int64), places)

    @property
    def begun(self) -> bool:
        """Whether any of them is placed."""
        return bool(self.places[-1] > 0)


class BucketIndex:
    """Files slots under codes, each code's in order of their keys; knows nothing of rows.

    `ids` (capacity,) is what each slot holds, -1 for nothing; the kernels write it. The first two
    numbers of the header, `counts`, are how many slots are held and how many writes there were.
    """

    def __init__(self, ids: Int64, rules: Rules) -> None:
        if len(ids) >= 2**31:
            raise ValueError(f"capacity must be below 2**31, got {len(ids)}")
        self.rules = rules
        self._header = np.zeros(1, HEADER)
        self.address = self._header.ctypes.data
        self.counts: Int64 = self._header.view(np.int64)[:2]
        self._alive: dict[int, NDArray[Any]] = {}  # by address: what the header points to
        self._set(capacity=len(ids), spare=-1, one=1, classes=CLASSES)
        self._point("ids", ids)
        self._point("rng", np.zeros(1, np.uint64))
        self._point("free_runs", np.full(CLASSES, -1, np.int64))
        tracked = rules.fifo or rules.rekeyed
        for name in ("keys", "homes"):
            self._point(name, np.empty(len(ids) if tracked else 1, np.int32))
        self._set(
            tracked=tracked,
            fifo=rules.fifo,
            evict=rules.evict,
            per_item=rules.per_item,
            from_memory=rules.from_memory,
            repeat=rules.repeat,
            uniform=rules.uniform,
        )
        self._make_buckets(_FIRST_BUCKETS)
        self._make_arena(_FIRST_WORDS)

    def __len__(self) -> int:
        return int(self.counts[0])

    @property
    def counters(self) -> dict[str, int]:
        """What was dropped and how draws went so far."""
        return {name: int(self._header[name][0]) for name in COUNTERS}

    @counters.setter
    def counters(self, values: dict[str, Any]) -> None:
        self._set(**{name: check_count(name, values[name], low=0) for name in COUNTERS})

    @property
    def generator(self) -> int:
        """The state of the generator behind all random choices, a word."""
        return int(self._held["rng"][0])

    @generator.setter
    def generator(self, state: object) -> None:
        self._held["rng"][0] = check_count("generator", state, low=0, high=2**64 - 1)

    def place(self, codes: UInt32, keys: Float32) -> tuple[Int64, Int64]:
        """File newcomers under their codes; returns ids and slots, -1 for one that was dropped."""
        newcomers = Newcomers.of(codes)
        self.place_rest(keys, newcomers)
        return newcomers.ids, newcomers.places[:-1]

    def place_rest(self, keys: Float32, newcomers: "Newcomers") -> None:
        """File those newcomers that are not filed yet."""
        while calls.place(self.address, keys, *newcomers) < len(keys):
            self.make_room()

    def pick(self, code: int, count: int, greedy: float) -> Int64:
        """The slots that a query of this code replays."""
        slots = np.empty(count, np.int64)
        calls.pick(self.address, code, greedy, slots)
        return slots

    def rekey(self, slots: Int64, ids: Int64, keys: Float32) -> None:
        """Move entries still held under `ids` to the places of new order keys."""
        done = 0
        while (done := calls.rekey(self.address, slots, ids, keys, done)) < len(slots):
            self.make_room()

    def sizes(self) -> Int64:
        """The number of slots under each occupied code, in no particular order."""
        listed = self._held["listed_buckets"][: self._get("occupied")]
        sizes: Int64 = self._held["buckets"]["count"][listed]
        return sizes

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The index as named arrays: codes, their sizes, and each one's entries, best first."""
        occupied = self._get("occupied")
        sizes, slots = np.empty(occupied, np.int64), np.empty(len(self), np.int64)
        keys = np.empty(len(self), np.float32)
        calls.write_out(self.address, sizes, slots, keys)
        codes = self._held["listed_codes"][:occupied].copy()
        return {"codes": codes, "sizes": sizes, "slots": slots, "keys": keys}

    def load(self, arrays: dict[str, Any], written: int) -> None:
        """Fill an empty index from `arrays()`; ValueError where they do not fit the ids."""
        codes, sizes = arrays["codes"].astype(np.uint32), arrays["sizes"].astype(np.int64)
        slots, keys = arrays["slots"].astype(np.int64), arrays["keys"].astype(np.float32)
        held = int(np.count_nonzero(self._held["ids"] >= 0))
        if any(array.ndim != 1 for array in (codes, sizes, slots, keys)):
            raise ValueError("the saved index is not made of vectors")
        whole = held == len(slots) == len(keys) == sizes.sum() and len(codes) == len(sizes)
        if not whole or (sizes < 1).any() or len(np.unique(codes)) != len(codes):
            raise ValueError("the saved index does not cover the saved transitions")
        if len(slots) and not 0 <= slots.min() <= slots.max() < len(slots):
            raise ValueError("the saved index names slots outside the saved transitions")
        if not np.isfinite(keys).all():
            raise ValueError("the saved index holds keys that are not finite")
        self._make_buckets(max(_FIRST_BUCKETS, len(codes)))
        self._make_arena(max(_FIRST_WORDS, room_for(sizes)))
        calls.read_in(self.address, codes, sizes, slots, keys)
        self.counts[1] = written
        self.check()

    def refiled(self, codes: UInt32) -> Self:
        """The same slots under other codes, given by slot."""
        before = self.arrays()
        slots, keys = before["slots"], before["keys"]
        under = codes[slots]
        order = np.lexsort((self._held["ids"][slots], keys, under))
        names, starts, sizes = np.unique(under[order], return_index=True, return_counts=True)
        # best first: each bucket backwards
        order = order[np.repeat(2 * starts + sizes - 1, sizes) - np.arange(len(order))]
        index = type(self)(self._held["ids"], self.rules)
        index.load(
            {"codes": names, "sizes": sizes, "slots": slots[order], "keys": keys[order]},
            int(self.counts[1]),
        )
        index.counters, index.generator = self.counters, self.generator
        return index

    def check(self) -> None:
        """Raise ValueError if any invariant of the index is broken."""
        found = calls.problem(self.address, np.zeros(self._get("capacity"), np.int64))
        if found:
            raise ValueError(f"the bucket index is damaged: {PROBLEMS[found]}")

    def attach(self, rows: Float32, projection: tuple[Any, Any, Any] | None, dim: int) -> None:
        """Prepare `calls.extend` and `calls.replay` over these rows, hashing by this projection."""
        self._set(dim=dim, width=rows.shape[1])
        self._point("rows", rows)
        if projection is not None:
            self._set(plane_count=len(projection[0]))
            for name, array in zip(("planes", "shift", "scale"), projection, strict=True):
                self._point(name, array)
            self._point("features", np.empty(dim))
            self._point("sums", np.empty(len(projection[0])))
        calls.prepare()

    def make_room(self) -> None:
        """Reallocate what a kernel found no room in."""
        h = self._header[0]
        if h["spare"] < 0 and h["bucket_top"] >= h["bucket_room"]:
            self._make_buckets(2 * int(h["bucket_room"]))
            return
        classes = self._held["buckets"]["size_class"][: h["bucket_top"]]
        longest = 2 ** (int(classes.max(initial=1)) + 1) + 2 * WIDE
        room, top = int(h["arena_room"]), int(h["arena_top"])
        self._make_arena(max(room + room // 2, top + longest))

    def _get(self, name: str) -> int:
        return int(self._header[name][0])

    def _set(self, **values: int) -> None:
        for name, value in values.items():
            self._header[name] = value

    @property
    def _held(self) -> dict[str, NDArray[Any]]:
        """The arrays that the header points to, by its names for them."""
        named = {name: int(self._header[name][0]) for name in POINTERS}
        return {name: self._alive[at] for name, at in named.items() if at}

    def _point(self, name: str, array: NDArray[Any]) -> None:
        self._publish({name: array})

    def _publish(self, arrays: dict[str, NDArray[Any]], *, relink: bool = False, **n: int) -> None:
        """Point the header at new arrays, and set numbers, all in one assignment.

        Whatever ends this before or after it leaves a header whose arrays are alive.
        """
        fresh = self._header.copy()
        for name, array in arrays.items():
            fresh[name] = array.ctypes.data
            self._alive[array.ctypes.data] = array
        for name, value in n.items():
            fresh[name] = value
        if relink:
            calls.relink(fresh.ctypes.data)
        self._header[:] = fresh
        used = {int(fresh[name][0]) for name in POINTERS}
        self._alive = {at: array for at, array in self._alive.items() if at in used}

    def _make_buckets(self, room: int) -> None:
        """Reallocate everything that is per bucket."""
        shapes = {
            "buckets": (room, BUCKET),
            "listed_codes": (room, np.uint32),
            "listed_buckets": (room, np.int32),
        }
        larger = {name: np.empty(length, dtype) for name, (length, dtype) in shapes.items()}
        table = np.full(1 << (2 * room - 1).bit_length(), -1, np.int64)
        held = self._held
        for name, array in larger.items():
            before = held.get(name, array[:0])[: len(array)]
            array[: len(before)] = before
        numbers = {"bucket_room": room, "table_room": len(table), "mask": len(table) - 1}
        self._publish({**larger, "table": table}, relink=True, **numbers)

    def _make_arena(self, room: int) -> None:
        spare = np.empty(room + 8, np.int64)
        skip = -spare.ctypes.data % 64 // 8  # blocks begin with a cache line
        arena = spare[skip : skip + room]
        before = self._held.get("arena")
        if before is not None:
            top = self._get("arena_top")
            arena[:top] = before[:top]
        self._publish({"arena": arena}, arena_room=room)

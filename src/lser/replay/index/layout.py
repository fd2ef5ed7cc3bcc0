"""The layout of the index: the header, the bucket records, and the table of codes.

All state hangs off one record of `HEADER`; kernels take that record instead of many arrays.
"""

from typing import Any

import numpy as np

from lser.compiled import Num, inlined, inner, record_at, view_of

Header = Any  # a record of HEADER inside a kernel

_HEADER = (
    # what is held, and how much was ever written; `Store.counts` is a view of these two
    *("size", "written"),
    # the slots, and the id in each (capacity,)
    *("capacity", "ids"),
    # the arena of words: its address, its length, how much is used; free runs by size class
    *("arena", "arena_room", "arena_top", "free_runs", "classes"),
    # the bucket records: their address, how many there is room for, how many were ever used,
    # and the first that can be used again, or -1
    *("buckets", "bucket_room", "bucket_top", "spare"),
    # the table from codes to buckets, its length, a power of two, and that less one
    *("table", "table_room", "mask"),
    # the occupied codes and their buckets, side by side and without gaps
    *("occupied", "listed_codes", "listed_buckets"),
    # slot -> order key and bucket, where entries are sought by slot (FIFO, keys that change)
    *("tracked", "keys", "homes"),
    # the rule of the store, and of the draw
    *("fifo", "evict", "per_item", "from_memory", "repeat", "uniform"),
    # the generator's state (an address), and counts of what was dropped and drawn
    *("rng", "one", "dropped", "draws", "items", "greedy", "filled", "fallbacks"),
    # for the calls that also hash and copy: the rows, and the SimHash with room to work in
    *("rows", "width", "dim", "plane_count", "planes", "shift", "scale", "features", "sums"),
)
HEADER = np.dtype([(name, np.int64) for name in _HEADER])
BUCKET = np.dtype(
    [
        (name, np.int64)
        for name in (
            "code",
            "start",  # of its run in the arena: entries, or a directory of blocks
            "count",  # entries
            "size_class",  # the run has 2**size_class words
            "blocks",  # in the directory; 0: the run holds the entries themselves
            "listed",  # its place among the occupied codes
        )
    ]
)
CLASSES = 40  # of runs: 2**LEAST .. 2**39 words
LEAST = 2


# The header at an address, and the arrays that it points to. Inside a kernel, buckets(h) is an
# array of BUCKET, arena(h) the words of the arena, and so on.
header_at = record_at(HEADER)
buckets = view_of(HEADER, "buckets", "bucket_room", BUCKET)
arena = view_of(HEADER, "arena", "arena_room", np.int64)
free_runs = view_of(HEADER, "free_runs", "classes", np.int64)  # the first of each size class, or -1
ids_of = view_of(HEADER, "ids", "capacity", np.int64)
table_of = view_of(HEADER, "table", "table_room", np.int64)  # code << 32 | bucket, or -1
listed_codes = view_of(HEADER, "listed_codes", "bucket_room", np.uint32)
listed_buckets = view_of(HEADER, "listed_buckets", "bucket_room", np.int32)
keys_of = view_of(HEADER, "keys", "capacity", np.int32)  # the order key that a slot is filed under
homes_of = view_of(HEADER, "homes", "capacity", np.int32)  # the bucket that a slot is filed in
generator = view_of(HEADER, "rng", "one", np.uint64)
shift_of = view_of(HEADER, "shift", "dim", np.float64)
scale_of = view_of(HEADER, "scale", "dim", np.float64)
features_of = view_of(HEADER, "features", "dim", np.float64)
sums_of = view_of(HEADER, "sums", "plane_count", np.float64)


@inlined
def first_probe(h: Header, code: Num) -> Num:
    """Where in the table to look for a code first."""
    return ((code * -7046029254386353131) >> 32) & h.mask  # Knuth's multiplicative hashing


@inlined
def code_in(word: Num) -> Num:
    """The code in a word of the table."""
    return (word >> 32) & 0xFFFFFFFF


@inner
def find(h: Header, code: Num) -> Num:
    """The bucket of a code, or -1."""
    table = table_of(h)
    at = first_probe(h, code)
    while table[at] != -1:
        if code_in(table[at]) == code:
            return table[at] & 0xFFFFFFFF
        at = (at + 1) & h.mask
    return np.int64(-1)


@inlined
def link(h: Header, code: Num, bucket: Num) -> None:
    """Enter a code that is not in the table."""
    table = table_of(h)
    at = first_probe(h, code)
    while table[at] != -1:
        at = (at + 1) & h.mask
    table[at] = (code << 32) | bucket


@inlined
def unlink(h: Header, code: Num) -> None:
    """Take a code out of the table, closing the gap so that later probes still arrive."""
    table = table_of(h)
    at = first_probe(h, code)
    while table[at] == -1 or code_in(table[at]) != code:
        at = (at + 1) & h.mask
    gap = at
    while True:
        at = (at + 1) & h.mask
        if table[at] == -1:
            break
        home = first_probe(h, code_in(table[at]))
        if (at - home) & h.mask >= (at - gap) & h.mask:
            table[gap] = table[at]
            gap = at
    table[gap] = -1

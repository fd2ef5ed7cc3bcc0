"""Kernels that write the bucket index out, build it back, and look for broken invariants."""

import numpy as np

from lser.replay import heap
from lser.replay.compiled import Num, UInt32, int32_at, int64_at, kernel, uint32_at
from lser.replay.header import (
    ARENA_TOP,
    CAPACITY,
    CLASS,
    CLASSES,
    CODE,
    COUNT,
    FREE,
    HOMES,
    IDS,
    LEAST,
    LISTED_BUCKETS,
    LISTED_CODES,
    MASK,
    OCCUPIED,
    PLACE,
    RANK,
    RANKED,
    RANKING,
    ROOM,
    SIZE,
    START,
    TABLE,
    TRACKED,
    entries,
    find,
    link,
    positions,
    records,
)
from lser.replay.index import open_bucket
from lser.replay.ranking import bigger
from lser.types import Float32, Int64

PROBLEMS = (
    "",
    "a bucket's entries are out of order",
    "an entry's slot is out of range or filed twice",
    "an entry's id is not its slot's",
    "a slot is not filed",
    "a listed code does not lead to its bucket",
    "a slot's recorded place is not its place",
    "runs of the arena overlap or are lost",
    "the ranking of buckets by size is out of order",
    "the table of codes holds another number of codes than there are buckets",
)


@kernel
def relink(h: Int64) -> None:
    """Fill a new, empty table of codes."""
    codes, buckets = uint32_at(h[LISTED_CODES], h[ROOM]), int32_at(h[LISTED_BUCKETS], h[ROOM])
    for k in range(h[OCCUPIED]):
        link(h, np.int64(codes[k]), np.int64(buckets[k]))


@kernel
def write_out(h: Int64, sizes: Int64, slots: Int64, keys: Float32) -> None:
    """The size of each listed bucket, and slots and keys of all entries, bucket by bucket."""
    buckets, arena, table = int32_at(h[LISTED_BUCKETS], h[ROOM]), entries(h), records(h)
    at = 0
    for k in range(h[OCCUPIED]):
        record = table[buckets[k]]
        sizes[k] = record[COUNT]
        for e in range(record[START], record[START] + record[COUNT]):
            slots[at] = arena[e, 0] & heap.SLOT
            keys[at] = heap.key_value(arena[e, 0] >> 32)
            at += 1


@kernel
def read_in(h: Int64, codes: UInt32, sizes: Int64, slots: Int64, keys: Float32) -> None:
    """Build the index that `write_out` wrote, entry by entry in the same places."""
    held, homes = int64_at(h[IDS], h[CAPACITY], 1), int32_at(h[HOMES], h[CAPACITY])
    at = 0
    for k in range(len(codes)):
        size_class = LEAST
        while 1 << size_class < sizes[k]:
            size_class += 1
        bucket = open_bucket(h, np.int64(codes[k]), size_class)
        record = records(h)[bucket]
        record[COUNT] = sizes[k]
        for p in range(sizes[k]):
            slot = slots[at]
            word = (heap.order_key(keys[at]) << 32) | slot
            heap.place(entries(h), record[START], positions(h), p, word, held[slot, 0])
            if h[TRACKED]:
                homes[slot] = bucket
            at += 1
    h[SIZE] = at


@kernel
def _entry_problem(h: Int64, filed: Int64) -> Num:
    """Check every entry of every bucket; `filed` (capacity,) starts at zero."""
    buckets, arena, table = int32_at(h[LISTED_BUCKETS], h[ROOM]), entries(h), records(h)
    held, homes, where = (
        int64_at(h[IDS], h[CAPACITY], 1),
        int32_at(h[HOMES], h[CAPACITY]),
        positions(h),
    )
    for k in range(h[OCCUPIED]):
        bucket = buckets[k]
        record = table[bucket]
        if not 0 < record[COUNT] <= 1 << record[CLASS]:
            return 7
        if heap.violation(arena, record[START], record[COUNT]) >= 0:
            return 1
        for p in range(record[COUNT]):
            slot = arena[record[START] + p, 0] & heap.SLOT
            if slot >= h[SIZE] or filed[slot]:
                return 2
            filed[slot] = 1
            if held[slot, 0] != arena[record[START] + p, 1]:
                return 3
            if h[TRACKED] and (where[slot] != p or homes[slot] != bucket):
                return 6
    for slot in range(h[SIZE]):
        if not filed[slot]:
            return 4
    return 0


@kernel
def problem(h: Int64, filed: Int64) -> Num:
    """The place in PROBLEMS of the first broken invariant; 0 when all hold."""
    found = _entry_problem(h, filed)
    if found:
        return found
    codes, buckets = uint32_at(h[LISTED_CODES], h[ROOM]), int32_at(h[LISTED_BUCKETS], h[ROOM])
    table, free = records(h), int64_at(h[FREE], CLASSES, 1)
    used = 0
    for k in range(h[OCCUPIED]):
        record = table[buckets[k]]
        if record[CODE] != codes[k] or record[PLACE] != k or find(h, record[CODE]) != buckets[k]:
            return 5
        used += 1 << record[CLASS]
    for size_class in range(CLASSES):
        at = free[size_class, 0]
        while at >= 0:
            used += 1 << size_class
            at = entries(h)[at, 0]
    if used != h[ARENA_TOP]:
        return 7
    ranking = int32_at(h[RANKING], h[ROOM])
    if h[RANKED] >= 0 and h[RANKED] != h[OCCUPIED]:
        return 8
    for at in range(h[RANKED]):
        if table[ranking[at], RANK] != at:
            return 8
        if at > 0 and bigger(table, ranking[at], ranking[(at - 1) >> 1]):
            return 8
    links = int64_at(h[TABLE], h[MASK] + 1, 1)
    count = 0
    for at in range(h[MASK] + 1):
        count += links[at, 0] != -1
    return 0 if count == h[OCCUPIED] else 9

"""Kernels that write the bucket index out, build it back, and look for broken invariants."""

import numpy as np

from lser.replay import ordered
from lser.replay.arena import take_run
from lser.replay.blocks import BLOCK, WIDE, block_at
from lser.replay.compiled import Num, UInt32, int32_at, int64_at, kernel, uint32_at
from lser.replay.entries import SLOT, key_value, order_key
from lser.replay.header import (
    ARENA_TOP,
    BLOCKS,
    CAPACITY,
    CLASS,
    CLASSES,
    CODE,
    COUNT,
    FREE,
    HOMES,
    KEYS,
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
    find,
    link,
    records,
    words,
)
from lser.replay.index import open_bucket
from lser.replay.ranking import bigger
from lser.types import Float32, Int64

FILL = 48  # entries of each block that is built at once
PROBLEMS = (
    "",
    "a bucket's entries are out of order",
    "an entry's slot is out of range or filed twice",
    "a slot is not filed",
    "a listed code does not lead to its bucket",
    "what is recorded of a slot is not where it is filed",
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
    """The size of each listed bucket, and slots and keys of all entries, best first in each."""
    buckets, arena, table = int32_at(h[LISTED_BUCKETS], h[ROOM]), words(h), records(h)
    at = 0
    for k in range(h[OCCUPIED]):
        bucket = np.int64(buckets[k])
        sizes[k] = table[bucket, COUNT]
        for b in range(max(table[bucket, BLOCKS], 1)):
            first, count = block_at(h, bucket, b)
            for e in range(first, first + count):
                slots[at] = arena[e] & SLOT
                keys[at] = key_value(arena[e] >> 32)
                at += 1


@kernel
def _class_for(size: Num) -> Num:
    """The class of the smallest run that holds so many."""
    size_class = LEAST
    while 1 << size_class < size:
        size_class += 1
    return size_class


@kernel
def _place(h: Int64, bucket: Num, count: Num) -> None:
    """Take the runs that `count` entries of an empty bucket need, as `room_for` counts them."""
    record = records(h)[bucket]
    record[COUNT] = count
    if count <= WIDE:
        return
    record[BLOCKS] = (count + FILL - 1) // FILL
    for b in range(record[BLOCKS]):
        part = min(FILL, count - b * FILL)
        words(h)[record[START] + 2 * b + 1] = (take_run(h, BLOCK) << 8) | part


@kernel
def room_for(sizes: Int64) -> Num:
    """The words of the arena that buckets of these sizes take in `read_in`."""
    total = 0
    for size in sizes:
        blocks = (size + FILL - 1) // FILL
        if size <= WIDE:
            total += 1 << _class_for(size)
        else:
            total += (1 << _class_for(2 * blocks)) + (blocks << BLOCK)
    return total


@kernel
def read_in(h: Int64, codes: UInt32, sizes: Int64, slots: Int64, keys: Float32) -> None:
    """Build the index that `write_out` wrote."""
    homes, kept = int32_at(h[HOMES], h[CAPACITY]), int32_at(h[KEYS], h[CAPACITY])
    arena = words(h)
    at = 0
    for k in range(len(codes)):
        blocks = (sizes[k] + FILL - 1) // FILL
        run = _class_for(sizes[k] if sizes[k] <= WIDE else 2 * blocks)
        bucket = open_bucket(h, np.int64(codes[k]), run)
        _place(h, bucket, sizes[k])
        for b in range(max(records(h)[bucket, BLOCKS], 1)):
            first, count = block_at(h, bucket, b)
            for e in range(first, first + count):
                slot, key = slots[at], order_key(keys[at])
                arena[e] = (key << 32) | slot
                if h[TRACKED]:
                    homes[slot], kept[slot] = bucket, key
                at += 1
            if records(h)[bucket, BLOCKS]:
                arena[records(h)[bucket, START] + 2 * b] = arena[first] >> 32
    h[SIZE] = at


@kernel
def _entry_problem(h: Int64, filed: Int64) -> Num:
    """Check every entry of every bucket; `filed` (capacity,) starts at zero."""
    buckets, arena, table = int32_at(h[LISTED_BUCKETS], h[ROOM]), words(h), records(h)
    homes, kept = int32_at(h[HOMES], h[CAPACITY]), int32_at(h[KEYS], h[CAPACITY])
    for k in range(h[OCCUPIED]):
        bucket = np.int64(buckets[k])
        record = table[bucket]
        room = 2 * record[BLOCKS] if record[BLOCKS] else record[COUNT]
        if not 0 < room <= 1 << record[CLASS]:
            return 6
        if not ordered.in_order(h, bucket):
            return 1
        for b in range(max(record[BLOCKS], 1)):
            at, count = block_at(h, bucket, b)
            for e in range(at, at + count):
                slot = arena[e] & SLOT
                if slot >= h[SIZE] or filed[slot]:
                    return 2
                filed[slot] = 1
                if h[TRACKED] and (kept[slot] != arena[e] >> 32 or homes[slot] != bucket):
                    return 5
    for slot in range(h[SIZE]):
        if not filed[slot]:
            return 3
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
            return 4
        used += (1 << record[CLASS]) + (record[BLOCKS] << BLOCK)
    for size_class in range(CLASSES):
        at = free[size_class, 0]
        while at >= 0:
            used += 1 << size_class
            at = words(h)[at]
    if used != h[ARENA_TOP]:
        return 6
    ranking = int32_at(h[RANKING], h[ROOM])
    if h[RANKED] >= 0 and h[RANKED] != h[OCCUPIED]:
        return 7
    for at in range(h[RANKED]):
        if table[ranking[at], RANK] != at:
            return 7
        if at > 0 and bigger(table, ranking[at], ranking[(at - 1) >> 1]):
            return 7
    links = int64_at(h[TABLE], h[MASK] + 1, 1)
    count = 0
    for at in range(h[MASK] + 1):
        count += links[at, 0] != -1
    return 0 if count == h[OCCUPIED] else 8

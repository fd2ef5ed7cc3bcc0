"""Write the index out, build it back, and look for broken invariants."""

import numpy as np

from lser.compiled import Num, UInt32, inlined, inner, kernel
from lser.replay.index.blocks import (
    BLOCK,
    SLOT,
    WIDE,
    block_at,
    key_value,
    order_key,
    take_run,
)
from lser.replay.index.layout import (
    CLASSES,
    LEAST,
    Header,
    arena,
    buckets,
    find,
    free_runs,
    homes_of,
    ids_of,
    keys_of,
    link,
    listed_buckets,
    listed_codes,
    table_of,
)
from lser.replay.index.placing import open_bucket
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
    "the table of codes holds another number of codes than there are buckets",
)


@inner
def relink(h: Header) -> None:
    """Fill a new, empty table of codes."""
    codes, listed = listed_codes(h), listed_buckets(h)
    for k in range(h.occupied):
        link(h, np.int64(codes[k]), np.int64(listed[k]))


@inner
def write_out(h: Header, sizes: Int64, slots: Int64, keys: Float32) -> None:
    """The size of each listed bucket, and slots and keys of all entries, best first in each."""
    listed, words, records = listed_buckets(h), arena(h), buckets(h)
    at = 0
    for k in range(h.occupied):
        bucket = np.int64(listed[k])
        sizes[k] = records[bucket].count
        for b in range(max(records[bucket].blocks, 1)):
            first, count = block_at(h, bucket, np.int64(b))
            for e in range(first, first + count):
                slots[at] = words[e] & SLOT
                keys[at] = key_value(words[e] >> 32)
                at += 1


@inner
def class_for(size: Num) -> Num:
    """The class of the smallest run that holds so many."""
    size_class = np.int64(LEAST)
    while 1 << size_class < size:
        size_class += 1
    return size_class


@inlined
def blocks_for(size: Num) -> Num:
    """How many blocks so many entries are built as."""
    return (size + FILL - 1) // FILL


@kernel
def room_for(sizes: Int64) -> Num:
    """The words of the arena that buckets of these sizes take in `read_in`."""
    total = 0
    for size in sizes:
        if size <= WIDE:
            total += 1 << class_for(size)
        else:
            total += (1 << class_for(2 * blocks_for(size))) + (blocks_for(size) << BLOCK)
    return total


@inner
def read_in(h: Header, codes: UInt32, sizes: Int64, slots: Int64, keys: Float32) -> None:
    """Build the index that `write_out` wrote."""
    homes, filed, words = homes_of(h), keys_of(h), arena(h)
    at = 0
    for k in range(len(codes)):
        blocks = blocks_for(sizes[k]) if sizes[k] > WIDE else 0
        run = class_for(2 * blocks if blocks else sizes[k])
        bucket = open_bucket(h, np.int64(codes[k]), run)
        record = buckets(h)[bucket]
        record.count, record.blocks = sizes[k], blocks
        for b in range(blocks):
            part = min(FILL, sizes[k] - b * FILL)
            words[record.start + 2 * b + 1] = (take_run(h, np.int64(BLOCK)) << 8) | part
        for b in range(max(blocks, 1)):
            first, count = block_at(h, bucket, np.int64(b))
            for e in range(first, first + count):
                slot, key = slots[at], order_key(keys[at])
                words[e] = (key << 32) | slot
                if h.tracked:
                    homes[slot], filed[slot] = bucket, key
                at += 1
            if blocks:
                words[record.start + 2 * b] = words[first] >> 32
    h.size = at


@inner
def in_order(h: Header, bucket: Num) -> Num:
    """Whether the entries of a bucket descend, and its directory says what its blocks hold."""
    record, words, ids = buckets(h)[bucket], arena(h), ids_of(h)
    total, key, identity = 0, np.int64(1) << 32, np.int64(0)
    for b in range(max(record.blocks, 1)):
        at, count = block_at(h, bucket, np.int64(b))
        if record.blocks and (count < 1 or count > WIDE):
            return False
        if record.blocks and words[record.start + 2 * b] != words[at] >> 32:
            return False
        for e in range(at, at + count):
            if words[e] & SLOT >= h.size:
                return False
            found, newer = words[e] >> 32, ids[words[e] & SLOT]
            if found > key or (found == key and newer >= identity):
                return False
            key, identity = found, newer
        total += count
    return total == record.count


@inner
def entry_problem(h: Header, filed: Int64) -> Num:
    """Check every entry of every bucket; `filed` (capacity,) starts at zero."""
    listed, words, records = listed_buckets(h), arena(h), buckets(h)
    homes, keys = homes_of(h), keys_of(h)
    for k in range(h.occupied):
        bucket = np.int64(listed[k])
        record = records[bucket]
        room = 2 * record.blocks if record.blocks else record.count
        if not 0 < room <= 1 << record.size_class:
            return 6
        if not in_order(h, bucket):
            return 1
        for b in range(max(record.blocks, 1)):
            at, count = block_at(h, bucket, np.int64(b))
            for e in range(at, at + count):
                slot = words[e] & SLOT
                if slot >= h.size or filed[slot]:
                    return 2
                filed[slot] = 1
                if h.tracked and (keys[slot] != words[e] >> 32 or homes[slot] != bucket):
                    return 5
    for slot in range(h.size):
        if not filed[slot]:
            return 3
    return 0


@inner
def problem(h: Header, filed: Int64) -> Num:
    """The place in PROBLEMS of the first broken invariant; 0 when all hold."""
    found = entry_problem(h, filed)
    if found:
        return found
    codes, listed, records = listed_codes(h), listed_buckets(h), buckets(h)
    used = 0
    for k in range(h.occupied):
        record = records[listed[k]]
        if record.code != codes[k] or record.listed != k or find(h, record.code) != listed[k]:
            return 4
        used += (1 << record.size_class) + (record.blocks << BLOCK)
    for size_class in range(CLASSES):
        at = free_runs(h)[size_class]
        while at >= 0:
            used += 1 << size_class
            at = arena(h)[at]
    if used != h.arena_top:
        return 6
    count = 0
    for word in table_of(h):
        count += word != -1
    return 0 if count == h.occupied else 7

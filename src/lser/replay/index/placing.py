"""The rule of the store: where a newcomer goes, and what makes room for it at capacity.

Nothing here allocates: where room is missing a kernel stops before it has changed anything, and
Python (`index.py`) makes room.
"""

import numpy as np

from lser.compiled import Num, UInt32, inlined, kernel
from lser.replay.index.blocks import (
    SLOT,
    fits,
    give_run,
    has_room,
    missing,
    move,
    order_key,
    take_run,
)
from lser.replay.index.layout import (
    LEAST,
    Header,
    buckets,
    find,
    homes_of,
    ids_of,
    keys_of,
    link,
    listed_buckets,
    listed_codes,
    ranking,
    unlink,
)
from lser.replay.index.sorted import NEWEST, delete_entry, delete_worst, insert, worst
from lser.types import Float32, Int64

DROP, NO_ROOM = -1, -2


@kernel
def open_bucket(h: Header, code: Num, size_class: Num) -> Num:
    """Make an empty bucket for a new code; there must be a record and a run for it."""
    bucket = h.spare
    if bucket >= 0:
        h.spare = buckets(h)[bucket].start
    else:
        bucket = h.bucket_top
        h.bucket_top += 1
    record = buckets(h)[bucket]
    record.code, record.count, record.blocks = code, 0, 0
    record.size_class = size_class
    record.start = take_run(h, size_class)
    record.listed = h.occupied
    listed_codes(h)[h.occupied] = code
    listed_buckets(h)[h.occupied] = bucket
    h.occupied += 1
    link(h, code, bucket)
    return bucket


@kernel
def close_bucket(h: Header, bucket: Num) -> None:
    """Forget a bucket that has become empty."""
    records, codes, listed = buckets(h), listed_codes(h), listed_buckets(h)
    record = records[bucket]
    unlink(h, record.code)
    give_run(h, record.start, record.size_class)
    h.occupied -= 1
    place, last = record.listed, h.occupied
    codes[place], listed[place] = codes[last], listed[last]
    records[listed[place]].listed = place
    record.count = -1
    record.start = h.spare
    h.spare = bucket


@inlined
def evicted_before(left: Num, right: Num) -> Num:
    """Whether a bucket loses an entry before another: the larger, then the smaller code."""
    return left.count > right.count or (left.count == right.count and left.code < right.code)


@kernel
def rank_up(h: Header, at: Num) -> None:
    """Restore the heap above a place whose bucket may have become larger."""
    records, heap = buckets(h), ranking(h)
    bucket = heap[at]
    while at > 0 and evicted_before(records[bucket], records[heap[(at - 1) >> 1]]):
        heap[at] = heap[(at - 1) >> 1]
        records[heap[at]].rank = at
        at = (at - 1) >> 1
    heap[at] = bucket
    records[bucket].rank = at


@kernel
def rank_down(h: Header, at: Num) -> None:
    """Restore the heap below a place whose bucket may have become smaller."""
    records, heap = buckets(h), ranking(h)
    bucket = heap[at]
    while True:
        child = 2 * at + 1
        if child >= h.ranked:
            break
        if child + 1 < h.ranked and evicted_before(records[heap[child + 1]], records[heap[child]]):
            child += 1
        if not evicted_before(records[heap[child]], records[bucket]):
            break
        heap[at] = heap[child]
        records[heap[at]].rank = at
        at = child
    heap[at] = bucket
    records[bucket].rank = at


@kernel
def rank_all(h: Header) -> None:
    """Build the heap, at the first eviction: before the memory is full none is needed."""
    heap, listed = ranking(h), listed_buckets(h)
    h.ranked = h.occupied
    for at in range(h.occupied):
        heap[at] = listed[at]
        buckets(h)[listed[at]].rank = at
    for at in range(h.occupied // 2, -1, -1):
        rank_down(h, at)


@kernel
def add(h: Header, code: Num, bucket: Num, word: Num) -> Num:
    """Add an entry, the newest, to the bucket of a code (-1: a new one), which has room."""
    if bucket < 0:
        bucket = open_bucket(h, code, np.int64(LEAST))
    insert(h, bucket, word, np.int64(NEWEST))
    if h.tracked:
        keys_of(h)[word & SLOT] = word >> 32
        homes_of(h)[word & SLOT] = bucket
    return bucket


@kernel
def shrink(h: Header, bucket: Num) -> None:
    """Move a bucket that became sparse into a smaller run, if there is one."""
    record = buckets(h)[bucket]
    sparse = 0 < 4 * record.count <= 1 << record.size_class and record.blocks == 0
    if sparse and record.size_class > LEAST and has_room(h, missing(h, record.size_class - 1)):
        move(h, bucket, record.size_class - 1)


@kernel
def evict_for(h: Header, code: Num, key: Num) -> Num:
    """Make room for a new code: the worst entry of the largest bucket goes."""
    if h.ranked < 0:
        rank_all(h)
    heap = ranking(h)
    bucket = np.int64(heap[0])
    slot = worst(h, bucket) & SLOT
    delete_worst(h, bucket)
    if buckets(h)[bucket].count == 0:
        close_bucket(h, bucket)
        h.ranked -= 1
        heap[0] = heap[h.ranked]
    if h.ranked > 0:
        rank_down(h, np.int64(0))
    heap[h.ranked] = add(h, code, np.int64(-1), (key << 32) | slot)
    h.ranked += 1
    rank_up(h, h.ranked - 1)
    shrink(h, bucket)  # last, or it could take the run that was kept for the newcomer
    return slot


@kernel
def place(h: Header, code: Num, key: Num) -> Num:
    """Apply the rule of the store to one newcomer: its slot, or DROP, or NO_ROOM."""
    bucket = find(h, code)
    if bucket >= 0:
        room = fits(h, bucket)
    else:
        record_left = h.spare >= 0 or h.bucket_top < h.bucket_room
        room = record_left and has_room(h, missing(h, LEAST))
    slot = np.int64(DROP)
    if h.size < h.capacity:
        if not room:
            return np.int64(NO_ROOM)
        slot = h.size
        add(h, code, bucket, (key << 32) | slot)
        h.size += 1
    elif h.fifo:
        if not room:
            return np.int64(NO_ROOM)
        slot = h.written % h.capacity  # the oldest
        home, filed = np.int64(homes_of(h)[slot]), np.int64(keys_of(h)[slot])
        delete_entry(h, home, filed, ids_of(h)[slot])
        add(h, code, bucket, (key << 32) | slot)
        if buckets(h)[home].count == 0:
            close_bucket(h, home)
        shrink(h, home)
    elif bucket >= 0:
        word = worst(h, bucket)
        if key >= word >> 32:
            if not room:
                return np.int64(NO_ROOM)
            slot = word & SLOT  # the oldest of the lowest key
            delete_worst(h, bucket)
            add(h, code, bucket, (key << 32) | slot)
    elif h.evict:
        if not room:
            return np.int64(NO_ROOM)
        slot = evict_for(h, code, key)
    return slot


@kernel
def place_all(h: Header, codes: UInt32, keys: Float32, ids: Int64, slots: Int64, start: Num) -> Num:
    """Place newcomers from `start` on; returns the first for which there was no room.

    An id counts writes and carries its slot: number of the write * capacity + slot.
    """
    held = ids_of(h)
    for k in range(start, len(codes)):
        slot = place(h, np.int64(codes[k]), order_key(keys[k]))
        if slot == NO_ROOM:
            return k
        slots[k] = slot
        ids[k] = -1
        if slot == DROP:
            h.dropped += 1
        else:
            ids[k] = held[slot] = h.written * h.capacity + slot
            h.written += 1
    return len(codes)


@kernel
def rekey(h: Header, slots: Int64, ids: Int64, keys: Float32, start: Num) -> Num:
    """Give entries still held under `ids` new order keys; returns the first without room."""
    homes, filed, held = homes_of(h), keys_of(h), ids_of(h)
    for k in range(start, len(slots)):
        slot = slots[k]
        if slot >= 0 and held[slot] == ids[k]:
            bucket, key = np.int64(homes[slot]), order_key(keys[k])
            if not fits(h, bucket):
                return k
            delete_entry(h, bucket, np.int64(filed[slot]), ids[k])
            insert(h, bucket, (key << 32) | slot, ids[k])
            filed[slot] = key
    return len(slots)

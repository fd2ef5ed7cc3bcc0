"""The rule of the store: where a newcomer goes, and what makes room for it at capacity.

Nothing here allocates: where room is missing a kernel stops before it has changed anything, and
Python (`index.py`) makes room.
"""

import numpy as np

from lser.compiled import Num, inner
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
    unlink,
)
from lser.replay.index.sorted import NEWEST, delete_entry, delete_worst, insert, worst
from lser.types import Float32, Int64

DROP, NO_ROOM = -1, -2


@inner
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


@inner
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


@inner
def add(h: Header, code: Num, bucket: Num, word: Num) -> Num:
    """Add an entry, the newest, to the bucket of a code (-1: a new one), which has room."""
    if bucket < 0:
        bucket = open_bucket(h, code, np.int64(LEAST))
    insert(h, bucket, word, np.int64(NEWEST))
    if h.tracked:
        keys_of(h)[word & SLOT] = word >> 32
        homes_of(h)[word & SLOT] = bucket
    return bucket


@inner
def tidy(h: Header, bucket: Num) -> None:
    """After a loss: forget a bucket without entries, move a sparse one into a smaller run."""
    record = buckets(h)[bucket]
    if record.count == 0:
        close_bucket(h, bucket)
        return
    sparse = 4 * record.count <= 1 << record.size_class and record.blocks == 0
    if sparse and record.size_class > LEAST and has_room(h, missing(h, record.size_class - 1)):
        move(h, bucket, record.size_class - 1)


@inner
def largest_bucket(h: Header) -> Num:
    """The bucket with the most entries; of equally large ones, that of the smallest code.

    A look at every bucket: this happens only at capacity, for a code never seen before.
    """
    records, listed = buckets(h), listed_buckets(h)
    found = np.int64(listed[0])
    for k in range(1, h.occupied):
        record, best = records[listed[k]], records[found]
        if record.count > best.count or (record.count == best.count and record.code < best.code):
            found = np.int64(listed[k])
    return found


@inner
def has_place(h: Header, bucket: Num) -> Num:
    """Whether one more entry of a bucket (-1: of a new one) has room."""
    if bucket >= 0:
        return fits(h, bucket)
    return (h.spare >= 0 or h.bucket_top < h.bucket_room) and has_room(h, missing(h, LEAST))


@inner
def place(h: Header, code: Num, key: Num) -> Num:
    """Apply the rule of the store to one newcomer: its slot, or DROP, or NO_ROOM."""
    bucket = find(h, code)
    full = h.size == h.capacity
    if full and not h.fifo:
        beaten = bucket >= 0 and key < worst(h, bucket) >> 32
        if beaten or (bucket < 0 and not h.evict):
            return np.int64(DROP)
    if not has_place(h, bucket):
        return np.int64(NO_ROOM)
    slot, loser = h.size, bucket  # the bucket that makes room
    if not full:
        h.size += 1
    elif h.fifo:  # the oldest of all makes room
        slot = h.written % h.capacity
        loser = np.int64(homes_of(h)[slot])
        delete_entry(h, loser, np.int64(keys_of(h)[slot]), ids_of(h)[slot])
    else:  # the oldest of the lowest key does, in its own bucket, or in the largest
        if bucket < 0:
            loser = largest_bucket(h)
        slot = worst(h, loser) & SLOT
        delete_worst(h, loser)
    add(h, code, bucket, (key << 32) | slot)
    if loser != bucket:
        tidy(h, loser)
    return slot


@inner
def place_all(h: Header, keys: Float32, ids: Int64, places: Int64) -> Num:
    """Place N newcomers; returns the first for which there was no room.

    `places` (N + 1) holds their codes, which become their slots one by one, and at its end the
    newcomer to go on from; `ids` (N,) is filled. An id counts writes and carries its slot: number
    of the write * capacity + slot.
    """
    held, n = ids_of(h), len(keys)
    for k in range(places[n], n):
        slot = place(h, places[k], order_key(keys[k]))
        if slot == NO_ROOM:
            return k
        places[k], places[n] = slot, k + 1
        if slot == DROP:
            ids[k] = -1
            h.dropped += 1
        else:
            ids[k] = held[slot] = h.written * h.capacity + slot
            h.written += 1
    return n


@inner
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

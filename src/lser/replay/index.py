"""Kernels of the bucket index: code -> bucket -> entries in order, and the rule of the store.

Codes are found through an open-addressing table (`header.py`); a bucket's entries lie in order in
runs of one arena (`ordered.py`). Nothing here allocates: where room is missing a kernel stops
before it has changed anything and Python (`buckets.py`) makes room.
"""

import numpy as np

from lser.replay import ordered
from lser.replay.arena import give_run, has_room, missing, take_run
from lser.replay.compiled import (
    Num,
    UInt32,
    float32_at,
    int32_at,
    int64_at,
    kernel,
    prefetch,
    uint32_at,
)
from lser.replay.header import (
    BLOCKS,
    CAPACITY,
    CLASS,
    CODE,
    COUNT,
    DROPPED,
    EVICT,
    FIELDS,
    FIFO,
    HOMES,
    KEYS,
    LEAST,
    LISTED_BUCKETS,
    LISTED_CODES,
    MASK,
    OCCUPIED,
    PLACE,
    RANKED,
    RANKING,
    REWARD,
    ROOM,
    ROWS,
    SIZE,
    SPARE,
    START,
    TABLE,
    TOP,
    TRACKED,
    WIDTH,
    WRITTEN,
    find,
    held,
    link,
    probe,
    records,
    unlink,
    words,
)
from lser.replay.packing import near, scatter
from lser.replay.ranking import rank_all, rank_down, rank_up
from lser.types import Float32, Int64

DROP, NO_ROOM = -1, -2
_GROUP = 16  # rows of a block


@kernel
def open_bucket(h: Int64, code: Num, size_class: Num) -> Num:
    """Make an empty bucket for a new code; there must be a record and a run for it."""
    table = records(h)
    bucket = h[SPARE]
    if bucket >= 0:
        h[SPARE] = table[bucket, START]
    else:
        bucket = h[TOP]
        h[TOP] += 1
    record = table[bucket]
    record[CODE], record[COUNT], record[CLASS], record[BLOCKS] = code, 0, size_class, 0
    record[START] = take_run(h, size_class)
    record[PLACE] = h[OCCUPIED]
    uint32_at(h[LISTED_CODES], h[ROOM])[h[OCCUPIED]] = code
    int32_at(h[LISTED_BUCKETS], h[ROOM])[h[OCCUPIED]] = bucket
    h[OCCUPIED] += 1
    link(h, code, bucket)
    return bucket


@kernel
def close_bucket(h: Int64, bucket: Num) -> None:
    """Forget a bucket that has become empty."""
    table = records(h)
    record = table[bucket]
    codes, buckets = uint32_at(h[LISTED_CODES], h[ROOM]), int32_at(h[LISTED_BUCKETS], h[ROOM])
    unlink(h, record[CODE])
    give_run(h, record[START], record[CLASS])
    h[OCCUPIED] -= 1
    place, last = record[PLACE], h[OCCUPIED]
    codes[place], buckets[place] = codes[last], buckets[last]
    table[buckets[place], PLACE] = place
    record[COUNT] = -1
    record[START] = h[SPARE]
    h[SPARE] = bucket


@kernel
def fits(h: Int64, bucket: Num) -> Num:
    """Whether one more entry of the bucket (-1: of a new one) has room."""
    if bucket >= 0:
        return ordered.fits(h, bucket)
    return (h[SPARE] >= 0 or h[TOP] < h[ROOM]) and has_room(h, missing(h, LEAST))


@kernel
def track(h: Int64, bucket: Num, word: Num) -> None:
    """Record where the slot of an entry is filed."""
    int32_at(h[KEYS], h[CAPACITY])[word & ordered.SLOT] = word >> 32
    int32_at(h[HOMES], h[CAPACITY])[word & ordered.SLOT] = bucket


@kernel
def add(h: Int64, code: Num, word: Num) -> None:
    """Add an entry, the newest, to the bucket of a code, which `fits`."""
    bucket = find(h, code)
    if bucket < 0:
        bucket = open_bucket(h, code, LEAST)
    ordered.insert_newest(h, bucket, word)
    if h[TRACKED]:
        track(h, bucket, word)


@kernel
def shrink(h: Int64, bucket: Num) -> None:
    """Move a bucket that became sparse into a smaller run, if there is one."""
    record = records(h)[bucket]
    sparse = 0 < 4 * record[COUNT] <= 1 << record[CLASS] and record[BLOCKS] == 0
    if sparse and record[CLASS] > LEAST and has_room(h, missing(h, record[CLASS] - 1)):
        ordered.move(h, bucket, record[CLASS] - 1)


@kernel
def evict_for(h: Int64, code: Num, key: Num) -> Num:
    """Make room for a new code: the worst entry of the largest bucket goes."""
    if h[RANKED] < 0:
        rank_all(h)
    table, ranking = records(h), int32_at(h[RANKING], h[ROOM])
    bucket = ranking[0]
    slot = words(h)[ordered.worst(h, bucket)] & ordered.SLOT
    ordered.delete_worst(h, bucket)
    if table[bucket, COUNT] == 0:
        close_bucket(h, bucket)
        h[RANKED] -= 1
        ranking[0] = ranking[h[RANKED]]
    if h[RANKED] > 0:
        rank_down(h, 0)
    add(h, code, (key << 32) | slot)
    ranking[h[RANKED]] = find(h, code)
    h[RANKED] += 1
    rank_up(h, h[RANKED] - 1)
    shrink(h, bucket)  # last, or it could take the run that was kept for the newcomer
    return slot


@kernel
def store(h: Int64, code: Num, key: Num) -> Num:
    """Apply the rule of the store to one newcomer: its slot, or DROP, or NO_ROOM."""
    bucket = find(h, code)
    if h[SIZE] < h[CAPACITY]:
        if not fits(h, bucket):
            return NO_ROOM
        slot = h[SIZE]
        add(h, code, (key << 32) | slot)
        h[SIZE] += 1
    elif h[FIFO]:
        if not fits(h, bucket):
            return NO_ROOM
        slot = h[WRITTEN] % h[CAPACITY]  # the oldest
        home = np.int64(int32_at(h[HOMES], h[CAPACITY])[slot])
        filed = np.int64(int32_at(h[KEYS], h[CAPACITY])[slot])
        ordered.delete_entry(h, home, filed, held(h)[slot])
        add(h, code, (key << 32) | slot)
        if records(h)[home, COUNT] == 0:
            close_bucket(h, home)
        shrink(h, home)
    elif bucket >= 0:
        word = words(h)[ordered.worst(h, bucket)]
        if key < word >> 32:
            return DROP
        if not fits(h, bucket):
            return NO_ROOM
        slot = word & ordered.SLOT  # the oldest of the lowest key
        near(float32_at(h[ROWS], h[CAPACITY], h[WIDTH]), slot)
        ordered.replace_worst(h, bucket, (key << 32) | slot)
        if h[TRACKED]:
            track(h, bucket, (key << 32) | slot)
    elif h[EVICT]:
        if not fits(h, bucket):
            return NO_ROOM
        slot = evict_for(h, code, key)
    else:
        return DROP
    return slot


@kernel
def _foresee(h: Int64, rows: Float32, codes: UInt32, start: Num, stop: Num) -> None:
    """Bring what rows start .. stop will need into the cache, one step of all at a time.

    Each step needs what the step before it has fetched; taken together, all rows wait once.
    """
    table, arena, links = records(h), words(h), int64_at(h[TABLE], h[MASK] + 1, 1)
    buckets, blocks = np.empty(stop - start, np.int64), np.empty(stop - start, np.int64)
    for k in range(start, stop):
        prefetch(links, probe(h, np.int64(codes[k])))
    for k in range(start, stop):
        bucket = find(h, np.int64(codes[k]))
        buckets[k - start] = bucket
        if bucket >= 0:
            prefetch(table, bucket * FIELDS)
            prefetch(table, bucket * FIELDS + FIELDS - 1)
    _foresee_blocks(h, rows, buckets, blocks, start)
    for k in range(stop - start):
        if buckets[k] >= 0:
            at, count = ordered.block_at(h, buckets[k], blocks[k])
            for p in range(0, count + 1, ordered.LINE):
                prefetch(arena, at + p)
            prefetch(arena, ordered.worst(h, buckets[k]))
    if h[SIZE] < h[CAPACITY] or h[FIFO]:
        return
    for k in range(start, stop):
        if buckets[k - start] >= 0:
            word = arena[ordered.worst(h, buckets[k - start])]
            if ordered.order_key(rows[k, h[REWARD]]) >= word >> 32:  # it will be replaced
                prefetch(held(h), word & ordered.SLOT)


@kernel
def _foresee_blocks(h: Int64, rows: Float32, buckets: Int64, blocks: Int64, start: Num) -> None:
    """Find the blocks that rows from `start` on belong to, as `seek_block` will."""
    table, arena = records(h), words(h)
    count = len(buckets)
    at, keys = np.empty(count, np.int64), np.empty(count, np.int64)
    left = np.zeros(count, np.int64)  # blocks from at[k] on that may be the last with a better one
    most = 0
    for k in range(count):
        blocks[k] = 0
        if buckets[k] >= 0 and table[buckets[k], BLOCKS]:
            at[k], left[k] = table[buckets[k], START], table[buckets[k], BLOCKS]
            keys[k] = ordered.order_key(rows[start + k, h[REWARD]])
            most = max(most, left[k])
            prefetch(arena, at[k] + 2 * (left[k] >> 1))
            prefetch(arena, at[k] + 2 * left[k] - 1)
    while most > 1:
        for k in range(count):
            half = left[k] >> 1
            if half:
                better = arena[at[k] + 2 * (blocks[k] + half)] > keys[k]
                blocks[k] += half if better else 0
                left[k] -= half
                prefetch(arena, at[k] + 2 * (blocks[k] + (left[k] >> 1)))
        most -= most >> 1


@kernel
def extend(h: Int64, rows: Float32, codes: UInt32, ids: Int64, slots: Int64, start: Num) -> Num:
    """Store rows from `start` on; returns the first row for which there was no room.

    Two passes, because finding places and copying rows evict each other from the cache.
    """
    kept_ids, stop = held(h), len(rows)
    for k in range(start, len(rows)):
        if (k - start) % _GROUP == 0 and k + 1 < len(rows):
            _foresee(h, rows, codes, k, min(k + _GROUP, len(rows)))
        slot = store(h, np.int64(codes[k]), ordered.order_key(rows[k, h[REWARD]]))
        if slot == NO_ROOM:
            stop = k
            break
        slots[k] = slot
        if slot == DROP:
            ids[k] = -1
            h[DROPPED] += 1
        else:
            ids[k] = kept_ids[slot] = h[WRITTEN]
            h[WRITTEN] += 1
    kept = float32_at(h[ROWS], h[CAPACITY], h[WIDTH])
    scatter(kept, slots[start:stop], rows[start:stop])
    return stop


@kernel
def rekey(h: Int64, slots: Int64, ids: Int64, keys: Float32, start: Num) -> Num:
    """Give entries still held under `ids` new order keys; returns the first without room."""
    homes, before = int32_at(h[HOMES], h[CAPACITY]), int32_at(h[KEYS], h[CAPACITY])
    for k in range(start, len(slots)):
        slot = slots[k]
        if slot >= 0 and held(h)[slot] == ids[k]:
            bucket, key = np.int64(homes[slot]), ordered.order_key(keys[k])
            if not fits(h, bucket):
                return k
            ordered.delete_entry(h, bucket, np.int64(before[slot]), ids[k])
            ordered.insert(h, bucket, (key << 32) | slot, ids[k])
            before[slot] = key
    return len(slots)

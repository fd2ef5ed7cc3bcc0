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
    BEGIN,
    BLOCKS,
    BUCKET,
    CAPACITY,
    CLASS,
    CODE,
    COUNT,
    DROPPED,
    EVICT,
    FIELDS,
    FIFO,
    GROUP,
    HINT,
    HOMES,
    KEY,
    KEYS,
    LEAST,
    LEFT,
    LISTED_BUCKETS,
    LISTED_CODES,
    MASK,
    OCCUPIED,
    PLACE,
    PLAN,
    PLANNED,
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
def add(h: Int64, code: Num, bucket: Num, word: Num, guess: Num) -> None:
    """Add an entry, the newest, to the bucket of a code (-1: a new one), which `fits`."""
    if bucket < 0:
        bucket = open_bucket(h, code, LEAST)
    ordered.insert_newest(h, bucket, word, guess)
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
    add(h, code, -1, (key << 32) | slot, 0)
    ranking[h[RANKED]] = find(h, code)
    h[RANKED] += 1
    rank_up(h, h[RANKED] - 1)
    shrink(h, bucket)  # last, or it could take the run that was kept for the newcomer
    return slot


@kernel
def recall(h: Int64, code: Num, guess: Num) -> Num:
    """`find`, if a guess is not already the bucket of a code."""
    if guess >= 0 and records(h)[guess, CODE] == code and records(h)[guess, COUNT] > 0:
        return guess
    return find(h, code)


@kernel
def store(h: Int64, code: Num, key: Num, guess: Num, block: Num) -> Num:
    """Apply the rule of the store to one newcomer: its slot, or DROP, or NO_ROOM.

    `guess` and `block` are where it is thought to belong: right more often than not.
    """
    bucket = recall(h, code, guess)
    if h[SIZE] < h[CAPACITY]:
        if not fits(h, bucket):
            return NO_ROOM
        slot = h[SIZE]
        add(h, code, bucket, (key << 32) | slot, block)
        h[SIZE] += 1
    elif h[FIFO]:
        if not fits(h, bucket):
            return NO_ROOM
        slot = h[WRITTEN] % h[CAPACITY]  # the oldest
        home = np.int64(int32_at(h[HOMES], h[CAPACITY])[slot])
        filed = np.int64(int32_at(h[KEYS], h[CAPACITY])[slot])
        ordered.delete_entry(h, home, filed, held(h)[slot])
        add(h, code, bucket, (key << 32) | slot, block)
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
        ordered.replace_worst(h, bucket, (key << 32) | slot, block)
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
def _foresee(h: Int64, rows: Float32, codes: UInt32, plan: Int64) -> None:
    """Plan where rows belong and bring what they need into the cache, one step of all at a time.

    Each step needs what the step before it has fetched; taken together, all rows wait once.
    """
    table, arena, links = records(h), words(h), int64_at(h[TABLE], h[MASK] + 1, 1)
    buckets, blocks, keys = plan[BUCKET], plan[HINT], plan[KEY]
    count = len(rows)
    for k in range(count):
        keys[k] = ordered.order_key(rows[k, h[REWARD]])
        prefetch(links, probe(h, np.int64(codes[k])))
    for k in range(count):
        buckets[k] = find(h, np.int64(codes[k]))
        if buckets[k] >= 0:
            prefetch(table, buckets[k] * FIELDS)
            prefetch(table, buckets[k] * FIELDS + FIELDS - 1)
    _foresee_blocks(h, count, plan)
    for k in range(count):
        if buckets[k] >= 0:
            at, held_there = ordered.block_at(h, buckets[k], blocks[k])
            for p in range(0, held_there + 1, ordered.LINE):
                prefetch(arena, at + p)
            prefetch(arena, ordered.worst(h, buckets[k]))
    if h[SIZE] < h[CAPACITY] or h[FIFO]:
        return
    for k in range(count):
        if buckets[k] >= 0:
            word = arena[ordered.worst(h, buckets[k])]
            if keys[k] >= word >> 32:  # it will be replaced
                prefetch(held(h), word & ordered.SLOT)


@kernel
def _foresee_blocks(h: Int64, count: Num, plan: Int64) -> None:
    """Find the blocks that planned rows belong to, as `seek_block` would."""
    table, arena = records(h), words(h)
    buckets, blocks, keys = plan[BUCKET], plan[HINT], plan[KEY]
    begin, left = plan[BEGIN], plan[LEFT]  # left: blocks that may still be the one, from HINT on
    most = 0
    for k in range(count):
        blocks[k] = left[k] = 0
        if buckets[k] >= 0 and table[buckets[k], BLOCKS]:
            begin[k], left[k] = table[buckets[k], START], table[buckets[k], BLOCKS]
            most = max(most, left[k])
            prefetch(arena, begin[k] + 2 * (left[k] >> 1))
            prefetch(arena, begin[k] + 2 * left[k] - 1)
    while most > 1:
        for k in range(count):
            half = left[k] >> 1
            if half:
                better = arena[begin[k] + 2 * (blocks[k] + half)] > keys[k]
                blocks[k] += half if better else 0
                left[k] -= half
                prefetch(arena, begin[k] + 2 * (blocks[k] + (left[k] >> 1)))
        most -= most >> 1


@kernel
def extend(h: Int64, rows: Float32, codes: UInt32, ids: Int64, slots: Int64, start: Num) -> Num:
    """Store rows from `start` on; returns the first row for which there was no room.

    Two passes, because finding places and copying rows evict each other from the cache.
    """
    kept_ids, stop = held(h), len(rows)
    plan = int64_at(h[PLAN], PLANNED, GROUP)
    if len(rows) == 1:  # it has nobody to wait with
        plan[KEY, 0], plan[BUCKET, 0], plan[HINT, 0] = ordered.order_key(rows[0, h[REWARD]]), -1, 0
    for k in range(start, len(rows)):
        g = (k - start) % GROUP
        if g == 0 and len(rows) > 1:
            last = min(k + GROUP, len(rows))
            _foresee(h, rows[k:last], codes[k:last], plan)
        slot = store(h, np.int64(codes[k]), plan[KEY, g], plan[BUCKET, g], plan[HINT, g])
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

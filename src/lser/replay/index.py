"""Kernels of the bucket index: code -> bucket -> entries in order, and the rule of the store.

Codes are found through an open-addressing table (`header.py`); a bucket's entries lie in order in
runs of one arena (`ordered.py`). Nothing here allocates: where room is missing a kernel stops
before it has changed anything and Python (`buckets.py`) makes room.
"""

import numpy as np

from lser.replay import blocks, ordered
from lser.replay.arena import give_run, has_room, missing, take_run
from lser.replay.compiled import (
    Num,
    UInt32,
    float32_at,
    int32_at,
    int64_at,
    kernel,
    uint32_at,
)
from lser.replay.entries import SLOT, order_key
from lser.replay.foresight import BUCKET, GROUP, HINT, KEY, PLANNED, foresee
from lser.replay.header import (
    BLOCKS,
    CAPACITY,
    CLASS,
    CODE,
    COUNT,
    DROPPED,
    EVICT,
    FIFO,
    HOMES,
    KEYS,
    LEAST,
    LISTED_BUCKETS,
    LISTED_CODES,
    OCCUPIED,
    PLACE,
    PLAN,
    RANKED,
    RANKING,
    REWARD,
    ROOM,
    ROWS,
    SIZE,
    SPARE,
    START,
    TOP,
    TRACKED,
    WIDTH,
    WRITTEN,
    find,
    held,
    link,
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
        return blocks.fits(h, bucket)
    return (h[SPARE] >= 0 or h[TOP] < h[ROOM]) and has_room(h, missing(h, LEAST))


@kernel
def track(h: Int64, bucket: Num, word: Num) -> None:
    """Record where the slot of an entry is filed."""
    int32_at(h[KEYS], h[CAPACITY])[word & SLOT] = word >> 32
    int32_at(h[HOMES], h[CAPACITY])[word & SLOT] = bucket


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
        blocks.move(h, bucket, record[CLASS] - 1)


@kernel
def evict_for(h: Int64, code: Num, key: Num) -> Num:
    """Make room for a new code: the worst entry of the largest bucket goes."""
    if h[RANKED] < 0:
        rank_all(h)
    table, ranking = records(h), int32_at(h[RANKING], h[ROOM])
    bucket = ranking[0]
    slot = words(h)[ordered.worst(h, bucket)] & SLOT
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
        slot = word & SLOT  # the oldest of the lowest key
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
def extend(h: Int64, rows: Float32, codes: UInt32, ids: Int64, slots: Int64, start: Num) -> Num:
    """Store rows from `start` on; returns the first row for which there was no room.

    Two passes, because finding places and copying rows evict each other from the cache.
    """
    kept_ids, stop = held(h), len(rows)
    plan = int64_at(h[PLAN], PLANNED, GROUP)
    if len(rows) == 1:  # it has nobody to wait with
        plan[KEY, 0], plan[BUCKET, 0], plan[HINT, 0] = order_key(rows[0, h[REWARD]]), -1, 0
    for k in range(start, len(rows)):
        g = (k - start) % GROUP
        if g == 0 and len(rows) > 1:
            last = min(k + GROUP, len(rows))
            foresee(h, rows[k:last], codes[k:last], plan)
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
            bucket, key = np.int64(homes[slot]), order_key(keys[k])
            if not fits(h, bucket):
                return k
            ordered.delete_entry(h, bucket, np.int64(before[slot]), ids[k])
            ordered.insert(h, bucket, (key << 32) | slot, ids[k])
            before[slot] = key
    return len(slots)

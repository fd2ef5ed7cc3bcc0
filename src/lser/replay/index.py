"""Kernels of the bucket index: code -> bucket -> entries in order, and the rule of the store.

Codes are found through an open-addressing table (`header.py`); a bucket's entries are an interval
heap in a power-of-two run of one arena; freed runs wait in a list per size. Nothing here allocates:
where room is missing a kernel stops before it has changed anything and Python (`buckets.py`) makes
room.
"""

import numpy as np

from lser.replay import heap
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
    ARENA_ROOM,
    ARENA_TOP,
    CAPACITY,
    CLASS,
    CLASSES,
    CODE,
    COUNT,
    DROPPED,
    EVICT,
    FIELDS,
    FIFO,
    FREE,
    HOMES,
    IDS,
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
    entries,
    find,
    link,
    positions,
    probe,
    records,
    unlink,
)
from lser.replay.packing import near, scatter
from lser.replay.ranking import rank_all, rank_down, rank_up
from lser.types import Float32, Int64

DROP, NO_ROOM = -1, -2
_GROUP = 16  # rows of a block


@kernel
def has_run(h: Int64, size_class: Num) -> Num:
    """Whether a run of 2**size_class entries can be had without growing the arena."""
    free = int64_at(h[FREE], CLASSES, 1)
    return free[size_class, 0] >= 0 or h[ARENA_TOP] + (1 << size_class) <= h[ARENA_ROOM]


@kernel
def take_run(h: Int64, size_class: Num) -> Num:
    """The offset of a free run; `has_run` must hold."""
    free = int64_at(h[FREE], CLASSES, 1)
    at = free[size_class, 0]
    if at >= 0:
        free[size_class, 0] = entries(h)[at, 0]
        return at
    at = h[ARENA_TOP]
    h[ARENA_TOP] += 1 << size_class
    return at


@kernel
def give_run(h: Int64, at: Num, size_class: Num) -> None:
    """Return a run to the list of its size."""
    free = int64_at(h[FREE], CLASSES, 1)
    entries(h)[at, 0] = free[size_class, 0]
    free[size_class, 0] = at


@kernel
def move_run(h: Int64, bucket: Num, size_class: Num) -> None:
    """Move a bucket's entries to a run of another size."""
    record, arena = records(h)[bucket], entries(h)
    old, new = record[START], take_run(h, size_class)
    for k in range(record[COUNT]):
        arena[new + k, 0] = arena[old + k, 0]
        arena[new + k, 1] = arena[old + k, 1]
    give_run(h, old, record[CLASS])
    record[START], record[CLASS] = new, size_class


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
    record[CODE], record[COUNT], record[CLASS] = code, 0, size_class
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
    if bucket < 0:
        return (h[SPARE] >= 0 or h[TOP] < h[ROOM]) and has_run(h, LEAST)
    record = records(h)[bucket]
    return record[COUNT] < 1 << record[CLASS] or has_run(h, record[CLASS] + 1)


@kernel
def add(h: Int64, code: Num, a: Num, i: Num) -> None:
    """Add an entry to the bucket of a code, which `fits`."""
    bucket = find(h, code)
    if bucket < 0:
        bucket = open_bucket(h, code, LEAST)
    record = records(h)[bucket]
    if record[COUNT] == 1 << record[CLASS]:
        move_run(h, bucket, record[CLASS] + 1)
    heap.add(entries(h), record[START], record[COUNT], positions(h), a, i)
    record[COUNT] += 1
    if h[TRACKED]:
        int32_at(h[HOMES], h[CAPACITY])[a & heap.SLOT] = bucket


@kernel
def take(h: Int64, bucket: Num, position: Num) -> None:
    """Remove the entry at a position of a bucket, and the bucket with its last entry."""
    record = records(h)[bucket]
    heap.remove(entries(h), record[START], record[COUNT], positions(h), position)
    record[COUNT] -= 1
    if record[COUNT] == 0:
        close_bucket(h, bucket)


@kernel
def shrink(h: Int64, bucket: Num) -> None:
    """Move a bucket that became sparse into a smaller run, if one is free."""
    record = records(h)[bucket]
    sparse = record[CLASS] > LEAST and 0 < 4 * record[COUNT] <= 1 << record[CLASS]
    if sparse and has_run(h, record[CLASS] - 1):
        move_run(h, bucket, record[CLASS] - 1)


@kernel
def evict_for(h: Int64, code: Num, key: Num) -> Num:
    """Make room for a new code: the worst entry of the largest bucket goes."""
    if h[RANKED] < 0:
        rank_all(h)
    table, ranking = records(h), int32_at(h[RANKING], h[ROOM])
    bucket = ranking[0]
    slot = entries(h)[table[bucket, START], 0] & heap.SLOT
    take(h, bucket, 0)
    if table[bucket, COUNT] < 0:
        h[RANKED] -= 1
        ranking[0] = ranking[h[RANKED]]
    else:
        shrink(h, bucket)
    if h[RANKED] > 0:
        rank_down(h, 0)
    add(h, code, (key << 32) | slot, h[WRITTEN])
    ranking[h[RANKED]] = find(h, code)
    h[RANKED] += 1
    rank_up(h, h[RANKED] - 1)
    return slot


@kernel
def store(h: Int64, code: Num, key: Num) -> Num:
    """Apply the rule of the store to one newcomer: its slot, or DROP, or NO_ROOM."""
    bucket = find(h, code)
    if h[SIZE] < h[CAPACITY]:
        if not fits(h, bucket):
            return NO_ROOM
        slot = h[SIZE]
        add(h, code, (key << 32) | slot, h[WRITTEN])
        h[SIZE] += 1
    elif h[FIFO]:
        if not fits(h, bucket):
            return NO_ROOM
        slot = h[WRITTEN] % h[CAPACITY]  # the oldest
        home = int32_at(h[HOMES], h[CAPACITY])[slot]
        take(h, home, positions(h)[slot])
        add(h, code, (key << 32) | slot, h[WRITTEN])
        shrink(h, home)
    elif bucket >= 0:
        arena, start = entries(h), records(h)[bucket, START]
        if key < arena[start, 0] >> 32:
            return DROP
        slot = arena[start, 0] & heap.SLOT  # the oldest of the lowest key
        near(float32_at(h[ROWS], h[CAPACITY], h[WIDTH]), slot)
        count = records(h)[bucket, COUNT]
        heap.replace_worst(arena, start, count, positions(h), (key << 32) | slot, h[WRITTEN])
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
    table, arena, links = records(h), entries(h), int64_at(h[TABLE], h[MASK] + 1, 1)
    buckets, nodes = np.empty(stop - start, np.int64), np.empty(stop - start, np.int64)
    for k in range(start, stop):
        prefetch(links, probe(h, np.int64(codes[k])))
    for k in range(start, stop):
        buckets[k - start] = find(h, np.int64(codes[k]))
        if buckets[k - start] >= 0:
            prefetch(table, buckets[k - start] * FIELDS)
    for k in range(stop - start):
        if buckets[k] >= 0:
            at = table[buckets[k], START]
            prefetch(arena, 2 * at)
            prefetch(arena, 2 * (at + 2))  # the two nodes below
    if h[SIZE] < h[CAPACITY] or h[FIFO]:
        return
    for k in range(start, stop):
        nodes[k - start] = -1
        if buckets[k - start] >= 0:
            word = arena[table[buckets[k - start], START], 0]
            if heap.order_key(rows[k, h[REWARD]]) >= word >> 32:  # it will be replaced
                nodes[k - start] = 0 if table[buckets[k - start], COUNT] > 2 else -1
                prefetch(int64_at(h[IDS], h[CAPACITY], 1), word & heap.SLOT)
    _foresee_sinking(h, buckets, nodes)


@kernel
def _foresee_sinking(h: Int64, buckets: Int64, nodes: Int64) -> None:
    """Walk down from `nodes` to the leaves as newcomers will that are better than all they meet."""
    table, arena = records(h), entries(h)
    walking = True
    while walking:
        walking = False
        for k in range(len(buckets)):
            if nodes[k] < 0:
                continue
            at, n = table[buckets[k], START], table[buckets[k], COUNT]
            child = heap.lower_child(arena, at, n, nodes[k])
            nodes[k] = child if 4 * child + 2 < n else -1
            if nodes[k] >= 0:
                prefetch(arena, 2 * (at + 4 * child + 2))
                walking = True


@kernel
def extend(h: Int64, rows: Float32, codes: UInt32, ids: Int64, slots: Int64, start: Num) -> Num:
    """Store rows from `start` on; returns the first row for which there was no room.

    Two passes, because finding places and copying rows evict each other from the cache.
    """
    held = int64_at(h[IDS], h[CAPACITY], 1)
    stop = len(rows)
    for k in range(start, len(rows)):
        if (k - start) % _GROUP == 0 and k + 1 < len(rows):
            _foresee(h, rows, codes, k, min(k + _GROUP, len(rows)))
        slot = store(h, np.int64(codes[k]), heap.order_key(rows[k, h[REWARD]]))
        if slot == NO_ROOM:
            stop = k
            break
        slots[k] = slot
        if slot == DROP:
            ids[k] = -1
            h[DROPPED] += 1
        else:
            ids[k] = held[slot, 0] = h[WRITTEN]
            h[WRITTEN] += 1
    kept = float32_at(h[ROWS], h[CAPACITY], h[WIDTH])
    scatter(kept, slots[start:stop], rows[start:stop])
    return stop


@kernel
def rekey(h: Int64, slots: Int64, ids: Int64, keys: Float32) -> None:
    """Give entries still held under `ids` new order keys."""
    arena, where = entries(h), positions(h)
    held, homes = int64_at(h[IDS], h[CAPACITY], 1), int32_at(h[HOMES], h[CAPACITY])
    for k in range(len(slots)):
        slot = slots[k]
        if slot >= 0 and held[slot, 0] == ids[k]:
            record = records(h)[homes[slot]]
            word = (heap.order_key(keys[k]) << 32) | slot
            heap.fix(arena, record[START], record[COUNT], where, where[slot], word, ids[k])

"""The entries of a bucket in order, best first: sought, put in, taken out and read.

Equal keys are in the order of their slots' ids, newer first; as a newcomer is newer than all, ids
are only looked at where an older entry is sought. The best of a bucket are read as they lie, the
worst is the last, and a newcomer moves at most one block's entries, however large the bucket: a
heap would walk down all its levels.

Where an id is asked for, `NEWEST` stands for one above all others.
"""

import numpy as np

from lser.replay.blocks import (
    BLOCK,
    WIDE,
    begin_directory,
    block_at,
    close_block,
    describe,
    merge,
    move,
    split,
)
from lser.replay.compiled import Num, kernel, prefetch, slide
from lser.replay.entries import SLOT
from lser.replay.header import BLOCKS, CLASS, COUNT, SIZE, START, held, records, words
from lser.types import Int64

NEWEST = -1
LINE = 8  # words in a cache line


@kernel
def first_is_better(h: Int64, arena: Int64, at: Num, key: Num, i: Num) -> Num:
    """Whether the first entry of the block under the pair at `at` is better than (key, i)."""
    if arena[at] != key or i == NEWEST:
        return arena[at] > key
    return held(h)[arena[arena[at + 1] >> 8] & SLOT] > i


@kernel
def seek_block(h: Int64, bucket: Num, key: Num, i: Num) -> Num:
    """The block to which (key, i) belongs: the last that begins with a better entry, or 0."""
    record, arena = records(h)[bucket], words(h)
    low, high = 0, record[BLOCKS]
    while low < high:
        middle = (low + high) >> 1
        better = first_is_better(h, arena, record[START] + 2 * middle, key, i)
        low = middle + 1 if better else low
        high = high if better else middle
    return max(low - 1, 0)


@kernel
def recall_block(h: Int64, bucket: Num, key: Num, guess: Num) -> Num:
    """`seek_block` for a newcomer of this key, if a guess does not already lead to it."""
    record, arena = records(h)[bucket], words(h)
    if guess < record[BLOCKS]:
        pair = record[START] + 2 * guess
        last = guess + 1 == record[BLOCKS]
        if (guess == 0 or arena[pair] > key) and (last or arena[pair + 2] <= key):
            return guess
    return seek_block(h, bucket, key, NEWEST)


@kernel
def seek_entry(h: Int64, at: Num, count: Num, key: Num, i: Num) -> Num:
    """How many entries of a block are better than (key, i)."""
    arena, low = words(h), 0
    while count > 0:
        half = count >> 1
        word = arena[at + low + half]
        better = word >> 32 > key
        if word >> 32 == key and i != NEWEST:
            better = held(h)[word & SLOT] > i
        low = low + half + 1 if better else low
        count = count - half - 1 if better else half
    return low


@kernel
def _settle(arena: Int64, at: Num, p: Num, word: Num) -> Num:
    """Put the newest entry among the p of a block, from its end, which has room; returns where."""
    low, left = at, p
    while left > 0:  # the first that is no better, without branches on what is found
        half = left >> 1
        better = arena[low + half] >> 32 > word >> 32
        low = low + half + 1 if better else low
        left = left - half - 1 if better else half
    slide(arena, low, at + p, low + 1)
    arena[low] = word
    return low - at


@kernel
def insert_newest(h: Int64, bucket: Num, word: Num, guess: Num) -> None:
    """`insert` for an id above all others, which is what traffic brings; `guess` is its block."""
    record, arena = records(h)[bucket], words(h)
    if record[BLOCKS] == 0:
        if record[COUNT] < 1 << record[CLASS]:
            _settle(arena, record[START], record[COUNT], word)
            record[COUNT] += 1
            return
    else:
        pair = record[START] + 2 * recall_block(h, bucket, word >> 32, guess)
        block = arena[pair + 1]
        if block & 255 < WIDE:
            if _settle(arena, block >> 8, block & 255, word) == 0:
                arena[pair] = word >> 32
            arena[pair + 1] = block + 1
            record[COUNT] += 1
            return
    insert(h, bucket, word, NEWEST)


@kernel
def replace_worst(h: Int64, bucket: Num, word: Num, guess: Num) -> None:
    """Put the newest entry, which `fits`, in the place of the worst."""
    record, arena = records(h)[bucket], words(h)
    if record[BLOCKS] == 0:
        _settle(arena, record[START], record[COUNT] - 1, word)
        return
    last = record[START] + 2 * record[BLOCKS] - 1
    if arena[last] & 255 > 1:
        arena[last] -= 1
        record[COUNT] -= 1
    else:
        delete_worst(h, bucket)
    insert_newest(h, bucket, word, guess)


@kernel
def insert(h: Int64, bucket: Num, word: Num, i: Num) -> None:
    """Put an entry of id i, or `NEWEST`, in its place; it must fit."""
    record, key = records(h)[bucket], word >> 32
    if not record[BLOCKS] and record[COUNT] == 1 << record[CLASS]:
        if record[CLASS] < BLOCK:
            move(h, bucket, record[CLASS] + 1)
        else:
            begin_directory(h, bucket)
    b = seek_block(h, bucket, key, i)
    at, count = block_at(h, bucket, b)
    p = seek_entry(h, at, count, key, i)
    if record[BLOCKS] and count == WIDE:
        b, p = split(h, bucket, b, p, key)
        at, count = block_at(h, bucket, b)
    arena = words(h)
    slide(arena, at + p, at + count, at + p + 1)
    arena[at + p] = word
    record[COUNT] += 1
    if record[BLOCKS]:
        describe(h, bucket, b, at, count + 1)


@kernel
def delete(h: Int64, bucket: Num, b: Num, p: Num) -> None:
    """Take out the entry at position p of block b."""
    record = records(h)[bucket]
    at, count = block_at(h, bucket, b)
    slide(words(h), at + p + 1, at + count, at + p)
    record[COUNT] -= 1
    if not record[BLOCKS]:
        return
    if count == 1:
        close_block(h, bucket, b)
        return
    describe(h, bucket, b, at, count - 1)
    if count <= WIDE // 4:
        merge(h, bucket, b if b + 1 < record[BLOCKS] else b - 1)


@kernel
def delete_entry(h: Int64, bucket: Num, key: Num, i: Num) -> None:
    """Take out the entry of this order key and id, which must be there."""
    # it is no better than itself, so a block that begins with it is the one after what is found
    b = seek_block(h, bucket, key, i)
    if b + 1 < records(h)[bucket, BLOCKS]:
        at, _ = block_at(h, bucket, b + 1)
        b += held(h)[words(h)[at] & SLOT] == i
    at, count = block_at(h, bucket, b)
    delete(h, bucket, b, seek_entry(h, at, count, key, i))


@kernel
def worst(h: Int64, bucket: Num) -> Num:
    """Where in the arena the worst entry of a bucket lies."""
    at, count = block_at(h, bucket, records(h)[bucket, BLOCKS] - 1)
    return at + count - 1


@kernel
def delete_worst(h: Int64, bucket: Num) -> None:
    """Take out the worst entry of a bucket."""
    b = max(records(h)[bucket, BLOCKS] - 1, 0)
    delete(h, bucket, b, block_at(h, bucket, b)[1] - 1)


@kernel
def best(h: Int64, bucket: Num, slots: Int64) -> None:
    """Write the slots of the best entries, best first; there must be as many."""
    arena, blocks = words(h), max(records(h)[bucket, BLOCKS], 1)
    ahead, b = 0, 0
    while ahead < len(slots) and b < blocks:  # all of them wait for memory once
        at, count = block_at(h, bucket, b)
        for p in range(0, count, LINE):
            prefetch(arena, at + p)
        ahead, b = ahead + count, b + 1
    done, b = 0, 0
    while done < len(slots):
        at, count = block_at(h, bucket, b)
        for p in range(min(count, len(slots) - done)):
            slots[done + p] = arena[at + p] & SLOT
        done, b = done + count, b + 1


@kernel
def by_rank(h: Int64, bucket: Num, ranks: Int64) -> None:
    """Replace ranks in the order of a bucket (0: the best) by slots."""
    arena, blocks = words(h), max(records(h)[bucket, BLOCKS], 1)
    begins = np.empty(blocks + 1, np.int64)
    begins[0] = 0
    for b in range(blocks):
        begins[b + 1] = begins[b] + block_at(h, bucket, b)[1]
    for k in range(len(ranks)):
        b = ranks[k] * blocks // begins[blocks]  # near, as blocks are about equally full
        while ranks[k] < begins[b]:
            b -= 1
        while ranks[k] >= begins[b + 1]:
            b += 1
        ranks[k] = block_at(h, bucket, b)[0] + ranks[k] - begins[b]
        prefetch(arena, ranks[k])
    for k in range(len(ranks)):
        ranks[k] = arena[ranks[k]] & SLOT


@kernel
def in_order(h: Int64, bucket: Num) -> Num:
    """Whether the entries of a bucket descend, and its directory says what its blocks hold."""
    record, arena = records(h)[bucket], words(h)
    total, key, i = 0, np.int64(1) << 32, np.int64(0)
    for b in range(max(record[BLOCKS], 1)):
        at, count = block_at(h, bucket, b)
        if record[BLOCKS] and (count < 1 or count > WIDE):
            return False
        if record[BLOCKS] and arena[record[START] + 2 * b] != arena[at] >> 32:
            return False
        for p in range(at, at + count):
            if arena[p] & SLOT >= h[SIZE]:
                return False
            found, id_ = arena[p] >> 32, held(h)[arena[p] & SLOT]
            if found > key or (found == key and id_ >= i):
                return False
            key, i = found, id_
        total += count
    return total == record[COUNT]

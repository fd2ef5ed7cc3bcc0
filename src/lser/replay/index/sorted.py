"""The entries of a bucket in order, best first: sought, put in, taken out and read.

Equal keys are in the order of their slots' ids, newer first; as a newcomer is newer than all, ids
are only looked at where an older entry is sought. The best of a bucket are read as they lie, the
worst is the last, and a newcomer moves at most one block's entries, however large the bucket.

Where an id is asked for, `NEWEST` stands for one above all others.
"""

import numpy as np

from lser.compiled import Num, inlined, inner, prefetch
from lser.replay.index.blocks import (
    BLOCK,
    SLOT,
    WIDE,
    begin_directory,
    block_at,
    close_block,
    describe,
    merge,
    move,
    slide,
    split,
)
from lser.replay.index.layout import Header, arena, buckets, ids_of
from lser.types import Int64

NEWEST = -1
LINE = 8  # words in a cache line


@inlined
def seek_block(h: Header, bucket: Num, key: Num, newer: Num) -> Num:
    """The block to which (key, id) belongs: the last that begins with a better entry, or 0."""
    record, words, ids = buckets(h)[bucket], arena(h), ids_of(h)
    low, high = np.int64(0), record.blocks
    while low < high:
        middle = (low + high) >> 1
        pair = record.start + 2 * middle
        better = words[pair] > key
        if words[pair] == key and newer != NEWEST:
            better = ids[words[words[pair + 1] >> 8] & SLOT] > newer
        low = middle + 1 if better else low
        high = high if better else middle
    return max(low - 1, 0)


@inner
def seek_entry(h: Header, at: Num, count: Num, key: Num, newer: Num) -> Num:
    """The lower bound of (key, id) among the `count` entries from `at` on."""
    words, ids, low = arena(h), ids_of(h), at
    if newer == NEWEST:
        while count > 0:  # branch-free: what is found decides by selection alone
            half = count >> 1
            better = words[low + half] >> 32 > key
            low = low + half + 1 if better else low
            count = count - half - 1 if better else half
        return low - at
    while count > 0:
        half = count >> 1
        word = words[low + half]
        if word >> 32 > key or (word >> 32 == key and ids[word & SLOT] > newer):
            low += half + 1
            count -= half + 1
        else:
            count = half
    return low - at


@inner
def insert(h: Header, bucket: Num, word: Num, newer: Num) -> None:
    """Put an entry of this id, or `NEWEST`, in its place; it must fit."""
    record, key = buckets(h)[bucket], word >> 32
    if not record.blocks and record.count == 1 << record.size_class:
        if record.size_class < BLOCK:
            move(h, bucket, record.size_class + 1)
        else:
            begin_directory(h, bucket)
    b = seek_block(h, bucket, key, newer)
    at, count = block_at(h, bucket, b)
    p = seek_entry(h, at, count, key, newer)
    if record.blocks and count == WIDE:
        b, p = split(h, bucket, b, p, key)
        at, count = block_at(h, bucket, b)
    words = arena(h)
    slide(words, at + p, at + count, at + p + 1)
    words[at + p] = word
    record.count += 1
    if record.blocks:
        describe(h, bucket, b, at, count + 1)


@inner
def delete(h: Header, bucket: Num, b: Num, p: Num) -> None:
    """Take out the entry at position p of block b."""
    record = buckets(h)[bucket]
    at, count = block_at(h, bucket, b)
    slide(arena(h), at + p + 1, at + count, at + p)
    record.count -= 1
    if not record.blocks:
        return
    if count == 1:
        close_block(h, bucket, b)
        return
    describe(h, bucket, b, at, count - 1)
    if count <= WIDE // 4:
        merge(h, bucket, b if b + 1 < record.blocks else b - 1)


@inner
def delete_entry(h: Header, bucket: Num, key: Num, identity: Num) -> None:
    """Take out the entry of this order key and id, which must be there."""
    # The search ends at the last block that begins with a better entry. An entry that is itself
    # the first of its block is in the next one.
    b = seek_block(h, bucket, key, identity)
    if b + 1 < buckets(h)[bucket].blocks:
        at, _ = block_at(h, bucket, b + 1)
        b += ids_of(h)[arena(h)[at] & SLOT] == identity
    at, count = block_at(h, bucket, b)
    delete(h, bucket, b, seek_entry(h, at, count, key, identity))


@inlined
def last_block(h: Header, bucket: Num) -> Num:
    """The block that holds a bucket's worst entry."""
    return max(buckets(h)[bucket].blocks - 1, 0)


@inlined
def worst(h: Header, bucket: Num) -> Num:
    """The worst entry of a bucket."""
    at, count = block_at(h, bucket, last_block(h, bucket))
    return arena(h)[at + count - 1]


@inlined
def delete_worst(h: Header, bucket: Num) -> None:
    """Take out the worst entry of a bucket."""
    b = last_block(h, bucket)
    delete(h, bucket, b, block_at(h, bucket, b)[1] - 1)


@inner
def best(h: Header, bucket: Num, slots: Int64) -> None:
    """Write the slots of the best entries, best first; there must be as many."""
    words, blocks = arena(h), max(buckets(h)[bucket].blocks, 1)
    ahead, b = np.int64(0), np.int64(0)
    while ahead < len(slots) and b < blocks:  # prefetch all, to wait for memory once
        at, count = block_at(h, bucket, b)
        for p in range(0, count, LINE):
            prefetch(words, at + p)
        ahead, b = ahead + count, b + 1
    done, b = np.int64(0), np.int64(0)
    while done < len(slots):
        at, count = block_at(h, bucket, b)
        for p in range(min(count, len(slots) - done)):
            slots[done + p] = words[at + p] & SLOT
        done, b = done + count, b + 1


@inner
def by_rank(h: Header, bucket: Num, ranks: Int64) -> None:
    """Replace ranks in the order of a bucket (0: the best) by slots."""
    words, blocks = arena(h), max(buckets(h)[bucket].blocks, 1)
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
        prefetch(words, ranks[k])
    for k in range(len(ranks)):
        ranks[k] = words[ranks[k]] & SLOT

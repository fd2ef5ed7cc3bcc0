"""A look ahead: where the rows of a block belong, and what they need, before any is stored."""

import numpy as np

from lser.replay import ordered
from lser.replay.blocks import block_at
from lser.replay.compiled import Num, UInt32, int64_at, kernel, prefetch
from lser.replay.entries import SLOT, order_key
from lser.replay.header import (
    BLOCKS,
    CAPACITY,
    FIELDS,
    FIFO,
    MASK,
    REWARD,
    SIZE,
    START,
    TABLE,
    find,
    held,
    probe,
    records,
    words,
)
from lser.types import Float32, Int64

KEY, BUCKET, HINT, BEGIN, LEFT, PLANNED = range(6)  # rows of a plan, (PLANNED, GROUP)
GROUP = 16  # rows that are looked at together


@kernel
def foresee(h: Int64, rows: Float32, codes: UInt32, plan: Int64) -> None:
    """Plan where rows belong and bring what they need into the cache, one step of all at a time.

    Each step needs what the step before it has fetched; taken together, all rows wait once.
    """
    table, arena, links = records(h), words(h), int64_at(h[TABLE], h[MASK] + 1, 1)
    buckets, blocks, keys = plan[BUCKET], plan[HINT], plan[KEY]
    count = len(rows)
    for k in range(count):
        keys[k] = order_key(rows[k, h[REWARD]])
        prefetch(links, probe(h, np.int64(codes[k])))
    for k in range(count):
        buckets[k] = find(h, np.int64(codes[k]))
        if buckets[k] >= 0:
            prefetch(table, buckets[k] * FIELDS)
            prefetch(table, buckets[k] * FIELDS + FIELDS - 1)
    _find_blocks(h, count, plan)
    for k in range(count):
        if buckets[k] >= 0:
            at, held_there = block_at(h, buckets[k], blocks[k])
            for p in range(0, held_there + 1, ordered.LINE):
                prefetch(arena, at + p)
            prefetch(arena, ordered.worst(h, buckets[k]))
    if h[SIZE] < h[CAPACITY] or h[FIFO]:
        return
    for k in range(count):
        if buckets[k] >= 0:
            word = arena[ordered.worst(h, buckets[k])]
            if keys[k] >= word >> 32:  # it will be replaced
                prefetch(held(h), word & SLOT)


@kernel
def _find_blocks(h: Int64, count: Num, plan: Int64) -> None:
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

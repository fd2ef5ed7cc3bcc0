"""The rule of the draw: which slots a query replays, and the codes nearest to an unknown one."""

import numpy as np

from lser.compiled import Num, UInt64, inlined, inner, popcount
from lser.random import below, distinct, unit
from lser.replay.index.layout import (
    Header,
    buckets,
    find,
    generator,
    listed_buckets,
    listed_codes,
)
from lser.replay.index.sorted import best, by_rank
from lser.types import Int64

MEMORY = -1  # as a bucket, where draws are random: all slots
ANY_CODE = -1  # as a code: that of an occupied bucket drawn at random
_CHUNK = 256


@inlined
def similarity(a: Num, b: Num) -> Num:
    """Jaccard similarity of two different codes, less a little for their Hamming distance.

    Two different values of popcount(a & b) / popcount(a | b) are at least 1/992 apart, and the
    Hamming distance is at most 32, so the second term orders ties of the first and nothing else.
    """
    either = np.float32(popcount(np.int32(a | b)))
    apart = np.float32(popcount(np.int32(a ^ b)))
    return (either - apart) / either - apart * np.float32(1e-5)


@inner
def nearer(h: Header, score: Num, bucket: Num, other_score: Num, other: Num) -> Num:
    """Whether a bucket of this similarity comes before another (-1: none) of that."""
    if other < 0 or score != other_score:
        return other < 0 or score > other_score
    left, right = buckets(h)[bucket], buckets(h)[other]
    return left.count > right.count or (left.count == right.count and left.code < right.code)


@inner
def nearest_two(h: Header, code: Num) -> tuple[Num, Num]:
    """The two nearest buckets to an unoccupied code, nearest first; the second may be -1.

    Ties: smaller Hamming distance, then larger bucket, then smaller code. Chunks in which no
    similarity reaches the second best so far are passed over without a branch per code.
    """
    codes, listed = listed_codes(h), listed_buckets(h)
    wanted = np.uint32(code)
    scores = np.empty(_CHUNK, np.float32)
    first, second = np.int64(-1), np.int64(-1)
    first_score, second_score = np.float32(-1.0), np.float32(-1.0)
    for begin in range(0, h.occupied, _CHUNK):
        size = min(_CHUNK, h.occupied - begin)
        reached = 0
        for k in range(size):
            scores[k] = similarity(codes[begin + k], wanted)
            reached += scores[k] >= second_score
        if reached == 0:
            continue
        for k in range(size):
            score, bucket = scores[k], np.int64(listed[begin + k])
            if nearer(h, score, bucket, first_score, first):
                second_score, second = first_score, first
                first_score, first = score, bucket
            elif nearer(h, score, bucket, second_score, second):
                second_score, second = score, bucket
    return first, second


@inner
def fill(h: Header, state: UInt64, slots: Int64, have: Num) -> None:
    """Complete a pool that was too small."""
    for k in range(have, len(slots)):
        slots[k] = slots[k - have] if h.repeat else below(state, h.size)
    h.filled += len(slots) - have


@inlined
def draw_greedily(h: Header, state: UInt64, bucket: Num, slots: Int64) -> None:
    """The best of a bucket, best first."""
    have = min(buckets(h)[bucket].count, len(slots))
    best(h, bucket, slots[:have])
    fill(h, state, slots, have)
    h.greedy += len(slots)


@inner
def draw_randomly(h: Header, state: UInt64, bucket: Num, slots: Int64) -> None:
    """Uniform without replacement from a bucket, or from all slots."""
    if bucket == MEMORY or h.from_memory:
        have = distinct(state, h.size, slots)
    else:
        have = distinct(state, buckets(h)[bucket].count, slots)
        by_rank(h, bucket, slots[:have])
    fill(h, state, slots, have)


@inner
def draw_from(h: Header, state: UInt64, bucket: Num, coin: Num, greedy: Num, slots: Int64) -> None:
    """Fill `slots` from one bucket: first the reward-driven items, then the random ones."""
    count = len(slots)
    wanted = count if coin < greedy else 0
    if h.per_item:
        wanted = 0
        for _ in range(count):
            wanted += unit(state) < greedy
    if wanted > 0:
        draw_greedily(h, state, bucket, slots[:wanted])
    if wanted < count:
        draw_randomly(h, state, bucket, slots[wanted:])


@inner
def pick(h: Header, code: Num, greedy: Num, slots: Int64) -> None:
    """Fill `slots` with what a query of this code replays."""
    state = generator(h)
    h.draws += 1
    h.items += len(slots)
    if h.uniform:
        for k in range(len(slots)):
            slots[k] = below(state, h.size)
        return
    coin = unit(state)
    if code == ANY_CODE:
        first = np.int64(listed_buckets(h)[below(state, h.occupied)])
    else:
        first = find(h, code)
    second, half = np.int64(-1), len(slots)
    if first < 0 and not (h.from_memory and not h.per_item and coin >= greedy):
        h.fallbacks += 1
        first, second = nearest_two(h, code)
        if second >= 0:
            half = (len(slots) + 1) // 2
    bucket, start, stop = first, 0, half
    while start < stop:
        draw_from(h, state, bucket, coin, greedy, slots[start:stop])
        bucket, start, stop = second, stop, len(slots)

"""The two occupied codes most Jaccard-similar to a code that has no bucket."""

import numpy as np

from lser.replay.compiled import Num, int32_at, kernel, popcount, uint32_at
from lser.replay.header import CODE, COUNT, LISTED_BUCKETS, LISTED_CODES, OCCUPIED, ROOM, records
from lser.types import Int64

_CHUNK = 256


@kernel
def similarity(a: Num, b: Num) -> Num:
    """Jaccard similarity of two different codes, less a little for their Hamming distance.

    Two different values of popcount(a & b) / popcount(a | b) are at least 1/992 apart, and the
    Hamming distance is at most 32, so the second term orders ties of the first and nothing else.
    """
    either = np.float32(popcount(np.int32(a | b)))
    apart = np.float32(popcount(np.int32(a ^ b)))
    return (either - apart) / either - apart * np.float32(1e-5)


@kernel
def _before(table: Int64, s: Num, b: Num, t: Num, c: Num) -> Num:
    """Whether bucket b of similarity s comes before bucket c (-1: none) of similarity t."""
    if c < 0 or s != t:
        return c < 0 or s > t
    m, n = table[b, COUNT], table[c, COUNT]
    return m > n or (m == n and table[b, CODE] < table[c, CODE])


@kernel
def nearest_two(h: Int64, code: Num) -> tuple[Num, Num]:
    """The two nearest buckets to an unoccupied code, nearest first; the second may be -1.

    Ties: smaller Hamming distance, then larger bucket, then smaller code. Chunks in which no
    similarity reaches the second best so far are passed over without a branch per code.
    """
    table = records(h)
    codes, buckets = uint32_at(h[LISTED_CODES], h[ROOM]), int32_at(h[LISTED_BUCKETS], h[ROOM])
    wanted = np.uint32(code)
    scores = np.empty(_CHUNK, np.float32)
    first, second = np.int64(-1), np.int64(-1)
    s1, s2 = np.float32(-1.0), np.float32(-1.0)
    for begin in range(0, h[OCCUPIED], _CHUNK):
        size = min(_CHUNK, h[OCCUPIED] - begin)
        reached = 0
        for k in range(size):
            scores[k] = similarity(codes[begin + k], wanted)
            reached += scores[k] >= s2
        if reached == 0:
            continue
        for k in range(size):
            s, bucket = scores[k], np.int64(buckets[begin + k])
            if _before(table, s, bucket, s1, first):
                s2, second = s1, first
                s1, first = s, bucket
            elif _before(table, s, bucket, s2, second):
                s2, second = s, bucket
    return first, second

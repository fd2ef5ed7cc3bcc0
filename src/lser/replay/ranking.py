"""Buckets by size, for the memory that evicts from the largest: a binary heap in the header."""

from lser.replay.compiled import Num, int32_at, kernel
from lser.replay.header import (
    CODE,
    COUNT,
    LISTED_BUCKETS,
    OCCUPIED,
    RANK,
    RANKED,
    RANKING,
    ROOM,
    records,
)
from lser.types import Int64


@kernel
def bigger(table: Int64, b: Num, c: Num) -> Num:
    """Whether bucket b is evicted from before c: the larger, then the smaller code."""
    m, n = table[b, COUNT], table[c, COUNT]
    return m > n or (m == n and table[b, CODE] < table[c, CODE])


@kernel
def rank_up(h: Int64, at: Num) -> None:
    """Restore the ranking above a place whose bucket may have become bigger."""
    table, ranking = records(h), int32_at(h[RANKING], h[ROOM])
    bucket = ranking[at]
    while at > 0 and bigger(table, bucket, ranking[(at - 1) >> 1]):
        ranking[at] = ranking[(at - 1) >> 1]
        table[ranking[at], RANK] = at
        at = (at - 1) >> 1
    ranking[at] = bucket
    table[bucket, RANK] = at


@kernel
def rank_down(h: Int64, at: Num) -> None:
    """Restore the ranking below a place whose bucket may have become smaller."""
    table, ranking = records(h), int32_at(h[RANKING], h[ROOM])
    bucket = ranking[at]
    while True:
        child = 2 * at + 1
        if child >= h[RANKED]:
            break
        if child + 1 < h[RANKED] and bigger(table, ranking[child + 1], ranking[child]):
            child += 1
        if not bigger(table, ranking[child], bucket):
            break
        ranking[at] = ranking[child]
        table[ranking[at], RANK] = at
        at = child
    ranking[at] = bucket
    table[bucket, RANK] = at


@kernel
def rank_all(h: Int64) -> None:
    """Build the ranking, at the first eviction: before the memory is full none is needed."""
    ranking, buckets = int32_at(h[RANKING], h[ROOM]), int32_at(h[LISTED_BUCKETS], h[ROOM])
    h[RANKED] = h[OCCUPIED]
    for at in range(h[OCCUPIED]):
        ranking[at] = buckets[at]
        records(h)[buckets[at], RANK] = at
    for at in range(h[OCCUPIED] // 2, -1, -1):
        rank_down(h, at)

"""The header of the bucket index: its places, the arrays it points to, and the table of codes.

All state of the index hangs off one int64 array `h`; kernels take it instead of many arrays.
"""

from typing import Any

from lser.replay.compiled import Num, int64_at, kernel
from lser.types import Int64

# fmt: off
(CAPACITY, SIZE, WRITTEN, DROPPED, WIDTH, REWARD, ROWS, IDS,  # the store
 ARENA, ARENA_ROOM, ARENA_TOP, FREE,  # runs of words
 BUCKETS, ROOM, TOP, SPARE,  # bucket records, and the first one to use again
 TABLE, MASK,  # code -> bucket
 OCCUPIED, LISTED_CODES, LISTED_BUCKETS,  # the occupied codes, packed
 TRACKED, KEYS, HOMES,  # slot -> order key and bucket, where entries are sought by slot
 RANKED, RANKING,  # buckets by size; RANKED is -1 until the first eviction
 FIFO, EVICT,  # the rule of the store
 PER_ITEM, FROM_MEMORY, REPEAT, UNIFORM,  # the rule of the draw
 RNG, DRAWS, ITEMS, GREEDY, FILLED, FALLBACKS,  # the state of the generator; counters of the draws
 DIM, BITS, COLUMNS, VECTORS, SHIFT, SCALE,  # the SimHash of `direct.py`
 SCRATCH,  # room for one row, its code and its slot
 PLAN,  # of `foresight.py`
 LENGTH) = range(47)
CODE, START, COUNT, CLASS, BLOCKS, PLACE, RANK, FIELDS = range(8)  # of a bucket record
CLASSES = 40  # of runs: 2**LEAST .. 2**39 words
LEAST = 2
# fmt: on


@kernel
def records(h: Int64) -> Any:
    """The bucket records, (room, FIELDS)."""
    return int64_at(h[BUCKETS], h[ROOM], FIELDS)


@kernel
def words(h: Int64) -> Any:
    """The arena, (words,)."""
    return int64_at(h[ARENA], 1, h[ARENA_ROOM])[0]


@kernel
def held(h: Int64) -> Any:
    """The id in each slot, (capacity,)."""
    return int64_at(h[IDS], 1, h[CAPACITY])[0]


@kernel
def probe(h: Int64, code: Num) -> Num:
    """Where in the table to look for a code first."""
    return ((code * -7046029254386353131) >> 32) & h[MASK]  # Knuth's multiplicative hashing


@kernel
def find(h: Int64, code: Num) -> Num:
    """The bucket of a code, or -1."""
    table = int64_at(h[TABLE], h[MASK] + 1, 1)
    at = probe(h, code)
    while table[at, 0] != -1:
        if (table[at, 0] >> 32) & 0xFFFFFFFF == code:
            return table[at, 0] & 0xFFFFFFFF
        at = (at + 1) & h[MASK]
    return -1


@kernel
def link(h: Int64, code: Num, bucket: Num) -> None:
    """Enter a code that is not in the table."""
    table = int64_at(h[TABLE], h[MASK] + 1, 1)
    at = probe(h, code)
    while table[at, 0] != -1:
        at = (at + 1) & h[MASK]
    table[at, 0] = (code << 32) | bucket


@kernel
def unlink(h: Int64, code: Num) -> None:
    """Take a code out of the table, closing the gap so that later probes still arrive."""
    table = int64_at(h[TABLE], h[MASK] + 1, 1)
    at = probe(h, code)
    while (table[at, 0] >> 32) & 0xFFFFFFFF != code or table[at, 0] == -1:
        at = (at + 1) & h[MASK]
    gap = at
    while True:
        at = (at + 1) & h[MASK]
        if table[at, 0] == -1:
            break
        home = probe(h, (table[at, 0] >> 32) & 0xFFFFFFFF)
        if (at - home) & h[MASK] >= (at - gap) & h[MASK]:
            table[gap, 0] = table[at, 0]
            gap = at
    table[gap, 0] = -1

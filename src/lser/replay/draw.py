"""The rule of the draw, compiled: which slots a query replays."""

import numpy as np

from lser.replay import ordered
from lser.replay.compiled import Num, UInt64, int32_at, kernel
from lser.replay.header import (
    COUNT,
    DRAWS,
    FALLBACKS,
    FILLED,
    FROM_MEMORY,
    GREEDY,
    ITEMS,
    LISTED_BUCKETS,
    OCCUPIED,
    PER_ITEM,
    REPEAT,
    RNG,
    ROOM,
    SIZE,
    UNIFORM,
    find,
    records,
)
from lser.replay.nearest import nearest_two
from lser.types import Int64

MEMORY = -1  # as a bucket: all slots
ANY_CODE = -1  # as a code: that of an occupied bucket drawn at random


@kernel
def _next(state: UInt64) -> Num:
    """The next 64 random bits (SplitMix64: Steele, Lea and Flood 2014)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def below(state: UInt64, n: Num) -> Num:
    """A uniform integer in [0, n), n < 2**32 (Lemire 2019: exact, by rejection)."""
    bound, low = np.uint64(n), np.uint64(0xFFFFFFFF)
    product = (_next(state) >> np.uint64(32)) * bound
    if (product & low) < bound:
        threshold = (np.uint64(1) << np.uint64(32)) % bound
        while (product & low) < threshold:
            product = (_next(state) >> np.uint64(32)) * bound
    return np.int64(product >> np.uint64(32))


@kernel
def _unit(state: UInt64) -> Num:
    """A uniform number in [0, 1)."""
    return np.float64(_next(state) >> np.uint64(11)) * 2.0**-53


@kernel
def _distinct(state: UInt64, n: Num, picks: Int64) -> None:
    """Fill `picks` with distinct uniform integers below n > len(picks) (Floyd's algorithm)."""
    count = len(picks)
    size = 4
    while size < 2 * count:
        size *= 2
    seen = np.full(size, -1, np.int64)
    for k in range(count):
        top = n - count + k
        pick = below(state, top + 1)
        for value in (pick, top):  # `top` is new for sure, so it stands in for a repeated pick
            at = (value * 0x9E3779B1) & (size - 1)
            while seen[at] != -1 and seen[at] != value:
                at = (at + 1) & (size - 1)
            if seen[at] == -1:
                seen[at] = value
                picks[k] = value
                break


@kernel
def _choose(state: UInt64, n: Num, picks: Int64) -> Num:
    """Draw distinct integers below n into `picks`, all n in random order where it holds more."""
    count = min(n, len(picks))
    if n > len(picks):
        _distinct(state, n, picks)
    else:
        for k in range(n):
            other = below(state, k + 1)
            picks[k] = picks[other]
            picks[other] = k
    return count


@kernel
def _fill(h: Int64, state: UInt64, slots: Int64, have: Num) -> None:
    """Complete a pool that was too small."""
    for k in range(have, len(slots)):
        slots[k] = slots[k - have] if h[REPEAT] else below(state, h[SIZE])
    h[FILLED] += len(slots) - have


@kernel
def _greedy(h: Int64, state: UInt64, bucket: Num, slots: Int64) -> None:
    """The best of a bucket, best first."""
    have = min(records(h)[bucket, COUNT], len(slots))
    ordered.best(h, bucket, slots[:have])
    _fill(h, state, slots, have)
    h[GREEDY] += len(slots)


@kernel
def _random(h: Int64, state: UInt64, bucket: Num, slots: Int64) -> None:
    """Uniform without replacement from a bucket, or from all slots."""
    if bucket == MEMORY or h[FROM_MEMORY]:
        have = _choose(state, h[SIZE], slots)
    else:
        have = _choose(state, records(h)[bucket, COUNT], slots)
        ordered.by_rank(h, bucket, slots[:have])
    _fill(h, state, slots, have)


@kernel
def _from_bucket(
    h: Int64, state: UInt64, bucket: Num, draw: Num, greedy: Num, slots: Int64
) -> None:
    """Fill `slots` from one bucket: first the reward-driven items, then the random ones."""
    count = len(slots)
    wanted = count if draw < greedy else 0
    if h[PER_ITEM]:
        wanted = 0
        for _ in range(count):
            wanted += _unit(state) < greedy
    if wanted > 0:
        _greedy(h, state, bucket, slots[:wanted])
    if wanted < count:
        _random(h, state, bucket, slots[wanted:])


@kernel
def pick(h: Int64, code: Num, greedy: Num, slots: Int64) -> None:
    """Fill `slots` with what a query of this code replays."""
    state = h[RNG : RNG + 1].view(np.uint64)
    h[DRAWS] += 1
    h[ITEMS] += len(slots)
    if h[UNIFORM]:
        for k in range(len(slots)):
            slots[k] = below(state, h[SIZE])
        return
    draw = _unit(state)
    if code == ANY_CODE:
        bucket = np.int64(int32_at(h[LISTED_BUCKETS], h[ROOM])[below(state, h[OCCUPIED])])
    else:
        bucket = find(h, code)
    if bucket >= 0:
        _from_bucket(h, state, bucket, draw, greedy, slots)
    elif h[FROM_MEMORY] and not h[PER_ITEM] and draw >= greedy:
        _random(h, state, MEMORY, slots)
    else:
        h[FALLBACKS] += 1
        first, second = nearest_two(h, code)
        half = (len(slots) + 1) // 2 if second >= 0 else len(slots)
        _from_bucket(h, state, first, draw, greedy, slots[:half])
        if half < len(slots):
            _from_bucket(h, state, second, draw, greedy, slots[half:])

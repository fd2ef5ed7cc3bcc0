"""Random numbers inside compiled code: SplitMix64, whose whole state is one word.

Steele, Lea and Flood (2014), "Fast splittable pseudorandom number generators". In turn: `state` is
a uint64 array (1,) that every draw moves on. By counter (`..._at`): the numbers of a stream are
functions of its key and their index, so one that nobody looks at costs nothing, and whoever looks
first sees the same.
"""

import numpy as np

from lser.compiled import Num, UInt64, kernel
from lser.types import Int64

TO_UNIT = 2.0**-53  # from 53 random bits to [0, 1)
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_SALT = np.uint64(0xD1B54A32D192ED03)  # sets normal numbers apart from the others of a key


@kernel
def mix(word: Num) -> Num:
    """The output function of SplitMix64: 64 random bits from a counter or a seed."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@kernel
def next_bits(state: UInt64) -> Num:
    """The next 64 random bits."""
    state[0] += _GAMMA
    return mix(state[0])


@kernel
def below(state: UInt64, n: Num) -> Num:
    """A uniform integer in [0, n), n < 2**32 (Lemire 2019: exact, by rejection)."""
    bound, low = np.uint64(n), np.uint64(0xFFFFFFFF)
    product = (next_bits(state) >> np.uint64(32)) * bound
    if (product & low) < bound:
        threshold = (np.uint64(1) << np.uint64(32)) % bound
        while (product & low) < threshold:
            product = (next_bits(state) >> np.uint64(32)) * bound
    return np.int64(product >> np.uint64(32))


@kernel
def unit(state: UInt64) -> Num:
    """A uniform number in [0, 1)."""
    return np.float64(next_bits(state) >> np.uint64(11)) * TO_UNIT


@kernel
def distinct(state: UInt64, n: Num, picks: Int64) -> Num:
    """Draw distinct integers below n into `picks`; returns how many, all n where it holds more.

    Floyd's algorithm, or a shuffle where all are taken.
    """
    count = len(picks)
    if n <= count:
        for k in range(n):
            other = below(state, k + 1)
            picks[k] = picks[other]
            picks[other] = k
        return n
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
    return count


@kernel
def word_at(key: np.uint64, index: int) -> Num:
    """The 64 random bits at `index` of the stream `key`."""
    return mix(key + np.uint64(index + 1) * _GAMMA)


@kernel
def unit_at(key: np.uint64, index: int) -> Num:
    """The number at `index` of the stream `key`, uniform in [0, 1)."""
    return np.float64(word_at(key, index) >> np.uint64(11)) * TO_UNIT


@kernel
def normal_at(key: np.uint64, index: int) -> Num:
    """The N(0, 1) number at `index` of the stream `key` (Box and Muller)."""
    radius = np.sqrt(-2.0 * np.log(1.0 - unit_at(key ^ _SALT, 2 * index)))
    return radius * np.cos(2.0 * np.pi * unit_at(key ^ _SALT, 2 * index + 1))

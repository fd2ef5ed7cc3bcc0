"""Random numbers inside kernels: SplitMix64 (Steele, Lea and Flood, 2014).

By counter: the numbers of a stream are functions of its key and their index, so one that nobody
looks at costs nothing, and whoever looks first sees the same.
"""

import numpy as np

from lser.compiled import kernel

TO_UNIT = 2.0**-53  # from 53 random bits to [0, 1)
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_SALT = np.uint64(0xD1B54A32D192ED03)  # sets normal numbers apart from the others of a key


@kernel
def mix(state: np.uint64) -> np.uint64:
    """The output function of SplitMix64: 64 random bits from a counter or a seed."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@kernel
def word_at(key: np.uint64, index: int) -> np.uint64:
    """The 64 random bits at `index` of the stream `key`."""
    return mix(key + np.uint64(index + 1) * _GAMMA)


@kernel
def unit_at(key: np.uint64, index: int) -> float:
    """The number at `index` of the stream `key`, uniform in [0, 1)."""
    return np.float64(word_at(key, index) >> np.uint64(11)) * TO_UNIT


@kernel
def normal_at(key: np.uint64, index: int) -> float:
    """The N(0, 1) number at `index` of the stream `key` (Box and Muller)."""
    radius = np.sqrt(-2.0 * np.log(1.0 - unit_at(key ^ _SALT, 2 * index)))
    return float(radius * np.cos(2.0 * np.pi * unit_at(key ^ _SALT, 2 * index + 1)))

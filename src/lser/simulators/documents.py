"""Candidate documents from a key: counter-based draws (SplitMix64) and the top-k, in Numba.

A user's candidates at one step are a function of one 53-bit key, so a property nobody has looked at
costs nothing: the hidden quality of a document is computed when it is clicked (or when a
privileged policy asks), and it is the same number whoever asks first.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_SALT = np.uint64(0xD1B54A32D192ED03)  # sets the noise stream apart from the first one
_TO_UNIT = 2.0**-53


def jit(function: F) -> F:
    """Compile `function` with Numba and keep the result on disk; its type stays as written."""
    return cast(F, numba.njit(cache=True)(function))


@jit
def mix(state: np.uint64) -> np.uint64:
    """The output function of SplitMix64 (Steele, Lea and Flood, 2014)."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@jit
def unit(key: np.uint64, index: int) -> float:
    """The `index`-th number of the stream `key`, uniform in [0, 1)."""
    return np.float64(mix(key + np.uint64(index + 1) * _GAMMA) >> np.uint64(11)) * _TO_UNIT


@jit
def normal(key: np.uint64, index: int) -> float:
    """The `index`-th N(0, 1) number of the stream `key` (Box and Muller)."""
    radius = np.sqrt(-2.0 * np.log(1.0 - unit(key ^ _SALT, 2 * index)))
    return float(radius * np.cos(2.0 * np.pi * unit(key ^ _SALT, 2 * index + 1)))


@jit
def make_keys(uniform: NDArray[np.float64], keys: NDArray[np.uint64]) -> None:
    """Turn numbers in [0, 1) into keys, in place."""
    for i in range(len(keys)):
        keys[i] = mix(np.uint64(uniform[i] / _TO_UNIT))


@jit
def draw_integers(keys: NDArray[np.uint64], high: int, out: NDArray[np.int16]) -> None:
    """Fill `out` (n, m) with integers uniform in 0..high-1 (bias below high / 2**32)."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            bits = mix(keys[i] + np.uint64(j + 1) * _GAMMA) >> np.uint64(32)
            out[i, j] = np.int16((bits * np.uint64(high)) >> np.uint64(32))


@jit
def draw_units(uniform: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """Fill `out` (n, m) with numbers uniform in [0, 1), a row from each number of `uniform`."""
    for i in range(out.shape[0]):
        key = mix(np.uint64(uniform[i] / _TO_UNIT))
        for j in range(out.shape[1]):
            out[i, j] = unit(key, j)


@jit
def offer(
    best: NDArray[np.float64], slate: NDArray[np.int64], place: int, score: float, item: int
) -> None:
    """Insert `item` at `place` of a slate ordered by `best` scores, or before it if it is better.

    Items offered in index order stay before later ones of the same score; what stood at `place`
    is dropped.
    """
    while place > 0 and best[place - 1] < score:
        best[place] = best[place - 1]
        slate[place] = slate[place - 1]
        place -= 1
    best[place] = score
    slate[place] = item

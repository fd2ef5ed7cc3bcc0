"""RecSim's candidate documents from a key.

A user's candidates at one step are a function of one 53-bit key: the hidden quality of a document
is computed when it is clicked, or when a privileged policy asks.
"""

import numpy as np
from numpy.typing import NDArray

from lser.compiled import kernel
from lser.random import TO_UNIT, mix, unit_at, word_at
from lser.types import Float64


@kernel
def make_keys(uniform: Float64, keys: NDArray[np.uint64]) -> None:
    """Turn numbers in [0, 1) into keys, in place."""
    for i in range(len(keys)):
        keys[i] = mix(np.uint64(uniform[i] / TO_UNIT))


@kernel
def draw_integers(keys: NDArray[np.uint64], high: int, out: NDArray[np.int16]) -> None:
    """Fill `out` (n, m) with integers uniform in 0..high-1 (bias below high / 2**32)."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            bits = word_at(keys[i], j) >> np.uint64(32)
            out[i, j] = np.int16((bits * np.uint64(high)) >> np.uint64(32))


@kernel
def draw_units(uniform: Float64, out: Float64) -> None:
    """Fill `out` (n, m) with numbers uniform in [0, 1), a row from each number of `uniform`."""
    for i in range(out.shape[0]):
        key = mix(np.uint64(uniform[i] / TO_UNIT))
        for j in range(out.shape[1]):
            out[i, j] = unit_at(key, j)

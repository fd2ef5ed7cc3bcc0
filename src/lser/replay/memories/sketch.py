"""Observations once more in half the bits: which candidates may be the most similar ones (AER).

Waiting for memory is what a draw costs. A sketch is the upper 16 bits of each float32 of an
observation, in cache lines of its own: half of the memory to wait for. It says where a cosine lies
to within a hundredth or so, and that rules most candidates out; the others' are worked out from
the rows. So sketches decide how long a draw takes, never what is drawn.
"""

import numpy as np
from numpy.typing import NDArray

from lser.compiled import Num, inlined, inner, kernel, prefetch, unordered_kernel
from lser.moments import add_rows
from lser.replay.rows import append_rows
from lser.types import Float32, Float64, Int64

UInt16 = NDArray[np.uint16]
LINE = 32  # numbers of a sketch in a cache line
_UNKNOWN = 0x7FC0  # not a number
_TINY = 0x04000000  # the bits of 2**-119: numbers below may lose more than their last bits
_ROUNDING = np.float32(2.0**-8)  # of a number to its upper 16 bits, relative
_ARITHMETIC = np.float32(2.0**-19)  # of a feature in float32, relative, with room to spare
_WIDEST = np.float32(0.25)  # of a relative error r: asin(r) < 1.02 r up to here
_ASIN = np.float32(1.03)
_SMALLEST, _LARGEST = np.float32(1e-25), np.float32(1e30)  # squares that float32 is good for
_ONE, _INFINITE = np.float32(1.0), np.float32(np.inf)


def new_sketches(capacity: int, dim: int) -> UInt16:
    """Room for `capacity` sketches, (capacity, dim and padding), aligned to cache lines."""
    width = -(-dim // LINE) * LINE
    room = np.empty(capacity * width + LINE, np.uint16)
    start = -room.ctypes.data % (2 * LINE) // 2
    return room[start : start + capacity * width].reshape(capacity, width)


@kernel
def sketch_rows(sketches: UInt16, first: Num, rows: Float32, dim: Num) -> None:
    """Keep `dim` columns of rows (N, columns) as the sketches from `first` on, in a ring."""
    bits = rows.view(np.int32)
    for i in range(len(rows)):
        slot = (first + i) % len(sketches)
        for j in range(dim):
            number = bits[i, j]
            size = number & 0x7FFFFFFF
            tiny = (size != 0) & (size < _TINY)
            sketches[slot, j] = _UNKNOWN if tiny else ((number + 0x8000) >> 16) & 0xFFFF
        for j in range(dim, sketches.shape[1]):
            sketches[slot, j] = 0


@kernel
def take_in(
    kept: Float32,
    held: Int64,
    counts: Int64,
    sketches: UInt16,
    count: Int64,
    mean: Float64,
    squares: Float64,
    standardised: bool,
    rows: Float32,
    ids: Int64,
) -> None:
    """Write rows over the oldest with their sketches and moments: nothing comes between."""
    sketch_rows(sketches, counts[1], rows, len(mean))
    if standardised:
        add_rows(count, mean, squares, rows)
    append_rows(kept, held, counts, rows, ids)


@inner
def prefetch_sketch(sketches: UInt16, slot: Num) -> None:
    """Bring a sketch near ahead of its use."""
    for j in range(0, sketches.shape[1], LINE):
        prefetch(sketches, slot * sketches.shape[1] + j)


@inlined
def number(upper: Num) -> Num:
    """The float32 that has these upper 16 bits."""
    return np.uint32(np.uint32(upper) << np.uint32(16)).view(np.float32)


@unordered_kernel
def sum_up(
    sketches: UInt16,
    slots: Int64,
    shift: Float64,
    scale: Float64,
    direction: Float64,
    products: Float32,
    squares: Float32,
) -> Num:
    """Sums of sketched features times `direction`, and of their squares; returns |scale shift|.

    Four at once, which share what is loaded: half of the time of one by one.
    """
    by, minus, along = np.zeros((3, sketches.shape[1]), np.float32)  # zeros in the padding
    away, last = np.float32(0.0), len(slots) - 1
    for j in range(len(shift)):
        by[j], minus[j], along[j] = scale[j], shift[j] * scale[j], direction[j]
        away += minus[j] * minus[j]
    for a in range(0, len(slots), 4):
        b, c, d = min(a + 1, last), min(a + 2, last), min(a + 3, last)  # the last again, if fewer
        at_a, at_b, at_c, at_d = slots[a], slots[b], slots[c], slots[d]
        along_a = along_b = along_c = along_d = np.float32(0.0)
        square_a = square_b = square_c = square_d = np.float32(0.0)
        for j in range(sketches.shape[1]):
            feature_a = number(sketches[at_a, j]) * by[j] - minus[j]
            feature_b = number(sketches[at_b, j]) * by[j] - minus[j]
            feature_c = number(sketches[at_c, j]) * by[j] - minus[j]
            feature_d = number(sketches[at_d, j]) * by[j] - minus[j]
            along_a += feature_a * along[j]
            along_b += feature_b * along[j]
            along_c += feature_c * along[j]
            along_d += feature_d * along[j]
            square_a += feature_a * feature_a
            square_b += feature_b * feature_b
            square_c += feature_c * feature_c
            square_d += feature_d * feature_d
        products[a], products[b], products[c], products[d] = along_a, along_b, along_c, along_d
        squares[a], squares[b], squares[c], squares[d] = square_a, square_b, square_c, square_d
    return np.sqrt(away)


@unordered_kernel
def bound(
    sketches: UInt16,
    slots: Int64,
    shift: Float64,
    scale: Float64,
    direction: Float64,
    low: Float32,
    high: Float32,
) -> None:
    """Bounds low and high (n,) on the cosines of features (x - shift) * scale to a unit direction.

    With e what 16 bits leave out of a feature vector z, the angle between z and its sketch is at
    most asin(|e| / |z|), and the cosine differs by no more than the angle; |e| <= 2**-8 |scale x|
    <= 2**-8 (|z| + |scale shift|). Where that says nothing, bounds are infinite.
    """
    away = sum_up(sketches, slots, shift, scale, direction, low, high)
    summing = np.float32((len(shift) + 8) * 2.0**-23)
    for i in range(len(slots)):
        squares = high[i]
        length = np.sqrt(squares)
        error = _ROUNDING * (_ONE + away / length) + _ARITHMETIC
        known = (error < _WIDEST) & (squares > _SMALLEST) & (squares < _LARGEST)  # not for NaN
        cosine, error = low[i] / length, _ASIN * error + summing
        low[i] = cosine - error if known else -_INFINITE
        high[i] = cosine + error if known else _INFINITE

"""Observations beside the rows in half the bits: where a cosine lies, for half the memory traffic.

A sketch holds the upper 16 bits of every float32 ("bfloat16"), each row in cache lines of its own.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from lser.replay.compiled import Num, cgutils, kernel, prefetch, unordered_kernel
from lser.types import Float32, Int64

UInt16 = NDArray[np.uint16]
LINE = 32  # numbers of a sketch in a cache line
_BYTES = 64  # in a cache line
_UNKNOWN = 0x7FC0  # not a number
_TINY = 0x04000000  # the bits of 2**-119; numbers below lose more than their last bits
_ROUNDING = np.float32(2.0**-8)  # of a number to its upper 16 bits, relative
_ARITHMETIC = np.float32(2.0**-19)  # of a feature in float32, relative, with room to spare
_WIDEST = np.float32(0.25)  # of an error relative to its vector: asin(r) < 1.02 r up to here
_SMALLEST, _LARGEST = (
    np.float32(1e-25),
    np.float32(1e30),
)  # squares that float32 can be trusted with
_LANES = 16
_FUSED = ("contract",)
_PAIR: Any = types.UniTuple


def blank(capacity: int, dim: int) -> UInt16:
    """Room for `capacity` sketches, (capacity, dim and padding), aligned to cache lines."""
    width = -(-dim // LINE) * LINE
    room = np.empty(capacity * width + LINE, np.uint16)
    start = -room.ctypes.data % _BYTES // room.itemsize
    return room[start : start + capacity * width].reshape(capacity, width)


@kernel
def write(sketch: UInt16, start: Num, rows: Float32, dim: Num) -> None:
    """Keep the first `dim` columns of rows in slots `start`, `start` + 1, ... of the ring."""
    bits = rows.view(np.int32)
    for i in range(len(rows)):
        slot = (start + i) % len(sketch)
        for j in range(dim):
            number = bits[i, j]
            size = number & 0x7FFFFFFF
            tiny = (size != 0) & (size < _TINY)
            sketch[slot, j] = _UNKNOWN if tiny else ((number + 0x8000) >> 16) & 0xFFFF
        for j in range(dim, sketch.shape[1]):
            sketch[slot, j] = 0


def _sums(_typing: Any, sketch: Any, slot: Any, scale: Any, shift: Any, direction: Any) -> Any:
    """Spelled out in vectors, for the compiler's own loop is twice as slow on rows this short."""

    def codegen(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, real = ir.IntType(32), ir.FloatType()
        words, reals = ir.VectorType(word, _LANES), ir.VectorType(real, _LANES)

        def array(k: int) -> Any:
            return target.make_array(signature.args[k])(target, builder, arguments[k])

        def load(data: Any, kind: Any, at: Any, size: int) -> Any:
            where = builder.bitcast(builder.gep(data, [at]), kind.as_pointer())
            return builder.load(where, align=size)

        width = cgutils.unpack_tuple(builder, array(0).shape)[1]
        first = builder.mul(arguments[1], width)
        sums = [cgutils.alloca_once_value(builder, reals(None)) for _ in range(2)]
        with cgutils.for_range_slice(builder, width.type(0), width, width.type(_LANES)) as (j, _):
            bits = load(
                array(0).data, ir.VectorType(ir.IntType(16), _LANES), builder.add(first, j), 2
            )
            upper = builder.shl(builder.zext(bits, words), words([16] * _LANES))
            number = builder.bitcast(upper, reals)
            by, minus, along = (load(array(k).data, reals, j, 4) for k in (2, 3, 4))
            scaled = builder.fmul(number, by, flags=_FUSED)
            feature = builder.fsub(scaled, minus, flags=_FUSED)
            for total, factor in zip(sums, (along, feature), strict=True):
                term = builder.fmul(feature, factor, flags=_FUSED)
                builder.store(builder.fadd(builder.load(total), term, flags=_FUSED), total)
        kind = ir.FunctionType(real, [real, reals])
        name = f"llvm.vector.reduce.fadd.v{_LANES}f32"
        add = cgutils.get_or_insert_function(builder.module, kind, name)
        parts = [
            builder.call(add, [real(0.0), builder.load(total)], fastmath=("reassoc",))
            for total in sums
        ]
        return target.make_tuple(builder, signature.return_type, parts)

    return _PAIR(types.float32, 2)(sketch, slot, scale, shift, direction), codegen


# (sum of feature * direction, sum of feature**2) of one sketch, features scale x - shift
_product_and_squares: Any = intrinsic(_sums)


@kernel
def near(sketch: UInt16, slot: Num) -> None:
    """Bring a sketch into the cache ahead of its use."""
    for j in range(0, sketch.shape[1], LINE):
        prefetch(sketch, slot * sketch.shape[1] + j)


@unordered_kernel
def bounds(
    sketch: UInt16,
    slots: Int64,
    scale: Float32,
    shift: Float32,
    direction: Float32,
    low: Float32,
    high: Float32,
) -> None:
    """Fill low and high (n,) with bounds on the cosine of scale x - shift to a unit `direction`.

    The three vectors are as wide as a sketch, 0 in its padding. With e what 16 bits leave out of a
    feature vector z, the angle between z and its sketch is at most asin(|e| / |z|), and the cosine
    differs by no more than the angle; |e| <= 2**-8 |scale x| <= 2**-8 (|z| + |shift|). Where that
    says nothing, bounds are infinite.
    """
    summing = np.float32((len(scale) + 8) * 2.0**-23)
    away = np.sqrt(np.sum(shift * shift))
    for i in range(len(slots)):
        low[i], high[i] = _product_and_squares(sketch, slots[i], scale, shift, direction)
    for i in range(len(slots)):
        squares = high[i]
        length = np.sqrt(squares)
        cosine = low[i] / length
        error = _ROUNDING * (np.float32(1.0) + away / length) + _ARITHMETIC
        # Not a number fails every comparison.
        known = (error < _WIDEST) & (squares > _SMALLEST) & (squares < _LARGEST)
        error = np.float32(1.03) * error + summing
        low[i] = cosine - error if known else np.float32(-np.inf)
        high[i] = cosine + error if known else np.float32(np.inf)

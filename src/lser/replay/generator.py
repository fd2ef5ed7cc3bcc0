"""NumPy's generators inside kernels, which draw what `Generator.integers` and `.random` would.

One call of a kernel draws all that belongs together, and counts: an exception of a signal handler
comes before it or after it. It is faster too: `Generator.integers` takes 4 microseconds for 32.

A kernel takes the address of a bit generator, which is a record of C (NumPy's `bitgen.h`): the
address of its state and those of the functions that draw from it. NumPy's documentation has these
functions as globals of a kernel, which cannot be cached then: in every process they lie elsewhere.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from lser.compiled import Num, inner, kernel
from lser.types import Float64, Int64

NO_INTEGERS: Int64 = np.empty(0, np.int64)
NO_POINTS: Float64 = np.empty(0)
_STATE, _WORD, _HALF, _UNIT = range(4)  # the fields of a bit generator, 8 bytes each
_LOW = np.uint64(2**32 - 1)
_32 = np.uint64(32)


def address_of(rng: np.random.Generator) -> int:
    """What kernels take to draw from `rng`; it must not be drawn from elsewhere meanwhile."""
    address: int = rng.bit_generator.ctypes.bit_generator.value
    return address


def _drawing(field: int, kind: Any) -> Any:
    """A function for kernels: the next number, of a Numba type, by a field of a bit generator."""

    def typed(_typing: Any, _address: Any) -> Any:
        def codegen(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            word, byte = ir.IntType(64), ir.IntType(8).as_pointer()
            fields = builder.inttoptr(arguments[0], word.as_pointer())
            state, code = (builder.load(builder.gep(fields, [word(at)])) for at in (_STATE, field))
            function = ir.FunctionType(context.get_value_type(kind), [byte]).as_pointer()
            return builder.call(builder.inttoptr(code, function), [builder.inttoptr(state, byte)])

        return kind(types.int64), codegen

    return intrinsic(typed)


next_word: Any = _drawing(_WORD, types.uint64)
_next_half: Any = _drawing(_HALF, types.uint32)
_next_unit: Any = _drawing(_UNIT, types.float64)


@kernel
def draw_numbers(generator: Num, n: Num, slots: Int64, points: Float64, draws: Int64) -> None:
    """Draw integers below n into `slots`, then numbers of [0, 1) into `points`.

    The draw is counted in `draws`, (1,) or, where nobody counts, (0,).
    """
    for i in range(len(slots)):
        slots[i] = _below(generator, np.uint64(n))
    for i in range(len(points)):
        points[i] = _next_unit(generator)
    draws += 1


@inner
def _below(generator: Num, n: Num) -> Num:
    """A uniform integer in [0, n), as NumPy draws it (Lemire 2019), from 32 bits if these do."""
    if n == 1:
        return np.int64(0)
    if n <= _LOW + np.uint64(1):
        product = np.uint64(_next_half(generator)) * n
        if (product & _LOW) < n:
            least = (_LOW + np.uint64(1) - n) % n
            while (product & _LOW) < least:
                product = np.uint64(_next_half(generator)) * n
        return np.int64(product >> _32)
    word = next_word(generator)
    if word * n < n:
        least = (np.uint64(0) - n) % n
        while word * n < least:
            word = next_word(generator)
    return np.int64(_upper(word, n))


@inner
def _upper(a: Num, b: Num) -> Num:
    """The upper 64 of the 128 bits of a product."""
    low = (a >> _32) * (b & _LOW) + ((a & _LOW) * (b & _LOW) >> _32)
    middle = (a & _LOW) * (b >> _32) + (low & _LOW)
    return (a >> _32) * (b >> _32) + (low >> _32) + (middle >> _32)

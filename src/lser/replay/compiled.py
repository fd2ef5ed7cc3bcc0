"""How this package uses Numba: cached kernels that reach arrays through one block of addresses.

A kernel takes a header (an int64 array of counters and addresses) instead of many arrays, because
unboxing an array costs more than inserting a transition. Kernels are compiled at their first call
and cached beside the sources, or in the user's cache directory where that is read-only.
"""

import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba import carray  # type: ignore[attr-defined]  # missing in its stubs
from numba.core import cgutils as untyped
from numba.core import event, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Int32 = NDArray[np.int32]
UInt32 = NDArray[np.uint32]
UInt64 = NDArray[np.uint64]
Num = Any  # a scalar inside a kernel, whose exact type Numba infers
Function = TypeVar("Function", bound=Callable[..., Any])
cgutils: Any = untyped
_log = logging.getLogger("lser")
_SECOND_LEVEL = 2  # of cache: it waits for more lines at once than the first, 1.5x measured


def _stamp() -> str:
    """Names the state of all sources here: kernels are compiled with what they call inside.

    Numba looks at a kernel's own file alone, and would go on using code compiled with an older
    version of a kernel in another.
    """
    folder = Path(__file__).parent
    files = sorted((f.name, f.stat().st_mtime_ns, f.stat().st_size) for f in folder.glob("*.py"))
    return hashlib.sha256(repr(files).encode()).hexdigest()


_STAMP = _stamp()


def kernel(function: Function) -> Function:
    """Compile `function` with Numba, cached where a cache can be written."""
    return _compile(function, fastmath=False)


def unordered_kernel(function: Function) -> Function:
    """A kernel whose sums may be reordered, to run in vector registers: rounding may differ."""
    return _compile(function, fastmath={"reassoc", "contract"})


def _compile(function: Function, fastmath: bool | set[str]) -> Function:
    options: Any = {"error_model": "numpy", "fastmath": fastmath}
    try:
        compiled: Any = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # "no locator available": nowhere to write
        return cast(Function, numba.njit(**options)(function))
    file = compiled._cache._cache_file  # Numba has no public way to say what a cache depends on
    file._source_stamp = (file._source_stamp, _STAMP)
    return cast(Function, compiled)


def refuse_others(compiled: Any) -> None:
    """Make a kernel raise TypeError for arguments of types that it has not been called with yet."""
    compiled.disable_compile()


class _Announcer(event.Listener):
    """Says once per process that Numba compiles, so that a long first call explains itself."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: Any) -> None:
        name = getattr(event.data.get("dispatcher"), "py_func", None)
        if not self.said and getattr(name, "__module__", "").startswith("lser."):
            self.said = True
            _log.warning("compiling the replay kernels with Numba: once, then cached on disk")

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


event.register("numba:compile", _Announcer())


def _cast(_typing: Any, address: Any) -> Any:
    def codegen(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), codegen


def _hint(_typing: Any, array: Any, index: Any) -> Any:
    def codegen(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values = target.make_array(signature.args[0])(target, builder, arguments[0])
        at = builder.gep(values.data, [arguments[1]])
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [builder.bitcast(at, byte), word(0), word(_SECOND_LEVEL), word(1)])
        return target.get_dummy_value()

    return types.void(array, index), codegen


def _slide(_typing: Any, array: Any, _start: Any, _stop: Any, _to: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values = context.make_array(signature.args[0])(context, builder, arguments[0])
        _, start, stop, to = arguments
        source, target = (builder.gep(values.data, [at]) for at in (start, to))
        cgutils.raw_memmove(builder, target, source, builder.sub(stop, start), values.itemsize)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, types.intp), codegen


def _popcount(_typing: Any, word: Any) -> Any:
    def codegen(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return word(word), codegen


_pointer: Any = intrinsic(_cast)
popcount: Any = intrinsic(_popcount)
# slide(array, start, stop, to): copy a part of an array (n,) to where the two may overlap
slide: Any = intrinsic(_slide)
# prefetch(array, flat index): bring the cache line of an element near
prefetch: Any = intrinsic(_hint)


@kernel
def int64_at(address: Num, length: Num, width: Num) -> Any:
    """The (length, width) int64 array at `address`."""
    return carray(_pointer(address), (length, width), np.int64)


@kernel
def int32_at(address: Num, length: Num) -> Any:
    """The int32 array at `address`."""
    return carray(_pointer(address), length, np.int32)


@kernel
def uint32_at(address: Num, length: Num) -> Any:
    """The uint32 array at `address`."""
    return carray(_pointer(address), length, np.uint32)


@kernel
def float64_at(address: Num, length: Num, width: Num) -> Any:
    """The (length, width) float64 array at `address`."""
    return carray(_pointer(address), (length, width), np.float64)


@kernel
def float32_at(address: Num, length: Num, width: Num) -> Any:
    """The (length, width) float32 array at `address`."""
    return carray(_pointer(address), (length, width), np.float32)

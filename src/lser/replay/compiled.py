"""How this package uses Numba: cached kernels that reach arrays through one block of addresses.

A kernel takes a header (an int64 array of counters and addresses) instead of many arrays, because
unboxing an array costs more than inserting a transition. Kernels are compiled at their first call
and cached beside the sources, or in the user's cache directory where that is read-only.
"""

import logging
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import carray  # type: ignore[attr-defined]
from numba.core import cgutils, event, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Int32 = NDArray[np.int32]
UInt32 = NDArray[np.uint32]
UInt64 = NDArray[np.uint64]
Num = Any  # a scalar inside a kernel, whose exact type Numba infers
Function = TypeVar("Function", bound=Callable[..., Any])
_log = logging.getLogger("lser")


def kernel(function: Function) -> Function:
    """Compile `function` with Numba, cached where a cache can be written."""
    try:
        return cast(Function, numba.njit(cache=True, error_model="numpy")(function))
    except RuntimeError:  # "no locator available": nowhere to write
        return cast(Function, numba.njit(error_model="numpy")(function))


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


event.register("numba:compile", _Announcer())  # type: ignore[no-untyped-call]


def _cast(_typing: Any, address: Any) -> Any:
    def codegen(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), codegen


_pointer: Any = intrinsic(_cast)


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
def float32_at(address: Num, length: Num, width: Num) -> Any:
    """The (length, width) float32 array at `address`."""
    return carray(_pointer(address), (length, width), np.float32)

"""How this project uses Numba: one way to compile, for memories, agents and simulators.

Kernels are compiled at their first call and cached beside the sources, or in the user's cache
directory where that is read-only; where neither can be written they are compiled in every process.
The cached code of a kernel belongs to one state of its module and of all `lser` modules that this
one imports, however indirectly.

Kernels of the memories take one address in place of many arrays, because unboxing an array costs
more than inserting a transition: `record_at` and `view_of` make a record and arrays of it.
"""

import hashlib
import logging
import multiprocessing
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from pickle import UnpicklingError
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils as untyped
from numba.core import codegen as untyped_codegen
from numba.core import compiler as untyped_compiler
from numba.core import event, types
from numba.extending import intrinsic
from numba.np import arrayobj as untyped_arrays
from numba.np.numpy_support import from_dtype
from numpy.typing import NDArray

UInt32 = NDArray[np.uint32]
UInt64 = NDArray[np.uint64]
Num = Any  # a scalar inside a kernel, whose exact type Numba infers
Function = TypeVar("Function", bound=Callable[..., Any])
cgutils: Any = untyped
arrayobj: Any = untyped_arrays
_JITCodeLibrary: Any = untyped_codegen.JITCodeLibrary
_Compiler: Any = untyped_compiler.Compiler
_log = logging.getLogger("lser")
_SECOND_LEVEL = 2  # of cache: it waits for more lines at once than the first, 1.5x measured

# What LLVM may do to floating point numbers; NaN and infinity are respected by all of them.
_REORDERED = {"reassoc", "contract"}
_RELAXED = _REORDERED | {"arcp", "nsz"}


def kernel(function: Function) -> Function:
    """Compile `function`; it computes exactly what is written."""
    return _compile(function)


def unordered_kernel(function: Function) -> Function:
    """A kernel whose sums may be reordered, to run in vector registers: rounding may differ."""
    return _compile(function, fastmath=_REORDERED)


def relaxed_kernel(function: Function) -> Function:
    """An unordered kernel that may also multiply by reciprocals and ignore the sign of zero."""
    return _compile(function, fastmath=_RELAXED)


def inner(function: Function) -> Function:
    """A kernel that only kernels call: it is compiled without what a call from Python takes."""
    return _compile(
        function, no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_InnerCompiler
    )


def inlined(function: Function) -> Function:
    """A kernel that is copied into its callers before they are compiled, for one-liners.

    Each separate kernel costs a tenth of a second at first use; a copied one costs nothing.
    """
    return _compile(function, inline="always")


def refuse_others(compiled: Any) -> None:
    """Make a kernel raise TypeError for arguments of types that it has not been called with yet."""
    compiled.disable_compile()


@cache
def stamp(module: str) -> str:
    """Names the state of the sources that the kernels of `module` may be compiled from.

    A kernel holds the machine code of the kernels that it calls, but Numba looks at the kernel's
    own file alone and would go on using code compiled with an older version of another file.
    """
    state = hashlib.sha256()
    for name in sorted(sources_of(module)):
        state.update(name.encode() + _digest(name))
    return state.hexdigest()


def sources_of(module: str) -> set[str]:
    """`module` and all `lser` modules that it imports, directly or through others."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _imported(name)
    return found


# Reading import statements this way is 30 times faster than parsing the modules. It may take words
# of a comment for imports, which is harmless; a test compares it with the parser.
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(lser[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)"
    r"|import[ \t]+(lser[^\n]*))",
    re.MULTILINE,
)
_NO_NAME = re.compile(r"#[^\n]*|\bas\s+\w+")


@cache
def _imported(module: str) -> frozenset[str]:
    """The `lser` modules that `module`, which may lie outside of `lser`, imports itself."""
    found: set[str] = set()
    for package, names, direct in _IMPORT.findall((_source(module) or b"").decode()):
        found |= set(re.findall(r"lser[\w.]*", direct))
        for name in re.findall(r"\w+", _NO_NAME.sub("", names)):
            part = f"{package}.{name}"
            found.add(package if _source(part) is None else part)
    return frozenset(found)


@cache
def _digest(module: str) -> bytes:
    return hashlib.sha256(_source(module) or b"").digest()


@cache
def _source(module: str) -> bytes | None:
    """The source of a module, if there is one."""
    top, *parts = module.split(".")
    if top != "lser":  # somebody else's kernels
        file = Path(getattr(sys.modules.get(module), "__file__", None) or "")
        return file.read_bytes() if file.is_file() else None
    for path in ("/".join(parts) + ".py", "/".join([*parts, "__init__.py"])):
        found = files("lser").joinpath(path)
        if found.is_file():
            return found.read_bytes()
    return None


def _compile(function: Function, **options: Any) -> Function:
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # set at run time
        return function
    options["error_model"] = "numpy"  # a division by zero gives infinity, as in NumPy
    try:
        compiled: Any = numba.njit(cache=True, **options)(function)
        _stamp_cache(compiled, function.__module__)
        _forgive(compiled._cache)
    except (RuntimeError, AttributeError):  # no place for a cache, or another Numba's cache
        _announcer.cached = False
        return cast(Function, numba.njit(**options)(function))
    return cast(Function, compiled)


def _stamp_cache(compiled: Any, module: str) -> None:
    """Let the cached code of a kernel depend on `stamp`; Numba has no public way to say so."""
    file = compiled._cache._cache_file
    if _source(module) is not None:  # in a notebook Numba's own stamp says what was typed
        file._source_stamp = stamp(module)


def _forgive(kept: Any) -> None:
    """Let a cache that is damaged be one that is empty, and a full disk one that is not written."""
    load, save = kept.load_overload, kept.save_overload

    def load_overload(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except Exception:  # whatever damaged bytes make of a pickle
            with suppress(OSError):
                kept.flush()
            return None

    def save_overload(*arguments: Any) -> None:
        try:
            save(*arguments)
        except (OSError, EOFError, UnpicklingError):
            _announcer.cached = False

    kept.load_overload, kept.save_overload = load_overload, save_overload


class _Part(_JITCodeLibrary):  # type: ignore[misc]  # Numba has no types
    """The code of an inner kernel, to be linked into kernels and optimised there.

    Numba would optimise it by itself too, with all that it calls, and make machine code of it that
    nobody runs: a third of the time of a first use. There is no environment for it to find Python
    objects in, which inner kernels do not handle.
    """

    codegen = SimpleNamespace(set_env=lambda _name, _environment: None)

    def _optimize_final_module(self) -> None:
        """Whoever links it does."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def serialize_using_object_code(self) -> Any:
        """What the cache keeps: there is no machine code."""
        return self.serialize_using_bitcode()


class _InnerCompiler(_Compiler):  # type: ignore[misc]  # as above
    """Numba's compiler with a `_Part` to put the code in."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing, target, library or _Part(target.codegen(), "part"), *rest)


class _Announcer(event.Listener):
    """Says once per process that Numba compiles, so that a long first call explains itself."""

    def __init__(self) -> None:
        self.said = False
        self.cached = True

    def on_start(self, event: Any) -> None:
        function = getattr(event.data.get("dispatcher"), "py_func", None)
        if self.said or not (getattr(function, "__module__", "") or "").startswith("lser."):
            return
        if self.cached and multiprocessing.parent_process() is not None:
            return  # one of many: each would say it
        self.said = True
        if self.cached:
            _log.warning("compiling a part with Numba: once for each part, then cached on disk")
        else:
            _log.warning(
                "compiling with Numba at every start, as its cache cannot be written: "
                "set NUMBA_CACHE_DIR to a folder that can"
            )

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


_announcer = _Announcer()
event.register("numba:compile", _announcer)


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


def _copy(_typing: Any, source: Any, _start: Any, _count: Any, target: Any, _to: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, start, count, _, to = arguments
        first, second = (
            context.make_array(signature.args[k])(context, builder, arguments[k]) for k in (0, 3)
        )
        begin, end = builder.gep(first.data, [start]), builder.gep(second.data, [to])
        cgutils.raw_memmove(builder, end, begin, count, first.itemsize)
        return context.get_dummy_value()

    return types.void(source, types.intp, types.intp, target, types.intp), codegen


def _popcount(_typing: Any, word: Any) -> Any:
    def codegen(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return word(word), codegen


def record_at(dtype: Any) -> Any:
    """A function for kernels: the record of a NumPy dtype at an address."""
    kind = from_dtype(dtype)

    def typed(_typing: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(kind))

        return kind(address), codegen

    return intrinsic(typed)


def view_of(record: Any, address: str, length: str, dtype: Any) -> Any:
    """A function for kernels: the vector that two fields of a record, int64 each, describe.

    One of these costs nothing to compile, while `carray` in a function of its own does.
    """
    element = from_dtype(np.dtype(dtype))
    kind = types.Array(element, 1, "C")
    offsets = [record.fields[name][1] for name in (address, length)]

    def typed(_typing: Any, header: Any) -> Any:
        def codegen(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            word = ir.IntType(64)
            first = builder.bitcast(arguments[0], ir.IntType(8).as_pointer())
            at, count = (
                builder.load(builder.bitcast(builder.gep(first, [word(o)]), word.as_pointer()))
                for o in offsets
            )
            array = context.make_array(kind)(context, builder)
            size = context.get_constant(types.intp, np.dtype(dtype).itemsize)
            data = builder.inttoptr(at, context.get_data_type(element).as_pointer())
            layout = {"data": data, "shape": [count], "strides": [size], "itemsize": size}
            arrayobj.populate_array(array, meminfo=None, **layout)
            return array._getvalue()

        return kind(header), codegen

    return intrinsic(typed)


pointer: Any = intrinsic(_cast)
popcount: Any = intrinsic(_popcount)
# copy(source, start, count, target, to): copy so many elements between arrays of one type, which
# may be the same array and overlap; `start` and `to` are flat indices
copy: Any = intrinsic(_copy)
# prefetch(array, flat index): bring the cache line of an element near
prefetch: Any = intrinsic(_hint)

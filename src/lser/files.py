"""One file per memory or agent: versioned, checksummed, written atomically, and never pickle.

Layout, little-endian: magic (8 bytes), version (u32), length of the header (u32), CRC-32 of the
header (u32), the header (JSON: kind, config, and name, dtype, shape of every array), then the
arrays, each starting at a multiple of 64 and followed by its checksum (XXH3, u64).
"""

import json
import math
import os
import re
import secrets
import stat
import struct
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard
from zipfile import BadZipFile

import numpy as np
import xxhash
from numpy.typing import NDArray

from lser import locks
from lser.opening import open_plain

MAGIC = b"\x89LSER\r\n\x1a"  # like PNG's: text-mode transfers and 7-bit channels break it
VERSION = 4
READABLE = (4,)  # from 4 on every version stays; tests/golden/files has one of each
_PREFIX = struct.Struct("<8sIII")
_ALIGN = 64
_PART = 2**22
_LENGTH = 8  # of a checksum
_SCRATCH = re.compile(r"\..+\.[0-9a-f]{16}")
_DTYPES = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")


class UnknownVersion(ValueError):
    """A file of a format that this release does not read: there is nothing wrong with the file."""


# What code meets in contents that are not what it expects; MemoryError and OSError stay themselves
_UNLIKE = (KeyError, TypeError, IndexError, AttributeError, RuntimeError, ArithmeticError, EOFError)


@contextmanager
def taken_from(path: object) -> Iterator[None]:
    """Let what goes wrong inside, for contents that are of another kind, name their file."""
    try:
        yield
    except (*_UNLIKE, BadZipFile, UnicodeDecodeError) as error:
        raise ValueError(f"{path} does not hold what is expected there: {error!r}") from error


class State(NamedTuple):
    """A memory or an agent as plain data, as a file holds it: settings and named arrays.

    The arrays may be views of the object itself: file or copy them before its next change.
    """

    config: dict[str, object]
    arrays: dict[str, NDArray[np.generic]]

    def part(self, name: str) -> "State":
        """The settings filed under `name`, with all arrays."""
        config = self.config.get(name)
        if not isinstance(config, dict):
            raise ValueError(f"the state has no settings {name!r}")
        return State(config, self.arrays)


def save(path: str | Path, kind: str, state: State, *, sync: bool = False) -> None:
    """Write `state` under the name `kind`; the file at `path` is replaced at the very end.

    A process that dies leaves the earlier file. What a machine that loses power leaves is up to
    its file system, and the checksums tell a torn file; with `sync` it is the earlier or the new
    file, whole. Waiting for the disk costs more than all the rest.
    """
    asked, path = Path(path), Path(os.path.realpath(path))  # a link stays, its target is replaced
    arrays = {name: _plain(name, array) for name, array in state.arrays.items()}
    listing = [{"name": n, "dtype": a.dtype.str, "shape": a.shape} for n, a in arrays.items()]
    header = json.dumps({"kind": kind, "config": state.config, "arrays": listing}).encode()
    prefix = _PREFIX.pack(MAGIC, VERSION, len(header), zlib.crc32(header))
    sweep(path.parent, path.name)
    scratch = path
    try:
        scratch, file = _own_scratch(path)
        with file:
            _write(file, prefix + header, arrays)
            with suppress(OSError, AttributeError):  # not on Windows
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))  # as the earlier file
            file.flush()
            if sync:
                os.fsync(file.fileno())
            if locks.AVAILABLE:  # while it is locked: a sweep would take it for litter
                os.replace(scratch, path)
        if not locks.AVAILABLE:
            os.replace(scratch, path)
        if sync:
            sync_folder(path.parent)
    except BaseException as error:
        if scratch != path:
            scratch.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise type(error)(error.errno, error.strerror, str(asked)) from None
        raise


def _own_scratch(path: Path) -> tuple[Path, BufferedWriter]:
    """A new hidden file beside `path`, locked before anybody could sweep it away."""
    while True:
        scratch = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        file = scratch.open("xb")
        try:
            if locks.try_lock(file) and scratch.exists():
                return scratch, file
        except OSError:  # a file system without locks
            return scratch, file
        file.close()
        scratch.unlink(missing_ok=True)


def _write(file: BufferedWriter, header: bytes, arrays: dict[str, NDArray[np.generic]]) -> None:
    file.write(header)
    for array in arrays.values():
        file.write(b"\0" * (-file.tell() % _ALIGN))
        checksum = xxhash.xxh3_64()
        for part in _parts(array):
            checksum.update(part)
            file.write(part)
        file.write(checksum.digest())


def sweep(folder: Path, name: str | None = None) -> None:
    """Remove what processes that died while saving left in `folder`, of one file or of all.

    Whoever is still writing holds a lock on its scratch file; where there are no such locks,
    nothing is removed.
    """
    if not locks.AVAILABLE:
        return
    with suppress(OSError):
        for entry in os.scandir(folder):
            if not entry.name.startswith(".") or not _SCRATCH.fullmatch(entry.name):
                continue
            if name is None or entry.name[1:-17] == name:
                with suppress(OSError, ValueError), open_plain(entry.path) as file:
                    if locks.try_lock(file):
                        os.unlink(entry.path)


def load(path: str | Path, *, mapped: Collection[str] = ()) -> tuple[str, State]:
    """Read what `save` wrote; ValueError says why a file cannot be read.

    Arrays of the names in `mapped` are checked but stay on the disk, as read-only maps of the file.
    """
    path = Path(path)
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        header = _read_header(path, file)
        try:
            arrays = {}
            for entry in header["arrays"]:
                name = str(entry["name"])
                arrays[name] = _read_array(path, file, entry, size, mapped=name in mapped)
            kind, config = str(header["kind"]), header["config"]
        except (KeyError, TypeError, OverflowError) as error:
            raise _broken(path, f"its header is malformed ({error!r})") from None
        if file.tell() != size:
            raise _broken(path, f"{size - file.tell()} bytes follow its end")
    if not isinstance(config, dict):
        raise _broken(path, "its header holds no settings")
    return kind, State(config, arrays)


def rng_state(rng: np.random.Generator) -> dict[str, object]:
    """The state of a PCG64 generator as plain numbers, for a config."""
    return dict(rng.bit_generator.state)


def rng_from_state(state: object) -> np.random.Generator:
    """A generator that continues where `rng_state` found it."""
    rng = np.random.Generator(np.random.PCG64(0))
    try:
        rng.bit_generator.state = state  # type: ignore[assignment]  # NumPy checks it
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not the state of a PCG64 generator: {error}") from None
    return rng


def _read_header(path: Path, file: BufferedReader) -> dict[str, Any]:
    prefix = file.read(_PREFIX.size)
    if prefix[: len(MAGIC)] != MAGIC:
        raise ValueError(f"{path} is not a file that lser saved")
    if len(prefix) < _PREFIX.size:
        raise _broken(path, "it ends inside its prefix")
    _, version, length, crc = _PREFIX.unpack(prefix)
    if version not in READABLE:
        known = ", ".join(map(str, READABLE))
        raise UnknownVersion(f"{path} has format version {version}; this release reads {known}")
    text = file.read(length)
    if len(text) < length or zlib.crc32(text) != crc:
        raise _broken(path, "its header is truncated or corrupted")
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _broken(path, f"its header is not JSON ({error})") from None
    if not isinstance(header, dict):
        raise _broken(path, "its header is not an object")
    return header


def _read_array(
    path: Path, file: BufferedReader, entry: dict[str, object], size: int, *, mapped: bool
) -> NDArray[np.generic]:
    name, dtype, shape = entry["name"], entry["dtype"], entry["shape"]
    if dtype not in _DTYPES or not _is_shape(shape):
        raise _broken(path, f"array {name!r} has dtype {dtype!r} and shape {shape!r}")
    gap = -file.tell() % _ALIGN
    if any(file.read(gap)):
        raise _broken(path, f"the padding before array {name!r} is not zero")
    kind = np.dtype(str(dtype))
    length = math.prod(shape) * kind.itemsize
    if file.tell() + length + _LENGTH > size:  # before asking for the memory
        raise _broken(path, f"it ends inside array {name!r}")
    checksum = xxhash.xxh3_64()
    array: NDArray[np.generic]
    if mapped and length:
        array = np.memmap(path, kind, "r", file.tell(), tuple(shape))
        for start in range(0, length, _PART):
            checksum.update(file.read(min(_PART, length - start)))
    else:
        array = np.empty(shape, kind)
        for part in _parts(array):
            file.readinto(part)
            checksum.update(part)
    if file.read(_LENGTH) != checksum.digest():
        raise _broken(path, f"array {name!r} does not match its checksum")
    return array


def _is_shape(shape: object) -> TypeGuard[list[int]]:
    """Whether it is a list of lengths; a negative one would undo the check of the size."""
    return (
        isinstance(shape, list)
        and len(shape) <= 8
        and all(type(length) is int and 0 <= length < 2**62 for length in shape)
    )


def _plain(name: str, array: NDArray[np.generic]) -> NDArray[np.generic]:
    little = array.dtype.newbyteorder("<")
    if little.str not in _DTYPES:
        raise ValueError(f"array {name!r} has dtype {array.dtype}, which a file cannot hold")
    return np.asarray(array, little, order="C")


def _parts(array: NDArray[np.generic]) -> Iterator[memoryview]:
    """The bytes of an array in parts that a cache holds from the checksum to the copy."""
    whole = array.reshape(-1).view(np.uint8).data
    for start in range(0, len(whole), _PART):
        yield whole[start : start + _PART]


def sync_folder(folder: Path) -> None:
    """Wait until a rename in a folder is on the disk, where the system can say so."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _broken(path: Path, why: str) -> ValueError:
    return ValueError(f"{path} is truncated or corrupted: {why}")


def flatten(node: Any, arrays: dict[str, NDArray[np.generic]], name: str = "") -> Any:
    """The JSON side of nested dicts and lists; arrays and tensors go to `arrays` by their path."""
    if hasattr(node, "detach"):  # a tensor, which is not imported for this
        arrays[name] = node.detach().cpu().numpy()
        return {"tensor": name}
    match node:
        case dict():
            pairs = [[key, flatten(value, arrays, f"{name}/{key}")] for key, value in node.items()]
            return {"pairs": pairs}  # pairs keep keys that are not strings
        case list() | tuple():
            return {"list": [flatten(v, arrays, f"{name}/{i}") for i, v in enumerate(node)]}
        case np.ndarray():
            arrays[name] = node
            return {"array": name}
        case np.generic():
            return {"value": node.item()}
        case None | bool() | int() | float() | str():
            return {"value": node}
    raise TypeError(f"{name} cannot be saved: {type(node).__name__}")


def restore(node: Any, arrays: dict[str, NDArray[np.generic]]) -> Any:
    """What `flatten` was given; tensors come back as arrays."""
    match node:
        case {"pairs": pairs}:
            return {key: restore(value, arrays) for key, value in pairs}
        case {"list": items}:
            return [restore(item, arrays) for item in items]
        case {"tensor": name} | {"array": name}:
            return arrays[name]
        case {"value": value}:
            return value
    raise ValueError(f"unknown node {node!r}")

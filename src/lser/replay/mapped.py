"""Rows in a file: its place on the disk reserved, and one memory at a time."""

import os
import weakref
from pathlib import Path

import numpy as np

from lser.locks import try_lock
from lser.types import Float32


def map_rows(owner: object, path: Path, shape: tuple[int, int], *, reopen: bool) -> Float32:
    """Rows in a file at `path`, locked until `owner` is gone or its process has ended.

    The file must be new; with `reopen` it may be one of the same size, which a killed process has
    left: its contents are about to be replaced.
    """
    fresh, size = not path.exists(), max(4 * shape[0] * shape[1], 1)
    if not fresh and not reopen:
        raise ValueError(
            f"path={str(path)!r} exists; the rows need a new file (what a memory held when its "
            "process ended is in the file that `save` wrote, not in its rows)"
        )
    if not fresh and (not path.is_file() or path.stat().st_size != size):
        raise ValueError(f"path={str(path)!r} exists and is no file of {size:,} bytes for rows")
    try:
        descriptor = _reserve(path, size, fresh=fresh)
        weakref.finalize(owner, os.close, descriptor)  # and with it the lock
        return np.memmap(path, np.float32, "r+", shape=shape)
    except BaseException:
        if fresh:
            path.unlink(missing_ok=True)
        raise


def _reserve(path: Path, size: int, *, fresh: bool) -> int:
    """Lock a file and reserve its place on the disk: writing to a map of it cannot fail then."""
    descriptor = os.open(path, os.O_RDWR | (os.O_CREAT | os.O_EXCL if fresh else 0), 0o666)
    try:
        if not try_lock(descriptor):
            raise ValueError(f"path={str(path)!r} holds the rows of a memory that is in use")
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor

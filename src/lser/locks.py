"""Locks on open files, which the system itself takes from a process that dies.

Not every system has them: where `AVAILABLE` is false (Windows), every lock is had at once and keeps
nobody out. Whoever must not go on without asks for a `locked_file`.
"""

from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Protocol

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]  # a module, or none

AVAILABLE = fcntl is not None


class HasFileno(Protocol):
    """An open file."""

    def fileno(self) -> int:
        """Its descriptor."""
        ...


def try_lock(file: HasFileno | int, *, shared: bool = False) -> bool:
    """Take the lock of a file until it is closed; False where somebody else has it.

    A `shared` lock lets in others that are shared. OSError where the file system has no locks.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_lock(file: HasFileno | int) -> None:
    """Take the lock of a file until it is closed, however long somebody else has it."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX)


def locked_file(path: Path, what: str) -> TextIOWrapper | None:
    """The file at `path`, made if need be and locked until it is closed; None where it is taken.

    ValueError where no lock could keep a second process out of `what`.
    """
    if fcntl is None:
        raise ValueError(f"{what} needs locks on files, which this system does not have")
    file = path.open("w")
    with suppress(OSError):  # a file system without locks: taken, for all one can tell
        if try_lock(file):
            return file
    file.close()
    return None

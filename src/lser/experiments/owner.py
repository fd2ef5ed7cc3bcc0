"""One owner for a run's folder: a lock that the system itself takes from a process that dies."""

import json
import os
import socket
import time
from pathlib import Path
from typing import Self

from lser.locks import try_lock
from lser.opening import NO_LINK, NO_WAITING, open_plain, read_text

OWNER = ".owner"
_PATIENCE = 0.5  # seconds: somebody who only looks holds the lock for an instant


class Taken(ValueError):
    """Another process writes to the folder."""


class Owner:
    """The right to write to `folder`, held until `release` or the end of the process.

    Where the system has no locks there is no second owner to tell apart.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | NO_LINK | NO_WAITING
        self._descriptor = os.open(folder / OWNER, flags, 0o644)
        if not _locked(self._descriptor):
            holder = _holder(folder)
            self.release()
            raise Taken(f"{folder} is being written by another process ({holder})")
        name = json.dumps({"pid": os.getpid(), "host": socket.gethostname()})
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, name.encode())

    def release(self) -> None:
        """Let others write."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        if getattr(self, "_descriptor", -1) >= 0:
            self.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()


def owned(folder: Path) -> bool:
    """Whether a process writes to `folder`, as far as this machine can tell."""
    try:
        with open_plain(folder / OWNER) as file:
            if not try_lock(file, shared=True):
                return True
            return _names_another_machine(file.read())
    except (OSError, ValueError):
        return False


def _names_another_machine(text: bytes) -> bool:
    """Whether the last owner ran elsewhere: a lock of another machine may not be seen here."""
    try:
        host = json.loads(text)["host"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    return bool(host != socket.gethostname())


def _locked(descriptor: int) -> bool:
    """Whether the lock could be had, now or in a moment."""
    deadline = time.monotonic() + _PATIENCE
    while not try_lock(descriptor):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True


def _holder(folder: Path) -> str:
    try:
        named = json.loads(read_text(folder / OWNER))
        return f"process {int(named['pid'])} on {named['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "which has not said its name yet"

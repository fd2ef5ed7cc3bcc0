"""Memories in forked processes: whole, and not locked by a thread that the child does not have."""

import os
from contextlib import suppress
from threading import Lock
from typing import Any
from weakref import WeakSet

_PATIENCE = 1.0  # seconds; whoever forks in the middle of a call of its own has the lock itself
_alive: WeakSet[Any] = WeakSet()
_held: list[Any] = []


def survive_forks(memory: Any) -> None:
    """Let `memory` be between two calls when the process forks, whatever other threads do."""
    _alive.add(memory)


def _before() -> None:
    _held.extend(m for m in list(_alive) if m._lock.acquire(timeout=_PATIENCE))


def _in_parent() -> None:
    while _held:
        with suppress(RuntimeError):
            _held.pop()._lock.release()


def _in_child() -> None:
    _held.clear()
    for memory in list(_alive):
        memory._lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)

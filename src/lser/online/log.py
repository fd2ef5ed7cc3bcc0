"""The log: what every store of events keeps, so that another database can stand behind it.

An event has a sequence number, a time, a kind, an id that is unique within its kind, and a body
(JSON). The log is the truth: users' states, counters, memories and policies are folds of it.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol


class LogRefusedError(RuntimeError):
    """The log could not take events (full disk, locked file, shut down).

    None of them is in it, but for one case: where a database went away before it had answered,
    they may be. The same ids again tell.
    """


class LeaseLostError(RuntimeError):
    """A learner that another has replaced tried to write; nothing was written."""


class Entry(NamedTuple):
    """An event to append; `id` None stands for one that is never repeated."""

    kind: str
    id: str | None
    body: bytes


class Event(NamedTuple):
    """An event in the log."""

    seq: int  # from 1, without repeats, in the order of commits
    at: float  # seconds since 1970 by the log's clock, which never goes back
    kind: str
    id: str | None
    body: bytes


class Receipt(NamedTuple):
    """What the log holds under an entry's kind and id: the entry, or the first one of that id."""

    event: Event
    new: bool  # False: the id was there before, and nothing was written


Done = Callable[[list[Receipt] | None, Exception | None], None]
Task = tuple[Sequence[Entry], Done]
Watcher = Callable[[list[Event]], None]


class Log(Protocol):
    """What serving writes to; what is read by number is the same for every reader."""

    commits: int
    rows: int  # events written here
    repeats: int
    refused: int

    def submit(self, tasks: Sequence["Task"]) -> None:
        """Append the entries of each task together, and the tasks in one commit where possible.

        A task's `done` is called on the writer's thread once it is decided.
        """
        ...

    def append(self, *entries: Entry, timeout: float = 30.0) -> list[Receipt]:
        """Append entries and wait until they are durable."""
        ...

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher` with the new events of every commit, in order, before its answers."""
        ...

    def follow(self, after: int) -> None:
        """From now on tell watchers of every event after a number, also of those by others."""
        ...

    def now(self) -> float:
        """The log's time."""
        ...

    @property
    def head(self) -> int:
        """The newest sequence number."""
        ...

    def trim(self, before: int, kinds: Sequence[str], timeout: float = 60.0) -> int:
        """Delete events of `kinds` with a smaller sequence number; returns how many."""
        ...

    def rewrite(self, bodies: Mapping[int, bytes], drop: Sequence[int]) -> None:
        """Give events other bodies and delete others, together; for those that say the same."""
        ...

    def close(self) -> None:
        """Write what was submitted, and stop."""
        ...


class Reader(Protocol):
    """Reads a log, from any process."""

    def read(self, after: int, limit: int = 2_000) -> list[Event]:
        """Events after a sequence number, oldest first."""
        ...

    def find(self, kind: str, id: str) -> Event | None:
        """The event of that kind and id."""
        ...

    def of_kind(self, kind: str, *, after: int = 0, up_to: int | None = None) -> Iterator[Event]:
        """All events of a kind, oldest first."""
        ...

    def head(self) -> int:
        """The newest sequence number."""
        ...

    def first_after(self, at: float) -> int:
        """The smallest sequence number whose event is not older than `at`; past the end if none."""
        ...

    def close(self) -> None:
        """Let go of the log."""
        ...


class Clock:
    """Wall time at the start, then steady: jumps of the wall clock do not reach the log."""

    def __init__(
        self,
        last: float = 0.0,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start at wall time, or at `last` where the wall clock lies before it."""
        self._steady = steady
        self._offset = max(last, wall()) - steady()

    def __call__(self) -> float:
        """Seconds since 1970, never less than before."""
        return self._offset + self._steady()

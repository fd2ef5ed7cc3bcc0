"""What writers of a log share: one thread that commits in groups, answers, and tells watchers.

Requests that arrive while a commit is under way share the next one. A group is durable as a whole
or refused as a whole, and whoever watches has seen it before anybody is answered.
"""

import logging
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from lser.online.log import Done, Entry, Event, LogRefusedError, Receipt, Task, Watcher

Durability = Literal["process", "power"]
GROUP = 1_024  # submissions from which on a commit takes in no more
logger = logging.getLogger("lser")


class Commit(NamedTuple):
    """What a commit brought."""

    results: list[Any]  # one for each task: the receipts of its entries
    news: list[Event]  # events that nobody here has seen yet, in the order of the log


class GroupLog(ABC):
    """A log's writer; a database says how a group is committed."""

    idle: float | None = None  # seconds without work after which `_follow` is asked for news

    def __init__(self, head: int, last: float) -> None:
        """Begin after the event numbered `head` of the time `last`; `_begin` starts the thread."""
        self._head, self._last = head, last
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._watchers: list[Watcher] = []
        self.commits = self.rows = self.repeats = self.refused = 0
        self._thread = threading.Thread(target=self._run, name="lser-log", daemon=True)

    @abstractmethod
    def _commit(self, tasks: list[Any]) -> Commit:
        """Make a group durable; an exception refuses all of it."""

    @abstractmethod
    def _release(self) -> None:
        """Let go of the database, after the last commit."""

    @abstractmethod
    def _clock(self) -> float:
        """Seconds since 1970, steady."""

    def _follow(self) -> list[Event]:
        """What others have written meanwhile."""
        return []

    @property
    def head(self) -> int:
        """The newest sequence number."""
        return self._head

    def now(self) -> float:
        """The log's time."""
        return max(self._clock(), self._last)

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher` with the new events of every commit, in order, before its answers."""
        self._watchers.append(watcher)

    def submit(self, tasks: Sequence[Task]) -> None:
        """Append the entries of each task together, and the tasks in one commit where possible.

        A task's `done` is called on the writer's thread once it is decided.
        """
        self._put(tasks)

    def _put(self, tasks: Sequence[Any]) -> None:
        with self._gate:
            if self._closed:
                raise LogRefusedError("the log is closed")
            self._queue.put(tasks)

    def append(self, *entries: Entry, timeout: float = 30.0) -> list[Receipt]:
        """Append entries and wait until they are durable."""
        receipts: list[Receipt] = self._wait(entries, timeout)
        return receipts

    def _wait(self, task: Sequence[Entry] | Callable[[], Any], timeout: float) -> Any:
        """Have the writer's thread do a task, and wait for what comes of it."""
        ready, box = threading.Event(), []

        def done(result: Any, error: Exception | None) -> None:
            box.append((result, error))
            ready.set()

        self._put([(task, done)])
        if not ready.wait(timeout):
            raise LogRefusedError(f"the log did not answer within {timeout} s")
        result, error = box[0]
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        """Write what was submitted, and stop."""
        with self._gate:
            if self._closed:
                return
            self._closed = True
            self._queue.put([None])
        self._thread.join()
        self._release()

    def _run(self) -> None:
        running = True
        while running:
            try:
                group = list(self._queue.get(timeout=self.idle))
            except queue.Empty:
                self._look()
                continue
            while len(group) < GROUP:
                try:
                    group.extend(self._queue.get_nowait())
                except queue.Empty:
                    break
            running = None not in group
            tasks = [task for task in group if task is not None]
            if tasks:
                self._handle(tasks)

    def _look(self) -> None:
        try:
            self._tell(self._follow())
        except Exception as problem:  # the next look or commit tries again
            logger.warning("the log cannot be followed: %s", problem)

    def _handle(self, group: list[tuple[Any, Done]]) -> None:
        """Commit one group; either all of it is durable or all of it is refused."""
        error: Exception | None = None
        results: list[Any] = []
        try:
            results, news = self._commit([task for task, _ in group])
        except Exception as problem:  # any failure refuses the group, none may end the thread
            error = LogRefusedError(f"the log could not be written: {problem}")
            self.refused += len(group)
            logger.warning("%s", error)
        else:
            self.commits += 1
            self._tell(news)
        for place, (_, done) in enumerate(group):
            try:
                done(None if error else results[place], error)
            except Exception:
                logger.exception("an answer of the log failed")

    def _tell(self, news: list[Event]) -> None:
        if not news:
            return
        self._head, self._last = news[-1].seq, max(self._last, news[-1].at)
        for watcher in self._watchers:
            try:
                watcher(news)
            except Exception:
                logger.exception("a watcher of the log failed")

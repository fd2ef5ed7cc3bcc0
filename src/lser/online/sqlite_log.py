"""The log in one SQLite file: WAL mode, one writer thread that commits in groups.

SQLite before 3.51.3 can damage a WAL file when several connections write or checkpoint at the
same time. Here one connection does both, a lock file keeps a second process away, and every
reader is opened read-only.
"""

import contextlib
import fcntl
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from lser.online.log import Clock, Done, Entry, Event, LogRefusedError, Receipt, Watcher
from lser.online.sqlite_reader import COMMON, FILE, find_event

Durability = Literal["process", "power"]
LOCK = "lock"
OLDEST = (3, 31, 0)
GROUP = 1_024  # most submissions in one commit
_SYNCHRONOUS = {"process": "NORMAL", "power": "FULL"}
_SCHEMA = f"""
create table if not exists event(
  seq integer primary key autoincrement, at real not null, kind text not null, id text,
  body blob not null);
create unique index if not exists event_id on event(kind, id) where id is not null;
create index if not exists event_kind on event(kind, seq) where kind not in {COMMON};
pragma user_version = 1;
"""
logger = logging.getLogger("lser")


def check_version(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> None:
    """Refuse an SQLite that lacks what the log relies on."""
    if version < OLDEST:
        need, have = (".".join(map(str, v)) for v in (OLDEST, version))
        raise ValueError(f"the log needs SQLite {need} or later, this Python has {have}")


class SqliteLog:
    """The writer of one folder's log; at most one exists for a folder, in any process."""

    def __init__(
        self,
        folder: str | Path,
        *,
        durability: Durability = "process",
        clock: Callable[[float], Callable[[], float]] = Clock,
    ) -> None:
        """Open or create the log; `clock` makes one from the time of the newest event."""
        check_version()
        if durability not in _SYNCHRONOUS:
            raise ValueError(f"durability must be process or power, got {durability!r}")
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.durability = durability
        self._lock = _lock(self.folder)
        try:
            self._connection = self._connect()
        except BaseException:
            self._lock.close()
            raise
        row = self._connection.execute("select seq, at from event order by seq desc").fetchone()
        sequence = self._connection.execute(
            "select seq from sqlite_sequence where name = 'event'"
        ).fetchone()
        self._head = sequence[0] if sequence else 0
        self._now = clock(row[1] if row else 0.0)
        self._last = row[1] if row else 0.0
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._watchers: list[Watcher] = []
        self.commits = self.rows = self.repeats = self.refused = 0
        self._thread = threading.Thread(target=self._run, name="lser-log", daemon=True)
        self._thread.start()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.folder / FILE, isolation_level=None, check_same_thread=False, timeout=5.0
        )
        mode = connection.execute("pragma journal_mode = wal").fetchone()[0]
        if mode != "wal":
            raise ValueError(f"{self.folder / FILE} cannot use a write-ahead log (mode {mode})")
        connection.execute(f"pragma synchronous = {_SYNCHRONOUS[self.durability]}")
        connection.execute("pragma cache_size = -16384")
        version = connection.execute("pragma user_version").fetchone()[0]
        if version > 1:
            raise ValueError(f"{self.folder / FILE} has version {version}; this release writes 1")
        connection.executescript(_SCHEMA)
        return connection

    @property
    def head(self) -> int:
        """The newest sequence number."""
        return self._head

    def now(self) -> float:
        """The log's time."""
        return max(self._now(), self._last)

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher` with the new events of every commit, in order, before its answers."""
        self._watchers.append(watcher)

    def submit(self, entries: Sequence[Entry], done: Done) -> None:
        """Append entries together; `done` is called on the writer's thread once it is decided."""
        with self._gate:
            if self._closed:
                raise LogRefusedError("the log is closed")
            self._queue.put((entries, done))

    def append(self, *entries: Entry, timeout: float = 30.0) -> list[Receipt]:
        """Append entries and wait until they are durable."""
        receipts: list[Receipt] = self._wait(lambda done: self.submit(entries, done), timeout)
        return receipts

    def trim(self, before: int, kinds: Sequence[str], timeout: float = 60.0) -> int:
        """Delete events of `kinds` with a smaller sequence number; returns how many."""
        deleted = 0
        marks = ", ".join("?" * len(kinds))
        statement = (
            "delete from event where seq in "
            f"(select seq from event where seq < ? and kind in ({marks}) order by seq limit 5000)"
        )

        def job() -> int:
            deleted: int = self._connection.execute(statement, (before, *kinds)).rowcount
            return deleted

        while True:  # in parts, so that appends come in between
            part: int = self._wait(lambda done: self._queue.put((job, done)), timeout)
            deleted += part
            if part == 0:
                return deleted

    def _wait(self, start: Callable[[Any], None], timeout: float) -> Any:
        ready, box = threading.Event(), []

        def done(result: Any, error: Exception | None) -> None:
            box.append((result, error))
            ready.set()

        start(done)
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
            self._queue.put(None)
        self._thread.join()
        self._connection.close()
        self._lock.close()

    def _run(self) -> None:
        running = True
        while running:
            group = [self._queue.get()]
            while len(group) < GROUP:
                try:
                    group.append(self._queue.get_nowait())
                except queue.Empty:
                    break
            running = None not in group
            self._handle([task for task in group if task is not None])

    def _handle(self, group: list[tuple[Any, Done]]) -> None:
        """Commit one group; either all of it is durable or all of it is refused."""
        if not group:
            return
        results: list[Any] = []
        fresh: list[Event] = []
        error: Exception | None = None
        try:
            self._connection.execute("begin immediate")
            for task, _ in group:
                results.append(task() if callable(task) else self._insert(task, fresh))
            self._connection.execute("commit")
        except Exception as problem:  # any failure refuses the group, none may end the thread
            error = LogRefusedError(f"the log could not be written: {problem}")
            self.refused += len(group)
            logger.warning("%s", error)
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("rollback")
        else:
            self.commits += 1
            self.rows += len(fresh)
            if fresh:
                self._head, self._last = fresh[-1].seq, fresh[-1].at
            self._tell(fresh)
        for place, (_, done) in enumerate(group):
            try:
                done(None if error else results[place], error)
            except Exception:
                logger.exception("an answer of the log failed")

    def _insert(self, entries: Sequence[Entry], fresh: list[Event]) -> list[Receipt]:
        receipts = []
        for kind, id, body in entries:
            at = self.now()
            cursor = self._connection.execute(
                "insert or ignore into event(at, kind, id, body) values(?, ?, ?, ?)",
                (at, kind, id, body),
            )
            if cursor.rowcount:
                event = Event(int(cursor.lastrowid or 0), at, kind, id, body)
                fresh.append(event)
                receipts.append(Receipt(event, True))
            else:
                self.repeats += 1
                found = find_event(self._connection, kind, str(id))
                assert found is not None
                receipts.append(Receipt(found, False))
        return receipts

    def _tell(self, fresh: list[Event]) -> None:
        for watcher in self._watchers:
            try:
                watcher(fresh)
            except Exception:
                logger.exception("a watcher of the log failed")


def _lock(folder: Path) -> Any:
    """An open file that no other process holds; the system lets go of it when the holder dies."""
    file = (folder / LOCK).open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise ValueError(f"{folder} is in use: another process writes its log") from None
    return file

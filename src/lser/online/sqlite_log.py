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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from lser.online.log import Clock, Done, Entry, Event, LogRefusedError, Receipt, Watcher

Durability = Literal["process", "power"]
FILE = "log.db"
LOCK = "lock"
OLDEST = (3, 31, 0)
GROUP = 1_024  # most submissions in one commit
_SYNCHRONOUS = {"process": "NORMAL", "power": "FULL"}
COMMON = ("decision", "feedback", "tick")  # kinds without an index of their own
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
                found = _find(self._connection, kind, str(id))
                assert found is not None
                receipts.append(Receipt(found, False))
        return receipts

    def _tell(self, fresh: list[Event]) -> None:
        for watcher in self._watchers:
            try:
                watcher(fresh)
            except Exception:
                logger.exception("a watcher of the log failed")


class SqliteReader:
    """Reads a folder's log by sequence number, from any process; never writes to it."""

    def __init__(self, folder: str | Path) -> None:
        """Open the log of a folder; FileNotFoundError where there is none."""
        path = Path(folder) / FILE
        if not path.exists():
            raise FileNotFoundError(f"{folder} holds no log")
        self._connection = sqlite3.connect(
            f"file:{path}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )
        self._lock = threading.Lock()

    def _rows(self, statement: str, values: Sequence[Any]) -> list[Any]:
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def read(self, after: int, limit: int = 2_000) -> list[Event]:
        """Events after a sequence number, oldest first."""
        rows = self._rows(
            "select seq, at, kind, id, body from event where seq > ? order by seq limit ?",
            (after, limit),
        )
        return [Event(*row) for row in rows]

    def find(self, kind: str, id: str) -> Event | None:
        """The event of that kind and id."""
        with self._lock:
            return _find(self._connection, kind, id)

    def of_kind(self, kind: str, *, after: int = 0, up_to: int | None = None) -> Iterator[Event]:
        """All events of a kind, oldest first."""
        last = 2**62 if up_to is None else up_to
        rare = "" if kind in COMMON else f"kind not in {COMMON} and"  # the index's own words
        statement = (
            "select seq, at, kind, id, body from event "
            f"where {rare} kind = ? and seq > ? and seq <= ? order by seq limit 1000"
        )
        while True:
            rows = self._rows(statement, (kind, after, last))
            for row in rows:
                yield Event(*row)
            if len(rows) < 1_000:
                return
            after = rows[-1][0]

    def head(self) -> int:
        """The newest sequence number."""
        return int(self._rows("select coalesce(max(seq), 0) from event", ())[0][0])

    def first_after(self, at: float) -> int:
        """The smallest sequence number whose event is not older than `at`; past the end if none."""
        low, high = 0, self.head() + 1  # times grow with the numbers: halve the range
        while high - low > 1:
            middle = (low + high) // 2
            row = self._rows("select at from event where seq >= ? order by seq limit 1", (middle,))
            if not row or row[0][0] >= at:
                high = middle
            else:
                low = middle
        return high

    def backup(self, path: Path) -> None:
        """Copy the log as it stands, while it is written."""
        target = sqlite3.connect(path)
        try:
            with self._lock:
                self._connection.backup(target)
        finally:
            target.close()

    def close(self) -> None:
        """Let go of the log."""
        self._connection.close()


def _find(connection: sqlite3.Connection, kind: str, id: str) -> Event | None:
    row = connection.execute(
        "select seq, at, kind, id, body from event where kind = ? and id = ?", (kind, id)
    ).fetchone()
    return Event(*row) if row else None


def _lock(folder: Path) -> Any:
    """An open file that no other process holds; the system lets go of it when the holder dies."""
    file = (folder / LOCK).open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise ValueError(f"{folder} is in use: another process writes its log") from None
    return file

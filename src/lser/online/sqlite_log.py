"""The log in one SQLite file: WAL mode, one writer thread that commits in groups.

SQLite before 3.51.3 can damage a WAL file when several connections write or checkpoint at the
same time. Here one connection does both, a lock file keeps a second process away, and every
reader is opened read-only.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from lser.locks import locked_file
from lser.online.event_reader import COMMON
from lser.online.group_log import Commit, Durability, GroupLog
from lser.online.log import Clock, Entry, Event, Receipt
from lser.online.sqlite_reader import FILE

LOCK = "lock"
OLDEST = (3, 31, 0)
_AT_ONCE = 64  # entries up to which one statement inserts a group
_SYNCHRONOUS = {"process": "NORMAL", "power": "FULL"}
_SCHEMA = f"""
create table if not exists event(
  seq integer primary key autoincrement, at real not null, kind text not null, id text,
  body blob not null);
create unique index if not exists event_id on event(kind, id) where id is not null;
create index if not exists event_kind on event(kind, seq) where kind not in {COMMON};
pragma user_version = 1;
"""


def check_version(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> None:
    """Refuse an SQLite that lacks what the log relies on."""
    if version < OLDEST:
        need, have = (".".join(map(str, v)) for v in (OLDEST, version))
        raise ValueError(f"the log needs SQLite {need} or later, this Python has {have}")


class SqliteLog(GroupLog):
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
        row = self._connection.execute("select at from event order by seq desc").fetchone()
        sequence = self._connection.execute(
            "select seq from sqlite_sequence where name = 'event'"
        ).fetchone()
        last = row[0] if row else 0.0
        self._steady = clock(last)
        super().__init__(sequence[0] if sequence else 0, last)
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

    def follow(self, after: int) -> None:
        """Nobody else writes here: watchers are told of all there is."""

    def _clock(self) -> float:
        return self._steady()

    def _release(self) -> None:
        self._connection.close()
        self._lock.close()

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
            part: int = self._wait(job, timeout)
            deleted += part
            if part == 0:
                return deleted

    def rewrite(self, bodies: Mapping[int, bytes], drop: Sequence[int]) -> None:
        """Give events other bodies and delete others, together; for those that say the same."""

        def job() -> None:
            for seq, body in bodies.items():
                self._connection.execute("update event set body = ? where seq = ?", (body, seq))
            self._connection.executemany(
                "delete from event where seq = ?", [(seq,) for seq in drop]
            )

        self._wait(job, 300.0)

    def _commit(self, tasks: list[Any]) -> Commit:
        if not any(map(callable, tasks)) and 0 < sum(map(len, tasks)) <= _AT_ONCE:
            with contextlib.suppress(sqlite3.IntegrityError):  # an id was there: row by row
                return self._insert_new(tasks)
        fresh: list[Event] = []
        try:
            self._connection.execute("begin immediate")
            results = [task() if callable(task) else self._insert(task, fresh) for task in tasks]
            self._connection.execute("commit")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("rollback")
            raise
        self.rows += len(fresh)
        return Commit(results, fresh)

    def _insert_new(self, tasks: list[Sequence[Entry]]) -> Commit:
        """Commit entries whose ids are new, in one statement: one turn away from the interpreter.

        Statements by themselves are transactions, and numbers given by one have no gaps.
        """
        at = self.now()
        entries = [entry for task in tasks for entry in task]
        values = [value for entry in entries for value in (at, *entry)]
        cursor = self._connection.execute(_insertion(len(entries)), values)
        self.rows += len(entries)
        first = int(cursor.lastrowid or 0) - len(entries) + 1
        fresh = [Event(first + place, at, *entry) for place, entry in enumerate(entries)]
        news = iter(fresh)
        return Commit([[Receipt(next(news), True) for _ in task] for task in tasks], fresh)

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
                found = self._connection.execute(
                    "select seq, at, kind, id, body from event where kind = ? and id = ?",
                    (kind, id),
                ).fetchone()
                receipts.append(Receipt(Event(*found), False))
        return receipts


@cache
def _insertion(count: int) -> str:
    rows = ", ".join(["(?, ?, ?, ?)"] * count)
    return f"insert into event(at, kind, id, body) values {rows}"


def _lock(folder: Path) -> TextIOWrapper:
    """An open file that no other process holds; the system lets go of it when the holder dies."""
    file = locked_file(folder / LOCK, f"the log of {folder}")
    if file is None:
        raise ValueError(f"{folder} is in use: another process writes its log")
    return file

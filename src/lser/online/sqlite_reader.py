"""Reading the log: by sequence number, kind or id, from any process, without ever writing."""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lser.online.log import Event

FILE = "log.db"
COMMON = ("decision", "feedback", "tick")  # kinds without an index of their own


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
            return find_event(self._connection, kind, id)

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


def find_event(connection: sqlite3.Connection, kind: str, id: str) -> Event | None:
    """The event of that kind and id."""
    row = connection.execute(
        "select seq, at, kind, id, body from event where kind = ? and id = ?", (kind, id)
    ).fetchone()
    return Event(*row) if row else None

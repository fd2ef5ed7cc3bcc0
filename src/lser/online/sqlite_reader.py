"""Reading a folder's log, from any process, without ever writing."""

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lser.online.event_reader import EventReader

FILE = "log.db"


class SqliteReader(EventReader):
    """Reads a folder's log by sequence number, from any process; never writes to it."""

    def __init__(self, folder: str | Path) -> None:
        """Open the log of a folder; FileNotFoundError where there is none."""
        path = Path(folder) / FILE
        if not path.exists():
            raise FileNotFoundError(f"{folder} holds no log")
        if not path.is_file():  # not opened: to close it would let go of the writer's locks
            raise ValueError(f"{path} is no plain file")
        address = f"{path.absolute().as_uri()}?mode=ro"  # quoted: a folder may be called "a?b"
        self._connection = sqlite3.connect(
            address, uri=True, isolation_level=None, check_same_thread=False
        )
        try:
            self._connection.execute("select 1 from event limit 1")
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise ValueError(f"{path} cannot be read as a log: {error}") from None
        self._lock = threading.Lock()

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The answer to a statement, whose values stand as `?`."""
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

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

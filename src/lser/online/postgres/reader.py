"""Reading the log of a database, from any machine."""

from collections.abc import Sequence
from typing import Any

from lser.online.event_reader import EventReader
from lser.online.postgres.link import Link


class PostgresReader(EventReader):
    """Reads a log by sequence number; numbers become visible in their order, without gaps."""

    def __init__(self, link: Link) -> None:
        """Read over a connection of its own."""
        self._link = link

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The answer to a statement, whose values stand as `?`."""
        text: Any = statement.replace("?", "%s")
        return self._link(lambda c: c.cursor(binary=True).execute(text, values).fetchall())

    def head(self) -> int:
        """The newest sequence number."""
        return int(self.rows("select seq from head")[0][0])

    def close(self) -> None:
        """Let go of the log."""
        self._link.close()

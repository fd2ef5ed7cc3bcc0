"""Reading the table of events: by sequence number, kind or id; the same words for any database."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from lser.online.log import Event

COMMON = ("decision", "feedback", "tick")  # kinds without an index of their own
COLUMNS = "seq, at, kind, id, body"
PART = 1_000


class EventReader(ABC):
    """Reads events; a database says how it answers a statement."""

    @abstractmethod
    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The answer to a statement, whose values stand as `?`."""

    def read(self, after: int, limit: int = 2_000) -> list[Event]:
        """Events after a sequence number, oldest first."""
        statement = f"select {COLUMNS} from event where seq > ? order by seq limit ?"
        return [Event(*row) for row in self.rows(statement, (after, limit))]

    def find(self, kind: str, id: str) -> Event | None:
        """The event of that kind and id."""
        statement = f"select {COLUMNS} from event where kind = ? and id = ?"
        found = self.rows(statement, (kind, id))
        return Event(*found[0]) if found else None

    def of_kind(self, kind: str, *, after: int = 0, up_to: int | None = None) -> Iterator[Event]:
        """All events of a kind, oldest first."""
        last = 2**62 if up_to is None else up_to
        rare = "" if kind in COMMON else f"kind not in {COMMON} and"  # the index's own words
        statement = (
            f"select {COLUMNS} from event "
            f"where {rare} kind = ? and seq > ? and seq <= ? order by seq limit {PART}"
        )
        while True:
            found = self.rows(statement, (kind, after, last))
            for row in found:
                yield Event(*row)
            if len(found) < PART:
                return
            after = found[-1][0]

    def head(self) -> int:
        """The newest sequence number."""
        return int(self.rows("select coalesce(max(seq), 0) from event")[0][0])

    def first_after(self, at: float) -> int:
        """The smallest sequence number whose event is not older than `at`; past the end if none."""
        low, high = 0, self.head() + 1  # times grow with the numbers: halve the range
        while high - low > 1:
            middle = (low + high) // 2
            row = self.rows("select at from event where seq >= ? order by seq limit 1", (middle,))
            if not row or row[0][0] >= at:
                high = middle
            else:
                low = middle
        return high

"""The log in PostgreSQL: any number of writers, each with a thread that commits in groups.

A commit is one statement, one way there and back. It brings what others have written since, so
that the books of every server are the log up to its own newest event.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from lser.online.group_log import Commit, GroupLog
from lser.online.log import Clock, Entry, Event, LeaseLostError, Receipt
from lser.online.postgres import schema
from lser.online.postgres.link import Link

_APPEND = (
    "select * from append(%s, %s, %s, %s, %s, %s::text[], %s::text[], %s::bytea[])"  # one call
)
_NEWS = "select seq, at, kind, id, body from event where seq > %s order by seq limit 5000"
PART = 5_000  # events deleted in one transaction


class Appender:
    """Sends groups of entries; each is written once, however often the connection breaks."""

    def __init__(self, link: Link, token: int | None = None) -> None:
        """Write over `link`; with a `token`, only while the lease has it."""
        self._link, self._token = link, token
        self._name, self._batch = secrets.token_hex(12), 0

    def send(self, entries: Sequence[Entry], now: float, since: int | None) -> list[Any]:
        """Rows of the function `append`, for a group that no earlier one has tried."""
        self._batch += 1
        values = (
            self._name, self._batch, self._token, now, since,
            [entry.kind for entry in entries],
            [entry.id for entry in entries],
            [entry.body for entry in entries],
        )  # fmt: skip
        try:
            return self._link(lambda c: c.cursor(binary=True).execute(_APPEND, values).fetchall())
        except psycopg.Error as error:
            if error.sqlstate == schema.LEASE_LOST:
                raise LeaseLostError(str(error)) from None
            raise


class PostgresLog(GroupLog):
    """One server's way to the log that it shares with others."""

    idle = 0.05

    def __init__(self, link: Link, *, clock: Any = Clock) -> None:
        """Join the log over `link`; its time goes on from the database's clock."""
        self._link, self._appender = link, Appender(link)
        head, last, wall = link(
            lambda c: c.execute(
                "select seq, at, extract(epoch from clock_timestamp())::float8 from head"
            ).fetchone()
        ) or (0, 0.0, 0.0)
        self._steady = clock(last, lambda: wall)
        self._since: int | None = None
        super().__init__(head, last)
        self._thread.start()

    def follow(self, after: int) -> None:
        """From now on tell watchers of every event after a number, also of those by others."""
        self._since = after

    def _clock(self) -> float:
        found: float = self._steady()
        return found

    def _release(self) -> None:
        self._link.close()

    def _commit(self, tasks: list[Any]) -> Commit:
        entries = [entry for task in tasks for entry in task]
        since = self._since
        rows = self._appender.send(entries, self.now(), since)
        receipts, news = [], []
        for place, seq, at, kind, id, body in rows:
            if place < 0:
                entry = entries[-place - 1]
                event = Event(seq, at, kind, id, entry.body)
                news.append(event)
                receipts.append(Receipt(event, True))
                continue
            event = Event(seq, at, kind, id, bytes(body))
            if place:
                receipts.append(Receipt(event, False))
                self.repeats += 1
            else:
                news.append(event)
        self.rows += sum(receipt.new for receipt in receipts)
        news.sort()
        if since is not None and news:
            self._since = news[-1].seq
        results, start = [], 0
        for task in tasks:
            results.append(receipts[start : start + len(task)])
            start += len(task)
        return Commit(results, news)

    def _follow(self) -> list[Event]:
        since = self._since
        if since is None:
            return []
        rows = self._link(lambda c: c.cursor(binary=True).execute(_NEWS, (since,)).fetchall())
        news = [Event(*row) for row in rows]
        if news:
            self._since = news[-1].seq
        return news

    def trim(self, before: int, kinds: Sequence[str], timeout: float = 60.0) -> int:
        """Delete events of `kinds` with a smaller sequence number; returns how many."""
        deleted, last = 0, -1
        while last != 0:  # in parts, so that appends come in between
            last = self._deleted(
                "delete from event where seq in (select seq from event where seq < %s "
                f"and kind = any(%s) order by seq limit {PART} for update skip locked)",
                (before, list(kinds)),
            )
            deleted += last
        return deleted

    def rewrite(self, bodies: Mapping[int, bytes], drop: Sequence[int]) -> None:
        """Give events other bodies and delete others, together; for those that say the same."""

        def work(connection: psycopg.Connection) -> None:
            with connection.transaction():
                for seq, body in bodies.items():
                    connection.execute("update event set body = %b where seq = %s", (body, seq))
                connection.execute("delete from event where seq = any(%s)", (list(drop),))

        self._link(work)

    def _deleted(self, statement: Any, values: Sequence[Any]) -> int:
        return self._link(lambda c: c.execute(statement, values).rowcount)

"""A shop in a database: its log, its shelf, and the learner's lease."""

import contextlib
import os
import secrets
import socket
import tempfile
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any

import orjson
import psycopg

from lser.online.group_log import Durability
from lser.online.log import Entry, LeaseLostError, Log
from lser.online.outbox import Outbox
from lser.online.postgres import schema
from lser.online.postgres.link import Link, shown
from lser.online.postgres.log import Appender, PostgresLog
from lser.online.postgres.reader import PostgresReader
from lser.online.store import Shelf
from lser.training import checkpoint

LASTS = 6.0  # seconds of a lease that is not renewed
RENEWED_EVERY = 1.5  # seconds
WRITE_LIMIT = 5.0  # seconds for a group of events to be written


class PostgresShelf:
    """Trees as rows; with a lease's token, written only while it is held."""

    def __init__(self, link: Link, token: int | None = None) -> None:
        """Keep rows over `link`."""
        self._link, self._token = link, token

    def _write(self, statement: Any, values: tuple[Any, ...]) -> None:
        def work(connection: psycopg.Connection) -> None:
            with connection.transaction():
                connection.execute("select fence(%s)", (self._token,))
                connection.execute(statement, values)

        try:
            self._link(work)
        except psycopg.Error as error:
            if error.sqlstate == schema.LEASE_LOST:
                raise LeaseLostError(str(error)) from None
            raise

    def _one(self, statement: Any, values: tuple[Any, ...] = ()) -> Any:
        return self._link(lambda c: c.cursor(binary=True).execute(statement, values).fetchone())

    def save(self, room: str, number: int, tree: dict[str, Any]) -> None:
        """Put a tree, whole or not at all; the same number again replaces it."""
        with tempfile.TemporaryDirectory() as folder:
            body = checkpoint.save(Path(folder), number, tree).read_bytes()
        self._write(
            "insert into file values(%s, %s, %b) "
            "on conflict (room, number) do update set body = excluded.body",
            (room, number, body),
        )

    def load(self, room: str, number: int) -> dict[str, Any]:
        """Read a tree back; ValueError or OSError where there is none that is whole."""
        row = self._one("select body from file where room = %s and number = %s", (room, number))
        if row is None:
            raise FileNotFoundError(f"there is no {room} {number}")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tree.lser"
            path.write_bytes(row[0])
            return checkpoint.load(path)

    def latest(self, room: str) -> dict[str, Any] | None:
        """The newest tree of a room that is whole."""
        row = self._one("select max(number) from file where room = %s", (room,))
        return None if row is None or row[0] is None else self.load(room, row[0])

    def forget(self, room: str, *, newest: int, keep: Collection[int] = ()) -> None:
        """Remove trees, except the newest so many and the numbers in `keep`."""
        self._write(
            "delete from file where room = %s and number <> all(%s) and number not in "
            "(select number from file where room = %s order by number desc limit %s)",
            (room, list(keep), room, newest),
        )

    def report(self, status: dict[str, Any]) -> None:
        """Leave the learner's word about itself."""
        self._write("update status set body = %b", (orjson.dumps(status),))

    def status(self) -> dict[str, Any]:
        """What the learner last said of itself; empty where it has not."""
        row = self._one("select body from status")
        found: dict[str, Any] = orjson.loads(row[0]) if row and row[0] is not None else {}
        return found


class FencedOutbox:
    """A learner's events, written by itself while it holds the lease."""

    def __init__(self, appender: Appender) -> None:
        """Write through `appender`."""
        self._appender = appender

    def send(self, kind: str, id: str, body: bytes) -> None:
        """Append the event; its time is the log's newest."""
        self._appender.send((Entry(kind, id, body),), 0.0, None)


class PostgresLease:
    """A row with a token that grows: whoever holds an older one cannot write any more."""

    def __init__(self, address: str, token: int) -> None:
        """Hold the lease of `token`, and renew it from a thread."""
        self._work, self._link = Link(address), Link(address, limit=LASTS / 2)
        self.shelf: Shelf = PostgresShelf(self._work, token)
        self.outbox: Outbox = FencedOutbox(Appender(self._work, token))
        self.token = token
        self._done, self._lost = threading.Event(), False
        self._thread = threading.Thread(target=self._keep, name="lser-lease", daemon=True)
        self._thread.start()

    def _keep(self) -> None:
        while not self._done.wait(RENEWED_EVERY):
            try:
                if not self._renew():
                    self._lost = True
                    return
            except (psycopg.Error, OSError):
                continue  # it is held until another takes it; whoever is cut off cannot write

    def _renew(self) -> bool:
        renewed = self._link(
            lambda c: (
                c.execute(
                    "update lease set until = clock_timestamp() + make_interval(secs => %s) "
                    "where token = %s",
                    (LASTS, self.token),
                ).rowcount
            )
        )
        return renewed == 1

    def held(self) -> bool:
        """Whether it is still held, as far as one can know."""
        return not self._lost

    def close(self) -> None:
        """Give it back."""
        self._done.set()
        self._thread.join()
        with contextlib.suppress(psycopg.Error, OSError):
            self._link(
                lambda c: c.execute(
                    "update lease set until = '-infinity' where token = %s", (self.token,)
                )
            )
        self._link.close()
        self._work.close()


class PostgresStore:
    """A shop's database."""

    def __init__(self, address: str) -> None:
        """The shop at `address`; its tables need not be there yet."""
        self.address, self.name = address, shown(address)
        self._link = Link(address)
        self.shelf: Shelf = PostgresShelf(self._link)
        self._holder = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"

    def exists(self) -> bool:
        """Whether there is a log."""
        return self._link(
            lambda c: (
                schema.installed(c) and c.execute("select seq > 0 from head").fetchone() == (True,)
            )
        )

    def log(self, durability: Durability) -> PostgresLog:
        """The log to write to, made if there is none; what it acknowledges is on the disk."""
        if durability not in ("process", "power"):
            raise ValueError(f"durability must be process or power, got {durability!r}")
        self._link(schema.install)
        return PostgresLog(Link(self.address, limit=WRITE_LIMIT))

    def reader(self) -> PostgresReader:
        """A reader of the log; FileNotFoundError where there is none."""
        if not self._link(schema.installed):
            raise FileNotFoundError(f"{self.name} holds no log")
        return PostgresReader(Link(self.address))

    def lease(self, log: Log | None = None) -> PostgresLease | None:
        """The learner's lease, None where another has it; `log` is the one of this process.

        FileNotFoundError where there is no shop yet.
        """
        try:
            row = self._link(
                lambda c: c.execute(
                    "update lease set token = token + 1, holder = %s, "
                    "until = clock_timestamp() + make_interval(secs => %s) "
                    "where until not between clock_timestamp() "  # also where the clock went back
                    "and clock_timestamp() + make_interval(secs => %s) returning token",
                    (self._holder, LASTS, 2 * LASTS),
                ).fetchone()
            )
        except psycopg.errors.UndefinedTable:
            raise FileNotFoundError(f"{self.name} holds no log") from None
        return None if row is None else PostgresLease(self.address, int(row[0]))

    def take_in(self, log: Log) -> None:
        """Nothing: a learner writes itself."""

    def close(self) -> None:
        """Let go of the connection."""
        self._link.close()

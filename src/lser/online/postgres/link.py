"""A connection that comes back: what a break interrupts is done again on a new one."""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from psycopg import conninfo

PATIENCE = 8.0  # seconds for which a broken connection is made again
SCHEMA = "lser"
LIMIT = 60.0  # seconds
_OPTIONS: dict[str, Any] = {
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8_000,
}
T = TypeVar("T")


def shown(address: str) -> str:
    """An address without its password."""
    try:
        parts: dict[str, Any] = conninfo.conninfo_to_dict(address)
    except psycopg.ProgrammingError as error:
        raise ValueError(f"not the address of a database: {error}") from None
    host, port = parts.get("host", ""), parts.get("port")
    user = f"{parts['user']}@" if parts.get("user") else ""
    where = f"{host}:{port}" if port else host
    return f"postgresql://{user}{where}/{parts.get('dbname', '')}"


class Link:
    """One connection, used by one thread at a time, in which every statement is a transaction."""

    def __init__(self, address: str, *, limit: float = LIMIT, patience: float = PATIENCE) -> None:
        """Connect when first used; statements are given up after `limit` seconds.

        A shop's tables are in the schema `lser` unless the address says otherwise.
        """
        self._parameters: dict[str, Any] = conninfo.conninfo_to_dict(address)
        self._limit, self._patience = int(1_000 * limit), patience
        self._connection: psycopg.Connection | None = None
        self._lock = threading.RLock()
        self.breaks = 0

    def __call__(self, work: Callable[[psycopg.Connection], T]) -> T:
        """Do `work`; where the connection breaks, again from its beginning on a new one."""
        with self._lock:
            end = time.monotonic() + self._patience
            pause = 0.02
            while True:
                try:
                    return work(self._connected())
                except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                    if self._connection is not None and not self._connection.closed:
                        raise  # the database refuses; the connection is well
                    self.breaks += 1
                    self._drop()
                    if time.monotonic() + pause > end:
                        raise ConnectionError(f"the database does not answer: {error}") from error
                    time.sleep(pause)
                    pause = min(2 * pause, 0.5)

    def _connected(self) -> psycopg.Connection:
        if self._connection is None:
            asked = self._parameters.get("options") or ""
            path = "" if "search_path" in asked else f" -c search_path={SCHEMA}"
            limits = f" -c statement_timeout={self._limit} -c lock_timeout={self._limit}"
            self._connection = psycopg.connect(
                **{**_OPTIONS, **self._parameters, "options": asked + path + limits},
                autocommit=True,
            )
            level = self._connection.execute("show synchronous_commit").fetchone()
            if level is not None and level[0] in ("off", "local"):  # what is acknowledged stays
                self._connection.execute("set synchronous_commit = on")
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            self._drop()

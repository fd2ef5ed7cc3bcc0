"""Where a shop lies: its log, and on a shelf beside it what was made of the log.

A folder of one machine, or a PostgreSQL database that several machines reach.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any, Protocol

from lser.online.group_log import Durability
from lser.online.log import Log, Reader
from lser.online.outbox import Outbox

INSTALL = (
    "a log on PostgreSQL needs more packages: pip install -e '.[online,postgres]' in the clone"
)
SCHEMES = ("postgresql://", "postgres://")


class Shelf(Protocol):
    """Numbered trees of arrays and plain values in named rooms, and the learner's word."""

    def save(self, room: str, number: int, tree: dict[str, Any]) -> None:
        """Put a tree, whole or not at all; the same number again replaces it."""
        ...

    def load(self, room: str, number: int) -> dict[str, Any]:
        """Read a tree back; ValueError or OSError where there is none that is whole."""
        ...

    def latest(self, room: str) -> dict[str, Any] | None:
        """The newest tree of a room that is whole."""
        ...

    def forget(self, room: str, *, newest: int, keep: Collection[int] = ()) -> None:
        """Remove trees, except the newest so many and the numbers in `keep`."""
        ...

    def report(self, status: dict[str, Any]) -> None:
        """Leave the learner's word about itself."""
        ...

    def status(self) -> dict[str, Any]:
        """What the learner last said of itself; empty where it has not."""
        ...


class Lease(Protocol):
    """The right to learn for a shop. Whoever has lost it cannot write any more."""

    shelf: Shelf
    outbox: Outbox

    def held(self) -> bool:
        """Whether it is still held, as far as one can know."""
        ...

    def close(self) -> None:
        """Give it back."""
        ...


class Store(Protocol):
    """One shop."""

    name: str  # for people; without passwords
    address: str  # for `open_store` in another process
    shelf: Shelf

    def exists(self) -> bool:
        """Whether there is a log."""
        ...

    def log(self, durability: Durability) -> Log:
        """The log to write to, made if there is none."""
        ...

    def reader(self) -> Reader:
        """A reader of the log; FileNotFoundError where there is none."""
        ...

    def lease(self, log: Log | None = None) -> Lease | None:
        """The learner's lease, None where another has it; `log` is the one of this process."""
        ...

    def take_in(self, log: Log) -> None:
        """Append what a learner has left for the log's writer, where it cannot write itself."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


def is_database(log: str | Path) -> bool:
    """Whether a log is named by the address of a database."""
    return str(log).startswith(SCHEMES)


def open_store(log: "str | Path | Store") -> Store:
    """The store that a path or an address names."""
    if not isinstance(log, str | Path):
        return log
    if is_database(log):
        try:
            from lser.online.postgres.store import PostgresStore
        except ModuleNotFoundError as error:
            raise ValueError(f"{INSTALL} ({error})") from None
        return PostgresStore(str(log))
    from lser.online.folder_store import FolderStore

    return FolderStore(log)

"""A shop in a folder of one machine: the log in SQLite, everything else in files beside it."""

import os
from collections.abc import Collection
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import orjson

from lser.locks import locked_file
from lser.online.group_log import Durability
from lser.online.log import Log
from lser.online.outbox import DirectOutbox, FolderOutbox, Outbox, waiting
from lser.online.sqlite_log import SqliteLog
from lser.online.sqlite_reader import FILE, SqliteReader
from lser.online.store import Shelf
from lser.training import checkpoint

LEASE = "learner.lock"
STATUS = "learner.json"


class FolderShelf:
    """Files, each replaced atomically."""

    def __init__(self, folder: Path) -> None:
        """Keep files in `folder`."""
        self.folder = folder

    def save(self, room: str, number: int, tree: dict[str, Any]) -> None:
        """Put a tree, whole or not at all; the same number again replaces it."""
        checkpoint.save(self.folder / room, number, tree)

    def load(self, room: str, number: int) -> dict[str, Any]:
        """Read a tree back; ValueError or OSError where there is none that is whole."""
        return checkpoint.load(self.folder / room / f"{number:012d}.lser")

    def latest(self, room: str) -> dict[str, Any] | None:
        """The newest tree of a room that is whole."""
        return checkpoint.load_latest(self.folder / room)

    def forget(self, room: str, *, newest: int, keep: Collection[int] = ()) -> None:
        """Remove trees, except the newest so many and the numbers in `keep`."""
        for path in sorted((self.folder / room).glob("*.lser"))[:-newest]:
            if int(path.stem) not in keep:
                path.unlink(missing_ok=True)

    def report(self, status: dict[str, Any]) -> None:
        """Leave the learner's word about itself."""
        scratch = self.folder / f".{STATUS}"
        scratch.write_bytes(orjson.dumps(status))
        os.replace(scratch, self.folder / STATUS)

    def status(self) -> dict[str, Any]:
        """What the learner last said of itself; empty where it has not."""
        try:
            status: dict[str, Any] = orjson.loads((self.folder / STATUS).read_bytes())
            return status
        except (OSError, ValueError):
            return {}


class FolderLease:
    """A locked file; the system lets go of it when its holder dies."""

    def __init__(self, file: TextIOWrapper, shelf: Shelf, outbox: Outbox) -> None:
        """Hold the locked `file`."""
        self._file, self.shelf, self.outbox = file, shelf, outbox

    def held(self) -> bool:
        """Always: a lock of this machine is not lost while its holder lives."""
        return True

    def close(self) -> None:
        """Give it back."""
        self._file.close()


class FolderStore:
    """A shop's folder."""

    def __init__(self, folder: str | Path) -> None:
        """The shop in `folder`, which need not be there yet."""
        self.folder = Path(folder)
        self.name = self.address = str(folder)
        self.shelf: Shelf = FolderShelf(self.folder)

    def exists(self) -> bool:
        """Whether there is a log."""
        return (self.folder / FILE).exists()

    def log(self, durability: Durability) -> SqliteLog:
        """The log to write to, made if there is none."""
        return SqliteLog(self.folder, durability=durability)

    def reader(self) -> SqliteReader:
        """A reader of the log; FileNotFoundError where there is none."""
        return SqliteReader(self.folder)

    def lease(self, log: Log | None = None) -> FolderLease | None:
        """The learner's lease, None where another has it; `log` is the one of this process."""
        file = locked_file(self.folder / LEASE, f"the learner of {self.folder}")
        if file is None:
            return None
        outbox = FolderOutbox(self.folder) if log is None else DirectOutbox(log, self.folder)
        return FolderLease(file, self.shelf, outbox)

    def take_in(self, log: Log) -> None:
        """Append what a learner in another process has left."""
        found = waiting(self.folder)
        if found:
            log.append(*(entry for _, entry in found))
            for path, _ in found:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Nothing is held."""

"""How a learner in another process gets events into the log: files that the writer takes in.

The log has one writer. A learner leaves what it has to say in a folder, under a name that is the
event's kind and id; the writer appends it and deletes the file. Both may be killed at any
moment: a file taken in twice is a repeated id, which changes nothing.
"""

import os
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, unquote

from lser.online.log import Entry, Log, LogRefusedError

FOLDER = "inbox"


class Outbox(Protocol):
    """Takes events for the log."""

    def send(self, kind: str, id: str, body: bytes) -> None:
        """Hand over an event; it appears in the log at some time, once."""
        ...


class DirectOutbox:
    """For a learner in the writer's own process."""

    def __init__(self, log: Log, folder: Path) -> None:
        """Append to `log`, or leave events in the shop `folder` while it refuses them."""
        self._log, self._later = log, FolderOutbox(folder)

    def send(self, kind: str, id: str, body: bytes) -> None:
        """Append the event."""
        try:
            self._log.append(Entry(kind, id, body))
        except LogRefusedError:
            self._later.send(kind, id, body)


class FolderOutbox:
    """For a learner in a process of its own."""

    def __init__(self, folder: Path) -> None:
        """Leave events in the shop `folder`."""
        self._folder = folder / FOLDER
        self._folder.mkdir(parents=True, exist_ok=True)

    def send(self, kind: str, id: str, body: bytes) -> None:
        """Leave the event as a file, whole or not at all."""
        name = f"{quote(kind, safe='')}+{quote(id, safe='')}"
        scratch = self._folder / f".{name}"
        scratch.write_bytes(body)
        os.replace(scratch, self._folder / name)


def waiting(folder: Path) -> list[tuple[Path, Entry]]:
    """What learners have left in a shop `folder`, oldest first."""
    found = []
    for path in (folder / FOLDER).glob("[!.]*+*"):
        kind, _, id = path.name.partition("+")
        try:
            entry = Entry(unquote(kind), unquote(id), path.read_bytes())
            found.append((path.stat().st_mtime_ns, path, entry))
        except FileNotFoundError:  # the learner replaced it just now
            continue
    return [(path, entry) for _, path, entry in sorted(found)]

"""A loss of power: what was not synced is gone, torn, or there by luck.

A file's bytes are safe once it is synced, a name in a folder once the folder is. `Disk` watches
both calls, and `lose` leaves of a folder what a disk may hold that lost everything else.
"""

import os
import random
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock


class Disk:
    """What a disk is sure to hold of the files under a folder."""

    def __init__(self) -> None:
        self.bytes: dict[int, bytes] = {}  # by file: as it was when it was synced
        self.names: dict[str, dict[str, int]] = {}  # by folder: files when it was synced
        self._kept: list[int] = []  # descriptors, so that no file takes the number of another

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Notice every sync from here on."""
        real = os.fsync

        def sync(descriptor: int) -> None:
            real(descriptor)
            found = os.fstat(descriptor)
            path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            if stat.S_ISDIR(found.st_mode):
                self.names[str(path)] = {e.name: e.inode() for e in os.scandir(path) if e.is_file()}
            else:
                self._kept.append(os.dup(descriptor))
                self.bytes[found.st_ino] = path.read_bytes()

        with mock.patch.object(os, "fsync", sync):
            yield

    def lose(self, root: Path, chance: random.Random) -> int:
        """Lose power: change everything under `root` that was not synced; returns how many."""
        lost = 0
        for folder in [root, *(path for path in root.rglob("*") if path.is_dir())]:
            safe = self.names.get(str(folder.resolve()), {})
            now = {entry.name: entry.inode() for entry in os.scandir(folder) if entry.is_file()}
            for name in sorted(safe.keys() | now.keys()):
                lost += self._lose_name(folder / name, safe.get(name), now.get(name), chance)
        for descriptor in self._kept:
            os.close(descriptor)
        self._kept.clear()
        return lost

    def _lose_name(
        self, path: Path, safe: int | None, now: int | None, chance: random.Random
    ) -> bool:
        """Let a name lead to what it was sure to lead to or, by luck, to what it last led to."""
        chosen = now if safe == now or chance.random() < 0.5 else safe
        data = None if now is None else path.read_bytes()
        if chosen is None:
            path.unlink(missing_ok=True)
            return True
        kept = self.bytes.get(chosen, b"")
        if chosen == now and data is not None and data != kept:  # written since, or never synced
            known = kept if data.startswith(kept) else b""
            kept = data[: chance.randrange(len(known), len(data) + 1)]
        if kept == data:
            return False
        path.unlink(missing_ok=True)
        path.write_bytes(kept)
        return True

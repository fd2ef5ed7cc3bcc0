"""The folder of a sharded memory's snapshots: a file per shard, and the client's own, the last."""

from pathlib import Path
from typing import Self

import numpy as np

from lser.checks import check_count
from lser.files import State, load, save
from lser.types import Int64

_CLIENT = "client.lser"


class Snapshots:
    """Which files are the last whole snapshot, and how many rows each shard had been sent by then.

    Files of a snapshot carry its number. The client's file, which names the number, is replaced at
    the very end: whoever dies in between leaves the snapshot before.
    """

    def __init__(self, folder: Path, shards: int) -> None:
        if (folder / _CLIENT).exists():
            raise ValueError(
                f"snapshots={str(folder)!r} holds those of a memory: continue it by "
                "ShardedReplay.from_snapshots, or choose another folder"
            )
        folder.mkdir(parents=True, exist_ok=True)
        self._begin(folder, shards)

    def _begin(self, folder: Path, shards: int) -> None:
        self.folder, self.number = folder, 0
        self.marks: Int64 = np.zeros(shards, np.int64)

    @classmethod
    def read(cls, folder: Path, kind: str) -> tuple[Self, State]:
        """A folder's last snapshot, and the client's state of that time."""
        found, state = load(folder / _CLIENT)
        if found != kind:
            raise ValueError(f"{folder / _CLIENT} holds a {found!r}, not a {kind!r}")
        snapshots = cls.__new__(cls)
        snapshots._begin(folder, check_count("shards", state.config["shards"]))
        snapshots.number = check_count("snapshot", state.config["snapshot"])
        snapshots.marks = np.array(state.arrays["sent"], np.int64)
        return snapshots, state

    def file_of(self, shard: int) -> Path | None:
        """The last snapshot of a shard; None before the first."""
        return self._file(shard, self.number) if self.number else None

    def next_files(self) -> list[Path]:
        """Where the shards of the next snapshot go."""
        return [self._file(shard, self.number + 1) for shard in range(len(self.marks))]

    def keep(self, kind: str, state: State) -> None:
        """The shards of the next snapshot are written: make it the last."""
        number = self.number + 1
        save(self.folder / _CLIENT, kind, State({**state.config, "snapshot": number}, state.arrays))
        before, self.number = self.number, number
        self.marks = np.array(state.arrays["sent"], np.int64)
        for shard in range(len(self.marks)):
            self._file(shard, before).unlink(missing_ok=True)

    def _file(self, shard: int, number: int) -> Path:
        return self.folder / f"shard-{shard}-{number}.lser"

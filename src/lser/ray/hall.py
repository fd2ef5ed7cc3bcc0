"""The shards of one memory as its client reaches them: sent rows, asked for draws, revived."""

import uuid
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lser.compiled import UInt32
from lser.files import State
from lser.ray.codes import Ask, Codes
from lser.ray.rooms import LostRoom, Rooms
from lser.ray.snapshots import Snapshots
from lser.types import Float32, Int64

_IN_FLIGHT = 8  # pushes per shard that are not acknowledged


class Part(NamedTuple):
    """Rows of a block that go to one shard."""

    shard: int
    at: Int64  # (n,) which rows of the block
    rows: Float32  # (n, width)
    codes: UInt32  # (n,)


class Spec(NamedTuple):
    """What a shard is made from."""

    capacities: Int64  # (S,)
    sizes: tuple[int, int]  # observation and action
    made: list[dict[str, Any]]  # seed and params of each shard
    encoder: Any
    salt: int  # of the mix


class Hall:
    """All shards of a memory: which codes they hold, what each was sent, and what was lost.

    With a folder for snapshots a shard whose room died comes back as the last one has it.
    """

    def __init__(self, spec: Spec, rooms: Rooms, folder: Path | None) -> None:
        self.spec, self.rooms = spec, rooms
        self.count = len(spec.capacities)
        self.codes = Codes(spec.capacities, spec.salt)
        self.sent = np.zeros(self.count, np.int64)  # rows ever sent to each shard
        self.lost = self.revived = 0
        self.snapshots = None if folder is None else Snapshots(folder, self.count)
        self._flying: list[deque[Any]] = [deque() for _ in range(self.count)]
        self._name = uuid.uuid4().hex
        self._open(range(self.count))

    def owner(self, code: int) -> int:
        """The shard of a code."""
        return int(self.codes.owners(np.array([code], np.uint32))[0])

    def call(self, shard: int, method: str, *arguments: Any) -> Any:
        """Begin a call to a shard's room."""
        name = f"{self._name}/{shard}"
        return self.rooms.call(self._room(shard), method, name, *arguments)

    def get(self, shard: int, method: str, *arguments: Any) -> Any:
        """Make a call, and wait for it."""
        return self.rooms.result(self.call(shard, method, *arguments))

    def each(self, method: str, arguments: list[tuple[Any, ...]] | None = None) -> list[Any]:
        """The answers of all shards; one that is lost is revived and asked again."""
        given = arguments or [()] * self.count
        calls = [self.call(shard, method, *given[shard]) for shard in range(self.count)]
        answers = []
        for shard, call in enumerate(calls):
            try:
                answers.append(self.rooms.result(call))
            except LostRoom as lost:
                self.revive(shard, lost)
                answers.append(self.get(shard, method, *given[shard]))
        return answers

    def _room(self, shard: int) -> int:
        return shard % len(self.rooms)

    def _open(self, shards: Iterable[int]) -> None:
        """Make empty shards in their rooms."""
        spec, calls = self.spec, []
        encoder = tuple(spec.encoder.state())
        for shard in shards:
            sizes = (int(spec.capacities[shard]), *spec.sizes)
            written = int(self.sent[shard])
            calls.append(self.call(shard, "open", sizes, spec.made[shard], encoder, written))
        for call in calls:
            self.rooms.result(call)

    # Rows

    def parts(self, rows: Float32) -> list[Part]:
        """What of a block goes to which shard."""
        codes = self.spec.encoder.encode_rows(rows)
        if self.count == 1:
            return [Part(0, np.arange(len(rows)), rows, codes)] if len(rows) else []
        whose = self.codes.owners(codes)
        places = [(shard, np.flatnonzero(whose == shard)) for shard in np.unique(whose).tolist()]
        return [Part(shard, at, rows[at], codes[at]) for shard, at in places]

    def extend(self, rows: Float32) -> Int64:
        """Store rows; returns their ids. A block that a lost shard did not take is sent again."""
        ids = np.full(len(rows), -1, np.int64)
        parts = self.parts(rows)
        calls = [self._send("extend", part) for part in parts]
        for part, call in zip(parts, calls, strict=True):
            try:
                local = self.rooms.result(call)
            except LostRoom as lost:
                self.sent[part.shard] -= len(part.rows)
                self.revive(part.shard, lost)
                local = self.rooms.result(self._send("extend", part))
            ids[part.at] = np.where(local >= 0, local * self.count + part.shard, -1)
        return ids

    def push(self, rows: Float32) -> None:
        """Send rows off, and wait only where too many are under way."""
        for part in self.parts(rows):
            self.wait(part.shard, _IN_FLIGHT - 1)
            self._flying[part.shard].append(self._send("push", part))

    def _send(self, method: str, part: Part) -> Any:
        """Send rows to their shard, which are counted from here on."""
        self.codes.store(part.shard, part.codes)
        self.sent[part.shard] += len(part.rows)
        return self.call(part.shard, method, part.rows)

    def wait(self, shard: int, most: int = 0) -> None:
        """Wait until at most so many pushes to a shard are under way."""
        flying = self._flying[shard]
        while len(flying) > most:
            try:
                self.rooms.result(flying.popleft())
            except LostRoom as lost:
                self.revive(shard, lost)

    # Draws

    def ask(self, asks: list[Ask]) -> dict[int, Any]:
        """Begin draws: one call to every shard that is asked for something."""
        by_shard: dict[int, list[Ask]] = {}
        for ask in asks:
            by_shard.setdefault(ask.shard, []).append(ask)
        calls = {}
        for shard, mine in by_shard.items():
            wanted = np.array([(ask.code, ask.size) for ask in mine], np.int64)
            calls[shard] = self.call(shard, "draw", wanted, np.array([a.greedy for a in mine]))
        return calls

    def drawn(self, calls: dict[int, Any]) -> dict[int, Any] | None:
        """Rows and ids by shard; None if one was lost, and revived: ask again."""
        found = {}
        for shard, call in calls.items():
            try:
                found[shard] = self.rooms.result(call)
            except LostRoom as lost:
                self.revive(shard, lost)
                if self.codes.filled.sum() == 0:
                    raise RuntimeError("the memory lost all that it held") from lost
                return None
        return found

    # Losses

    def revive(self, shard: int, lost: LostRoom) -> None:
        """Bring a shard back as its last snapshot has it, and count what it has lost."""
        self._flying[shard].clear()
        if self.snapshots is None:
            held = int(self.codes.filled[shard])
            raise RuntimeError(
                f"shard {shard} of {self.count} is gone with {held} transitions ({lost}); with "
                "snapshots=<folder> it would come back"
            ) from lost
        self.rooms.wake(self._room(shard))
        sent = int(self.sent[shard])
        if self.snapshots.number == 0:
            self._open([shard])
            self.codes.replace(shard, *self.get(shard, "codes"))
        else:
            self.read(shard)
        self.lost += sent - int(self.snapshots.marks[shard])
        self.revived += 1
        self.snapshots.marks[shard] = sent

    def read(self, shard: int) -> None:
        """Make a shard from its last snapshot, with ids that were not given since."""
        assert self.snapshots is not None
        self.get(shard, "read", str(self.snapshots.file_of(shard)), int(self.sent[shard]))
        self.codes.replace(shard, *self.get(shard, "codes"))

    def load(self, shard: int, state: State) -> None:
        """Make a shard from its state."""
        self.get(shard, "load", tuple(state))
        self.codes.replace(shard, *self.get(shard, "codes"))

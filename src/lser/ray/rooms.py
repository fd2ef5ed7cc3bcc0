"""Where the shards of memories live: rooms, each an actor of a Ray cluster, or in this process."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lser.compiled import UInt32
from lser.files import State
from lser.ray.engine import the_ray
from lser.replay import LocalityReplay, load_replay
from lser.replay.memories.codes import ENCODERS
from lser.types import Float32, Float64, Int64

Plain = tuple[dict[str, Any], dict[str, Any]]  # the settings and arrays of a state
CALL_LIMIT = 300.0  # seconds; a room that does not answer for so long counts as lost
_PAUSE = 0.2  # seconds between two looks whether a room is back


class LostRoom(RuntimeError):
    """A room that died, or came back empty."""


class Room:
    """Holds shards by name: memories of their own, which share nothing but the process."""

    def __init__(self) -> None:
        self._held: dict[str, LocalityReplay] = {}

    def open(
        self,
        name: str,
        sizes: tuple[int, int, int],
        made: dict[str, Any],
        code: Plain,
        written: int,
    ) -> None:
        """Make an empty shard: its sizes, seed and params, the encoder; ids as after `written`."""
        config, arrays = code
        encoder: Any = ENCODERS[config["kind"]]
        own = {key: np.array(array) for key, array in arrays.items()}
        memory = LocalityReplay(*sizes, encoder=encoder.from_state(State(config, own)), **made)
        memory.index.counts[1] = written
        self._held[name] = memory

    def load(self, name: str, state: Plain) -> int:
        """Make a shard from its state; returns its length."""
        config, arrays = state
        own = {key: np.array(array) for key, array in arrays.items()}  # what Ray hands out is fixed
        self._held[name] = LocalityReplay.from_state(State(config, own))
        return len(self._held[name])

    def read(self, name: str, path: str, written: int) -> int:
        """Make a shard from a snapshot, with ids beyond those of `written` writes."""
        memory = load_replay(path, kind=LocalityReplay)
        assert isinstance(memory, LocalityReplay)
        memory.index.counts[1] = max(int(memory.index.counts[1]), written)
        self._held[name] = memory
        return len(memory)

    def write(self, name: str, path: str) -> int:
        """Save a shard, whole or not at all; returns how many were ever written."""
        memory = self._memory(name)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        memory.save(path)
        return memory.store.written

    def close(self, name: str) -> None:
        """Forget a shard."""
        self._held.pop(name, None)

    def extend(self, name: str, rows: Float32) -> Int64:
        """Store packed rows; returns their ids in this shard, -1 where one was dropped."""
        memory = self._memory(name)
        at = memory.store.layout
        return memory.extend(
            rows[:, at.observation],
            rows[:, at.action],
            rows[:, at.reward],
            rows[:, at.next_observation],
            rows[:, at.terminated] != 0,
            rows[:, at.truncated] != 0,
        )

    def push(self, name: str, rows: Float32) -> None:
        """`extend` for whoever needs no ids."""
        self.extend(name, rows)

    def draw(self, name: str, asks: Int64, greedy: Float64) -> tuple[Float32, Int64]:
        """Packed rows and ids of several draws, one after the other: codes and counts, (n, 2)."""
        memory = self._memory(name)
        pairs = zip(asks.tolist(), greedy.tolist(), strict=True)
        slots = np.concatenate([memory.index.pick(c, n, share) for (c, n), share in pairs])
        return memory.store.rows[slots], memory.store.ids[slots]

    def codes(self, name: str) -> tuple[UInt32, Int64]:
        """The occupied codes and how many transitions each has."""
        arrays = self._memory(name).index.arrays()
        return arrays["codes"], arrays["sizes"]

    def state(self, name: str) -> Plain:
        """All that a shard is, as copies."""
        config, arrays = self._memory(name).state()
        return config, {key: np.array(array) for key, array in arrays.items()}

    def stats(self, name: str) -> dict[str, float]:
        """A shard's own numbers."""
        return self._memory(name).stats()

    def pid(self) -> int:
        """The process that it is in."""
        return os.getpid()

    def _memory(self, name: str) -> LocalityReplay:
        if name not in self._held:
            raise LostRoom(f"shard {name} is not here: the room was started anew")
        return self._held[name]


class Rooms(Protocol):
    """How a client reaches rooms; calls to one room are done in the order they were made."""

    def __len__(self) -> int: ...

    def call(self, room: int, method: str, *arguments: Any) -> Any:
        """Begin a call; returns what `result` takes."""
        ...

    def result(self, call: Any) -> Any:
        """Wait for a call; LostRoom if its room died."""
        ...

    def wake(self, room: int) -> None:
        """Wait until a room that died is there again, empty; LostRoom if it does not come."""
        ...


class HereRooms:
    """Rooms in this process: for tests, and to see what sharding changes without a cluster."""

    def __init__(self, count: int) -> None:
        self._rooms = [Room() for _ in range(count)]

    def __len__(self) -> int:
        return len(self._rooms)

    def kill(self, room: int) -> None:
        """Lose a room; an empty one is in its place."""
        self._rooms[room] = Room()

    def call(self, room: int, method: str, *arguments: Any) -> Any:
        """Do it at once."""
        try:
            return getattr(self._rooms[room], method)(*arguments), None
        except Exception as error:
            return None, error

    def result(self, call: Any) -> Any:
        """What it gave."""
        value, error = call
        if error is not None:
            raise error
        return value

    def wake(self, room: int) -> None:
        """It is there."""


class ActorRooms:
    """Rooms that are Ray actors, as `start_rooms` makes them: one that dies comes back, empty."""

    def __init__(self, actors: Sequence[Any]) -> None:
        self.actors = list(actors)

    def __len__(self) -> int:
        return len(self.actors)

    def call(self, room: int, method: str, *arguments: Any) -> Any:
        """Send it off."""
        return getattr(self.actors[room], method).remote(*arguments)

    def result(self, call: Any) -> Any:
        """What it gave."""
        ray = the_ray()
        try:
            return ray.get(call, timeout=CALL_LIMIT)
        except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError) as error:
            raise LostRoom(f"a room of the sharded memory was lost: {error}") from error

    def wake(self, room: int) -> None:
        """Wait until Ray has started it anew, on whichever machine."""
        until = time.monotonic() + CALL_LIMIT
        while True:
            try:
                self.result(self.actors[room].pid.remote())
                return
            except LostRoom:
                if time.monotonic() > until:
                    raise
                time.sleep(_PAUSE)


def start_rooms(count: int, *, cpus: float = 1.0) -> ActorRooms:
    """Start so many rooms on the cluster that `ray.init` has connected to, spread over machines."""
    ray = the_ray()
    if not ray.is_initialized():
        raise ValueError("a sharded memory needs a cluster: call ray.init first")
    options = {"num_cpus": cpus, "max_restarts": -1, "scheduling_strategy": "SPREAD"}
    actor = ray.remote(**options)(Room)
    return ActorRooms([actor.remote() for _ in range(count)])

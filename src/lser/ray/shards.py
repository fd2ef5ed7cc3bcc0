"""A memory larger than one machine: LSER over shards, each in a room of a Ray cluster."""

import uuid
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from lser.checks import as_floats, check_count, check_fraction
from lser.compiled import UInt32
from lser.files import State, rng_from_state, rng_state, save
from lser.params import make_params
from lser.ray.codes import Ask, Codes, owners
from lser.ray.rooms import LostRoom, Rooms, start_rooms
from lser.ray.snapshots import Snapshots
from lser.replay.index.encoders import ENCODERS, SimHash
from lser.replay.memories.locality import LocalityParams
from lser.replay.store import Store
from lser.types import Batch, Float32, Int64

_IN_FLIGHT = 8  # pushes per shard that are not acknowledged
# options that a shard cannot follow by itself, with what each would need of the others
_REFUSED = {
    "unseen": ("drop", "the largest bucket of all shards"),
    "random_from": ("bucket", "draws from all shards"),
    "fill": ("repeat", "draws from all shards"),
    "sampling": ("locality", "draws from all shards"),
    "store": ("reward", "the oldest transition of all shards"),
    "order": ("reward", "whole sessions, whose steps lie in many shards"),
    "codes": ("simhash", "codes that spread over the shards"),
    "newest": (0, "the newest transitions of all shards"),
}


class Part(NamedTuple):
    """Rows of a block that go to one shard."""

    shard: int
    at: Int64  # (n,) which rows of the block
    rows: Float32  # (n, width)
    codes: UInt32  # (n,)


class Sent(NamedTuple):
    """Draws that are under way: what was asked for each, and the calls, by shard."""

    codes: list[int]
    size: int
    asks: list[list[Ask]]  # in the order of a batch
    calls: dict[int, Any]


class ShardedReplay:
    """LSER whose buckets lie in shards on many machines: the `Replay` protocol over Ray actors.

    A bucket lies whole in the shard that a mix of its code's bits names, and a shard is a
    `LocalityReplay` of its share of the `capacity`, whose rule of the store it follows by itself.
    This client knows which codes are occupied, so a query asks the shard of its bucket or, without
    one, the one or two shards of the two nearest codes of all. With one shard it is a
    `LocalityReplay`, draw for draw.

    `push` and `sample_many` do not wait for each answer. With a folder for `snapshots`, which every
    machine sees, a shard whose room died comes back as it was at the last `snapshot()`; what was
    sent to it since is lost, and counted. Without, a lost room is an error. One client at a time.

    `encoder`, if given, must be frozen: standardised features need statistics that all share, so
    let a `SimHash` observe some of the traffic first. `rooms` are those of `start_rooms`, which may
    hold shards of many memories; without, the memory starts one per shard.
    """

    KIND: ClassVar[str] = "lser-sharded"
    Params = LocalityParams

    def __init__(
        self,
        capacity: int,
        observation_dim: int,
        action_dim: int,
        *,
        shards: int = 2,
        seed: int = 0,
        params: LocalityParams | None = None,
        encoder: Any = None,
        rooms: Rooms | None = None,
        snapshots: str | Path | None = None,
        **knobs: Any,
    ) -> None:
        self.params = make_params(LocalityParams, params, knobs)
        self.capacity, self.shards = (
            check_count("capacity", capacity),
            check_count("shards", shards),
        )
        self.seed = check_count("seed", seed, low=0)
        if capacity < shards:
            raise ValueError(f"capacity={capacity} is less than one transition per shard, {shards}")
        self._form = Store(1, observation_dim, action_dim)  # packs and checks rows, holds none
        self.encoder = self._checked_encoder(encoder)
        share, rest = divmod(self.capacity, self.shards)
        self._codes = Codes(np.array([share + (k < rest) for k in range(self.shards)]))
        self.greedy = float(self.params.greedy)
        self._rng = np.random.default_rng((self.seed, 3))
        self._counts = {"draws": 0, "fallbacks": 0, "lost": 0, "revived": 0}
        self._sent = np.zeros(self.shards, np.int64)  # rows ever sent to each shard
        self._flying: list[deque[Any]] = [deque() for _ in range(self.shards)]
        self._lock = RLock()
        self._snapshots = None if snapshots is None else Snapshots(Path(snapshots), self.shards)
        self._rooms = start_rooms(self.shards) if rooms is None else rooms
        self._name = uuid.uuid4().hex
        self._open(range(self.shards))

    def _checked_encoder(self, encoder: Any) -> Any:
        for name, (allowed, needs) in _REFUSED.items():
            value = getattr(self.params, name)
            if value != allowed:
                raise ValueError(f"{name}={value!r} needs {needs}: shards have {name}={allowed!r}")
        if encoder is None:
            if self.params.features != "raw":
                raise ValueError(
                    f"features={self.params.features!r} needs statistics that all shards share: "
                    "let a SimHash observe() some observations and pass it as encoder="
                )
            width = self._form.observation_dim
            encoder = SimHash(width, bits=self.params.bits, seed=self.seed)
        if encoder.KIND not in ENCODERS or encoder.blind or not encoder.frozen:
            raise ValueError(f"encoder={encoder!r} must be a frozen SimHash or E2LSH")
        return encoder

    # Shards and their rooms

    def _call(self, shard: int, method: str, *arguments: Any) -> Any:
        name = f"{self._name}/{shard}"
        return self._rooms.call(shard % len(self._rooms), method, name, *arguments)

    def _each(self, method: str) -> list[Any]:
        """The answers of all shards; one that is lost is revived and asked again."""
        calls = [self._call(shard, method) for shard in range(self.shards)]
        return [self._answer(shard, call, method) for shard, call in enumerate(calls)]

    def _answer(self, shard: int, call: Any, method: str, *arguments: Any) -> Any:
        try:
            return self._rooms.result(call)
        except LostRoom as lost:
            self._revive(shard, lost)
            return self._rooms.result(self._call(shard, method, *arguments))

    def _open(self, shards: Iterable[int]) -> None:
        """Make empty shards in their rooms."""
        form, code = self._form, tuple(self.encoder.state())
        calls = []
        for shard in shards:
            seed = self.seed if shard == 0 else _seed_of(self.seed, shard)
            sizes = (int(self._codes.capacities[shard]), form.observation_dim, form.action_dim)
            made = {"seed": seed, "params": self.params}
            calls.append(self._call(shard, "open", sizes, made, code, int(self._sent[shard])))
        for call in calls:
            self._rooms.result(call)

    def _revive(self, shard: int, lost: LostRoom) -> None:
        """Bring a shard back as its last snapshot has it, and count what it has lost."""
        self._flying[shard].clear()
        if self._snapshots is None:
            held = int(self._codes.filled[shard])
            raise RuntimeError(
                f"shard {shard} of {self.shards} is gone with {held} transitions ({lost}); with "
                "snapshots=<folder> it would come back"
            ) from lost
        path, sent = self._snapshots.file_of(shard), int(self._sent[shard])
        if path is None:
            self._open([shard])
        else:
            self._rooms.result(self._call(shard, "read", str(path), sent))
        self._codes.replace(shard, *self._rooms.result(self._call(shard, "codes")))
        self._counts["lost"] += sent - int(self._snapshots.marks[shard])
        self._counts["revived"] += 1
        self._snapshots.marks[shard] = sent

    def snapshot(self) -> None:
        """Write every shard, then this client's own numbers, to the folder for snapshots."""
        with self._lock:
            if self._snapshots is None:
                raise ValueError("snapshots=None: this memory was made without a folder for them")
            self.flush()
            paths = [str(path) for path in self._snapshots.next_files()]
            calls = [self._call(shard, "write", path) for shard, path in enumerate(paths)]
            for shard, (call, path) in enumerate(zip(calls, paths, strict=True)):
                self._answer(shard, call, "write", path)
            self._snapshots.keep(self.KIND, self._own_state())

    @classmethod
    def from_snapshots(cls, folder: str | Path, *, rooms: Rooms | None = None) -> Self:
        """The memory as its last `snapshot` left it, for a client that was lost itself."""
        snapshots, state = Snapshots.read(Path(folder), cls.KIND)
        memory = cls._like(state, rooms)
        memory._snapshots = snapshots
        for shard in range(memory.shards):
            path, sent = str(snapshots.file_of(shard)), int(memory._sent[shard])
            memory._rooms.result(memory._call(shard, "read", path, sent))
            memory._codes.replace(shard, *memory._rooms.result(memory._call(shard, "codes")))
        return memory

    def close(self) -> None:
        """Forget the shards in their rooms; rooms that nobody else uses end by themselves."""
        for shard in range(self.shards):
            self._rooms.result(self._call(shard, "close"))

    # The protocol

    def __len__(self) -> int:
        return int(self._codes.filled.sum())

    def extend(
        self,
        observation: ArrayLike,
        action: ArrayLike,
        reward: ArrayLike,
        next_observation: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike,
        streams: ArrayLike | None = None,
    ) -> Int64:
        """Add a block of N transitions, in order; returns their ids, -1 where one was dropped."""
        rows = self._form.pack(observation, action, reward, next_observation, terminated, truncated)
        ids = np.full(len(rows), -1, np.int64)
        with self._lock:
            parts = self._parts(rows)
            calls = [self._sending("extend", part) for part in parts]
            for part, call in zip(parts, calls, strict=True):
                try:
                    local = self._rooms.result(call)
                except LostRoom as lost:
                    self._sent[part.shard] -= len(part.rows)  # it is sent again
                    self._revive(part.shard, lost)
                    local = self._rooms.result(self._sending("extend", part))
                ids[part.at] = np.where(local >= 0, local * self.shards + part.shard, -1)
        return ids

    def push(
        self,
        observation: ArrayLike,
        action: ArrayLike,
        reward: ArrayLike,
        next_observation: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike,
    ) -> None:
        """`extend` that does not wait; an error of a shard comes with a later call, or `flush`."""
        rows = self._form.pack(observation, action, reward, next_observation, terminated, truncated)
        with self._lock:
            for part in self._parts(rows):
                self._wait(part.shard, _IN_FLIGHT - 1)
                self._flying[part.shard].append(self._sending("push", part))

    def flush(self) -> None:
        """Wait until everything that was pushed is stored."""
        with self._lock:
            for shard in range(self.shards):
                self._wait(shard, 0)

    def _wait(self, shard: int, most: int) -> None:
        """Wait until at most so many pushes to a shard are under way."""
        flying = self._flying[shard]
        while len(flying) > most:
            try:
                self._rooms.result(flying.popleft())
            except LostRoom as lost:
                self._revive(shard, lost)

    def _parts(self, rows: Float32) -> list[Part]:
        """What of a block goes to which shard."""
        codes = self.encoder.encode_rows(rows)
        whose = owners(codes, self.shards)
        if self.shards == 1:
            return [Part(0, np.arange(len(rows)), rows, codes)] if len(rows) else []
        places = [(shard, np.flatnonzero(whose == shard)) for shard in np.unique(whose).tolist()]
        return [Part(shard, at, rows[at], codes[at]) for shard, at in places]

    def _sending(self, method: str, part: Part) -> Any:
        """Send rows to their shard, which are counted from here on."""
        self._codes.store(part.shard, part.codes)
        self._sent[part.shard] += len(part.rows)
        return self._call(part.shard, method, part.rows)

    def sample(self, batch_size: int, query: ArrayLike | None = None) -> Batch:
        """Draw `batch_size` transitions for `query`, the current observation, (O,)."""
        with self._lock:
            if len(self) == 0:
                raise ValueError(f"cannot sample batch_size={batch_size}: the memory is empty")
            size = check_count("batch_size", batch_size)
            if query is None:
                raise ValueError("query=None: this memory needs the current observation")
            asked = as_floats("query", query, (self._form.observation_dim,))
            return self._collect(self._send(size, asked[None]))[0]

    def sample_many(
        self, batch_size: int, queries: Iterable[ArrayLike], *, together: int = 16, ahead: int = 2
    ) -> Iterator[Batch]:
        """A batch for every query, in order: `together` of them a call, `ahead` calls under way.

        A batch may be drawn up to ``together * (ahead + 1)`` queries before it is handed out.
        """
        size, ahead = check_count("batch_size", batch_size), check_count("ahead", ahead, low=0)
        together, wide = check_count("together", together), self._form.observation_dim
        if len(self) == 0:
            raise ValueError(f"cannot sample batch_size={size}: the memory is empty")
        left, flying = iter(queries), deque[Sent]()
        while group := list(islice(left, together)):
            asked = as_floats("queries", np.stack([np.asarray(q) for q in group]), (None, wide))
            with self._lock:
                flying.append(self._send(size, asked))
            if len(flying) > ahead:
                with self._lock:
                    batches = self._collect(flying.popleft())
                yield from batches
        for sent in flying:
            with self._lock:
                batches = self._collect(sent)
            yield from batches

    def _send(self, size: int, queries: Float32) -> Sent:
        """Begin draws for several queries, (n, O): one call to every shard that is asked."""
        return self._ask(self.encoder.encode_rows(queries).tolist(), size)

    def _ask(self, codes: list[int], size: int) -> Sent:
        asks = [self._plan(code, size) for code in codes]
        by_shard: dict[int, list[Ask]] = {}
        for ask in (ask for draw in asks for ask in draw):
            by_shard.setdefault(ask.shard, []).append(ask)
        calls = {}
        for shard, mine in by_shard.items():
            wanted = np.array([(ask.code, ask.size) for ask in mine], np.int64)
            calls[shard] = self._call(shard, "draw", wanted, np.array([a.greedy for a in mine]))
        return Sent(codes, size, asks, calls)

    def _plan(self, code: int, size: int) -> list[Ask]:
        """Whom a query of this code asks for what.

        One shard flips its own coin. Two follow one coin, which is flipped here, unless every item
        has its own.
        """
        self._counts["draws"] += 1
        if code in self._codes:
            return [Ask(self._owner(code), code, size, self.greedy)]
        self._counts["fallbacks"] += 1
        near = self._codes.nearest(code)
        first, last = self._owner(near[0]), self._owner(near[-1])
        half = (size + 1) // 2
        if first == last or half == size:  # the two nearest of all are the two nearest there
            return [Ask(first, code, size, self.greedy)]
        coin = self.greedy
        if self.params.greedy_per == "batch":
            coin = float(self._rng.random() < self.greedy)
        return [Ask(first, near[0], half, coin), Ask(last, near[1], size - half, coin)]

    def _owner(self, code: int) -> int:
        return int(owners(np.array([code], np.uint32), self.shards)[0])

    def _collect(self, sent: Sent) -> list[Batch]:
        """Wait for draws; where a room was lost, all of them are made again."""
        rows: dict[int, Any] = {}
        for shard, call in sent.calls.items():
            try:
                rows[shard] = self._rooms.result(call)
            except LostRoom as lost:
                self._revive(shard, lost)
                if len(self) == 0:
                    raise RuntimeError("the memory lost all that it held") from lost
                return self._collect(self._ask(sent.codes, sent.size))
        begin = dict.fromkeys(rows, 0)
        batches = []
        for draw in sent.asks:
            parts, names = [], []
            for ask in draw:
                packed, ids = rows[ask.shard]
                at = np.s_[begin[ask.shard] : begin[ask.shard] + ask.size]
                begin[ask.shard] += ask.size
                parts.append(packed[at])
                names.append(ids[at] * self.shards + ask.shard)
            batches.append(self._batch(parts, names))
        return batches

    def _batch(self, parts: list[Float32], names: list[Int64]) -> Batch:
        packed = np.array(parts[0]) if len(parts) == 1 else np.concatenate(parts)
        at = self._form.layout
        flags = np.stack([packed[:, at.terminated] != 0, packed[:, at.truncated] != 0])
        return self._form.wrap(packed, flags, np.concatenate(names))

    def update(self, ids: ArrayLike, td_errors: ArrayLike) -> None:
        """Nothing: LSER does not use TD errors."""

    def stop_exploring(self) -> None:
        """Make every further draw reward-driven: greedy becomes 1."""
        self.greedy = 1.0

    def stats(self) -> dict[str, float]:
        """Contents, draws, the balance of the shards, and what was lost."""
        with self._lock:
            shards, count = self._each("stats"), self._counts
            filled = self._codes.filled
        return {
            "size": float(filled.sum()),
            "capacity": float(self.capacity),
            "written": float(sum(shard["written"] for shard in shards)),
            "dropped": float(sum(shard["dropped"] for shard in shards)),
            "occupied_codes": float(len(self._codes)),
            "shards": float(self.shards),
            "busiest_shard": float(filled.max() / max(filled.mean(), 1e-9)),
            "greedy": self.greedy,
            "draws": float(count["draws"]),
            "fallbacks": float(count["fallbacks"]),
            "fallback_share": count["fallbacks"] / max(count["draws"], 1),
            "lost": float(count["lost"]),
            "revived": float(count["revived"]),
        }

    def _own_state(self) -> State:
        """What the client knows that the shards do not."""
        encoder, form = self.encoder.state(), self._form
        config: dict[str, object] = {
            "params": asdict(self.params),
            "seed": self.seed,
            "shards": self.shards,
            "store": {
                "storage": "shards",
                "capacity": self.capacity,
                "observation_dim": form.observation_dim,
                "action_dim": form.action_dim,
            },
            "encoder": encoder.config,
            "rng": rng_state(self._rng),
            "greedy": self.greedy,
            "counts": dict(self._counts),
        }
        return State(config, {**encoder.arrays, "sent": self._sent.copy()})

    def state(self) -> State:
        """Everything, the shards included: for memories that this machine has room for."""
        with self._lock:
            self.flush()
            config, arrays = self._own_state()
            shards = self._each("state")
        ids = [np.asarray(own["ids"]) for _, own in shards]
        named = [np.where(i >= 0, i * self.shards + k, -1) for k, i in enumerate(ids)]
        arrays["ids"] = np.concatenate(named)
        for shard, (_, own) in enumerate(shards):
            arrays |= {f"{shard}/{name}": array for name, array in own.items()}
        return State({**config, "own": [settings for settings, _ in shards]}, arrays)

    @classmethod
    def from_state(
        cls, state: State, *, rows_path: str | Path | None = None, rooms: Rooms | None = None
    ) -> Self:
        """Rebuild a memory from `state()`, in `rooms` or in new ones."""
        memory = cls._like(state, rooms)
        settings: Any = state.config["own"]
        for shard in range(memory.shards):
            begin = f"{shard}/"
            arrays = {
                n.removeprefix(begin): a for n, a in state.arrays.items() if n.startswith(begin)
            }
            memory._rooms.result(memory._call(shard, "load", (settings[shard], arrays)))
            memory._codes.replace(shard, *memory._rooms.result(memory._call(shard, "codes")))
        return memory

    @classmethod
    def _like(cls, state: State, rooms: Rooms | None) -> Self:
        """An empty memory with the settings of a state."""
        config, store = state.config, state.part("store").config
        kind: Any = ENCODERS[str(state.part("encoder").config["kind"])]
        sizes: Any = (store["capacity"], store["observation_dim"], store["action_dim"])
        more: dict[str, Any] = {} if rooms is None else {"rooms": rooms}
        memory = cls(
            *sizes,
            shards=check_count("shards", config["shards"]),
            seed=check_count("seed", config["seed"], low=0),
            params=make_params(LocalityParams, None, state.part("params").config),
            encoder=kind.from_state(state.part("encoder")),
            **more,
        )
        memory._rng = rng_from_state(config["rng"])
        memory.greedy = check_fraction("greedy", config["greedy"])
        memory._counts = {
            n: check_count(n, c, low=0) for n, c in state.part("counts").config.items()
        }
        memory._sent = np.array(state.arrays["sent"], np.int64)
        return memory

    def save(self, path: str | Path) -> None:
        """Write one file with everything; `snapshot` writes one per shard, where the shard is."""
        with self._lock:
            save(path, self.KIND, self.state())

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), *self.state())


def _rebuilt(kind: type[ShardedReplay], config: dict[str, object], arrays: Any) -> ShardedReplay:
    return kind.from_state(State(config, arrays))


def _seed_of(seed: int, shard: int) -> int:
    return int(np.random.default_rng((seed, 4, shard)).integers(2**31))

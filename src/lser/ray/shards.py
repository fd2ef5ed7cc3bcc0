"""A memory larger than one machine: LSER over shards, each in a room of a Ray cluster."""

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
from lser.files import State, rng_from_state, rng_state, save
from lser.params import make_params
from lser.ray.codes import Ask
from lser.ray.hall import Hall, Spec
from lser.ray.rooms import Rooms, start_rooms
from lser.ray.snapshots import Snapshots
from lser.replay.index.encoders import SimHash
from lser.replay.memories.locality import ENCODERS
from lser.replay.memories.params import LocalityParams
from lser.replay.store import Store
from lser.types import Batch, Float32, Int64

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
    let a `SimHash` observe some of the traffic first. `salt` changes the mix; `even_salt` finds one
    that spreads some of the traffic evenly. `rooms` are those of `start_rooms`, which may
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
        salt: int = 0,
        rooms: Rooms | None = None,
        snapshots: str | Path | None = None,
        **knobs: Any,
    ) -> None:
        self.params = make_params(LocalityParams, params, knobs)
        self.capacity, self.shards = (
            check_count("capacity", capacity),
            check_count("shards", shards),
        )
        self.seed, self.salt = check_count("seed", seed, low=0), check_count("salt", salt, low=0)
        if capacity < shards:
            raise ValueError(f"capacity={capacity} is less than one transition per shard, {shards}")
        self._form = Store(1, observation_dim, action_dim)  # packs and checks rows, holds none
        self.encoder = self._checked_encoder(encoder)
        self.greedy = float(self.params.greedy)
        self._rng = np.random.default_rng((self.seed, 3))
        self._draws = self._fallbacks = 0
        self._lock = RLock()
        rooms = start_rooms(self.shards) if rooms is None else rooms
        self._hall = Hall(self._spec(), rooms, None if snapshots is None else Path(snapshots))

    def _spec(self) -> Spec:
        share, rest = divmod(self.capacity, self.shards)
        capacities = np.array([share + (shard < rest) for shard in range(self.shards)])
        seeds = [self.seed, *(_seed_of(self.seed, shard) for shard in range(1, self.shards))]
        made = [{"seed": seed, "params": self.params} for seed in seeds]
        sizes = (self._form.observation_dim, self._form.action_dim)
        return Spec(capacities, sizes, made, self.encoder, self.salt)

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

    # Snapshots

    def snapshot(self) -> None:
        """Write every shard, then this client's own numbers, to the folder for snapshots."""
        with self._lock:
            folder = self._hall.snapshots
            if folder is None:
                raise ValueError("snapshots=None: this memory was made without a folder for them")
            self.flush()
            self._hall.each("write", [(str(path),) for path in folder.next_files()])
            folder.keep(self.KIND, self._own_state())

    @classmethod
    def from_snapshots(cls, folder: str | Path, *, rooms: Rooms | None = None) -> Self:
        """The memory as its last `snapshot` left it, for a client that was lost itself."""
        snapshots, state = Snapshots.read(Path(folder), cls.KIND)
        memory = cls._like(state, rooms)
        memory._hall.snapshots = snapshots
        for shard in range(memory.shards):
            memory._hall.read(shard)
        return memory

    def close(self) -> None:
        """Forget the shards in their rooms; rooms that nobody else uses end by themselves."""
        for shard in range(self.shards):
            self._hall.get(shard, "close")

    # The protocol

    def __len__(self) -> int:
        return int(self._hall.codes.filled.sum())

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
        rows = self._form.pack(
            (observation, action, reward, next_observation, terminated, truncated)
        )
        with self._lock:
            return self._hall.extend(rows)

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
        rows = self._form.pack(
            (observation, action, reward, next_observation, terminated, truncated)
        )
        with self._lock:
            self._hall.push(rows)

    def flush(self) -> None:
        """Wait until everything that was pushed is stored."""
        with self._lock:
            for shard in range(self.shards):
                self._hall.wait(shard)

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
        """Begin draws for several queries, (n, O)."""
        return self._ask(self.encoder.encode_rows(queries).tolist(), size)

    def _ask(self, codes: list[int], size: int) -> Sent:
        asks = [self._plan(code, size) for code in codes]
        return Sent(codes, size, asks, self._hall.ask([ask for draw in asks for ask in draw]))

    def _plan(self, code: int, size: int) -> list[Ask]:
        """Whom a query of this code asks for what.

        One shard flips its own coin. Two follow one coin, which is flipped here, unless every item
        has its own.
        """
        hall = self._hall
        self._draws += 1
        if code in hall.codes:
            return [Ask(hall.owner(code), code, size, self.greedy)]
        self._fallbacks += 1
        near = hall.codes.nearest(code)
        first, last = hall.owner(near[0]), hall.owner(near[-1])
        half = (size + 1) // 2
        if first == last or half == size:  # the two nearest of all are the two nearest there
            return [Ask(first, code, size, self.greedy)]
        coin = self.greedy
        if self.params.greedy_per == "batch":
            coin = float(self._rng.random() < self.greedy)
        return [Ask(first, near[0], half, coin), Ask(last, near[1], size - half, coin)]

    def _collect(self, sent: Sent) -> list[Batch]:
        """Wait for draws; where a room was lost, all of them are made again."""
        rows = self._hall.drawn(sent.calls)
        if rows is None:
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
            hall, shards = self._hall, self._hall.each("stats")
        filled = hall.codes.filled
        return {
            "size": float(filled.sum()),
            "capacity": float(self.capacity),
            "written": float(sum(shard["written"] for shard in shards)),
            "dropped": float(sum(shard["dropped"] for shard in shards)),
            "occupied_codes": float(len(hall.codes)),
            "shards": float(self.shards),
            "busiest_shard": float(filled.max() / max(filled.mean(), 1e-9)),
            "greedy": self.greedy,
            "draws": float(self._draws),
            "fallbacks": float(self._fallbacks),
            "fallback_share": self._fallbacks / max(self._draws, 1),
            "lost": float(hall.lost),
            "revived": float(hall.revived),
        }

    def _own_state(self) -> State:
        """What the client knows that the shards do not."""
        encoder, form = self.encoder.state(), self._form
        config: dict[str, object] = {
            "params": asdict(self.params),
            "seed": self.seed,
            "shards": self.shards,
            "salt": self.salt,
            "store": {
                "storage": "shards",
                "capacity": self.capacity,
                "observation_dim": form.observation_dim,
                "action_dim": form.action_dim,
            },
            "encoder": encoder.config,
            "rng": rng_state(self._rng),
            "greedy": self.greedy,
            "counts": [self._draws, self._fallbacks, self._hall.lost, self._hall.revived],
        }
        return State(config, {**encoder.arrays, "sent": self._hall.sent.copy()})

    def state(self) -> State:
        """Everything, the shards included: for memories that this machine has room for."""
        with self._lock:
            self.flush()
            config, arrays = self._own_state()
            shards = self._hall.each("state")
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
            memory._hall.load(shard, State(settings[shard], arrays))
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
            salt=check_count("salt", config["salt"], low=0),
            params=make_params(LocalityParams, None, state.part("params").config),
            encoder=kind.from_state(state.part("encoder")),
            **more,
        )
        memory._rng = rng_from_state(config["rng"])
        memory.greedy = check_fraction("greedy", config["greedy"])
        counts: Any = config["counts"]
        hall = memory._hall
        memory._draws, memory._fallbacks, hall.lost, hall.revived = (
            check_count("counts", count, low=0) for count in counts
        )
        hall.sent[:] = state.arrays["sent"]
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

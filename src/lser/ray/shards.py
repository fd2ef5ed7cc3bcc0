"""A memory larger than one machine: LSER over shards, each in a room of a Ray cluster."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from lser.checks import as_floats, check_count, check_fraction
from lser.files import State, rng_from_state, rng_state, save
from lser.params import make_params
from lser.ray.cutting import check_can_be_cut, seeds, shared_encoder, shares
from lser.ray.draws import Draws, Sent
from lser.ray.hall import Hall, Spec
from lser.ray.rooms import Rooms, start_rooms
from lser.ray.snapshots import Snapshots
from lser.replay.memories.codes import ENCODERS
from lser.replay.memories.params import LocalityParams
from lser.replay.store import Store
from lser.types import Batch, Int64


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
    that spreads some of the traffic evenly. `rooms` are those of `start_rooms`, which may hold
    shards of many memories; without, the memory starts one per shard.
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
        self.capacity = check_count("capacity", capacity)
        self.shards = check_count("shards", shards)
        self.seed, self.salt = check_count("seed", seed, low=0), check_count("salt", salt, low=0)
        if capacity < shards:
            raise ValueError(f"capacity={capacity} is less than one transition per shard, {shards}")
        self._form = Store(1, observation_dim, action_dim)  # packs and checks rows, holds none
        check_can_be_cut(self.params)
        self.encoder = shared_encoder(encoder, self.params, self._form.observation_dim, self.seed)
        self._lock = RLock()
        rooms = start_rooms(self.shards) if rooms is None else rooms
        spec = Spec(
            shares(self.capacity, self.shards),
            (self._form.observation_dim, self._form.action_dim),
            [{"seed": own, "params": self.params} for own in seeds(self.seed, self.shards)],
            self.encoder,
            self.salt,
        )
        self._hall = Hall(spec, rooms, None if snapshots is None else Path(snapshots))
        rng, per_item = np.random.default_rng((self.seed, 3)), self.params.greedy_per == "item"
        self._draws = Draws(self._hall, self._form, float(self.params.greedy), per_item, rng)

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
            codes = self.encoder.encode_rows(asked[None]).tolist()
            return self._draws.finish(self._draws.begin(codes, size))[0]

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
                flying.append(self._draws.begin(self.encoder.encode_rows(asked).tolist(), size))
                ready = self._draws.finish(flying.popleft()) if len(flying) > ahead else []
            yield from ready
        for sent in flying:
            with self._lock:
                ready = self._draws.finish(sent)
            yield from ready

    def update(self, ids: ArrayLike, td_errors: ArrayLike) -> None:
        """Nothing: LSER does not use TD errors."""

    def stop_exploring(self) -> None:
        """Make every further draw reward-driven: greedy becomes 1."""
        self._draws.greedy = 1.0

    def stats(self) -> dict[str, float]:
        """Contents, draws, the balance of the shards, and what was lost."""
        with self._lock:
            hall, shards = self._hall, self._hall.each("stats")
        filled, drawn = hall.codes.filled, self._draws
        return {
            "size": float(filled.sum()),
            "capacity": float(self.capacity),
            "written": float(sum(shard["written"] for shard in shards)),
            "dropped": float(sum(shard["dropped"] for shard in shards)),
            "occupied_codes": float(len(hall.codes)),
            "shards": float(self.shards),
            "busiest_shard": float(filled.max() / max(filled.mean(), 1e-9)),
            "greedy": drawn.greedy,
            "draws": float(drawn.draws),
            "fallbacks": float(drawn.fallbacks),
            "fallback_share": drawn.fallbacks / max(drawn.draws, 1),
            "lost": float(hall.lost),
            "revived": float(hall.revived),
        }

    def _own_state(self) -> State:
        """What the client knows that the shards do not."""
        encoder, form, drawn = self.encoder.state(), self._form, self._draws
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
            "rng": rng_state(drawn.rng),
            "greedy": drawn.greedy,
            "counts": [drawn.draws, drawn.fallbacks, self._hall.lost, self._hall.revived],
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
        counts: Any = config["counts"]
        hall, drawn = memory._hall, memory._draws
        drawn.rng = rng_from_state(config["rng"])
        drawn.greedy = check_fraction("greedy", config["greedy"])
        drawn.draws, drawn.fallbacks, hall.lost, hall.revived = (
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

"""Our memories inside TorchRL: a writer that decides the slot, a sampler that picks, one memory.

The transitions lie in TorchRL's own storage, with whatever fields they have; guide and limits:
docs/guides/torchrl.md.
"""

import json
import math
from multiprocessing.context import get_spawning_popen
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from lser.adapters.recipe import Recipe, Rule
from lser.checks import check_count
from lser.replay import Memory, State, load_replay
from lser.types import Float32

try:
    from tensordict import TensorDictBase, is_tensor_collection
    from torchrl.data.replay_buffers.samplers import PrioritizedSampler, Sampler
    from torchrl.data.replay_buffers.storages import Storage
    from torchrl.data.replay_buffers.writers import Writer
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "lser.adapters.torchrl needs TorchRL: pip install torchrl", name=error.name
    ) from error

__all__ = ["Keys", "MemorySampler", "MemoryWriter", "PrioritySampler", "memory_pair"]

Key = str | tuple[str, ...]
_FILE, _ASKED = "memory.lser", "sampler.json"
_UNKNOWN = -math.inf  # the TD error of a transition that has none yet


class Keys(NamedTuple):
    """Where a transition has what a memory looks at; by default TorchRL's own names."""

    observation: Key = "observation"
    reward: Key = ("next", "reward")
    done: Key = ("next", "done")
    stream: Key = ("collector", "traj_ids")


class MemoryWriter(Writer):
    """Puts each transition into the slot that the memory gives it, or nowhere.

    `add` returns None and `extend` -1 for a transition that the memory refused. Rows of one call
    are taken in order of time; where a memory follows sessions, a row continues that of its
    `stream` if the data has that key, otherwise all rows are one stream.
    """

    def __init__(self, rule: Rule, keys: Keys) -> None:
        super().__init__()
        self._rule, self._keys = rule, keys
        self._write_count = 0

    @property
    def memory(self) -> Memory:
        """The memory, which holds no rows."""
        return self._rule.memory

    def register_storage(self, storage: Storage) -> None:
        """Take a storage of one dimension and the memory's capacity."""
        if storage.ndim > 1:
            raise ValueError(f"storage.ndim = {storage.ndim}: the memory needs a flat storage")
        if storage.max_size != self._rule.capacity:
            raise ValueError(
                f"the storage has max_size {storage.max_size}, the memory capacity "
                f"{self._rule.capacity}: they must be the same"
            )
        for buffer in storage._attached_entities_iter():
            _refuse_prefetch(buffer)
        super().register_storage(storage)

    def add(self, data: TensorDictBase) -> int | None:
        """Store one transition; returns its slot, or None if it was refused."""
        if not is_tensor_collection(data) or data.ndim:
            raise ValueError(f"add expects one transition as a tensordict, got {_what(data)}")
        slot = int(self.extend(data.unsqueeze(0))[0])
        return None if slot < 0 else slot

    def extend(self, data: TensorDictBase) -> torch.Tensor:
        """Store N transitions in order; returns their slots, -1 where none was kept."""
        if not is_tensor_collection(data) or data.ndim != 1:
            raise ValueError(
                f"extend expects a tensordict of transitions, (N,), got {_what(data)}; flatten "
                "others: data.reshape(-1)"
            )
        rows = data.shape[0]
        seen, reward, done = (self._column(data, name) for name in Keys._fields[:3])
        stream = data.get(self._keys.stream, None)
        streams = (
            np.zeros(rows, np.int64) if stream is None else _array(stream).reshape(rows, -1)[:, 0]
        )
        slots = torch.from_numpy(self._rule.place(seen, reward[:, 0], done[:, 0], streams))
        kept = torch.nonzero(slots >= 0).squeeze(1)
        self._write_count += len(kept)
        if len(kept):
            self._storage.set(slots[kept], data if len(kept) == rows else data[kept])
            for buffer in self._storage._attached_entities_iter():
                buffer.mark_update(slots[kept])
        if self.memory.stale:
            self.memory.refile(self._column(self._storage[: len(self._storage)], "observation"))
        return slots

    def _column(self, data: TensorDictBase, name: str) -> NDArray[Any]:
        """A field of the data as rows, (N, w); ValueError where there is none."""
        key = getattr(self._keys, name)
        value = data.get(key, None)
        if not isinstance(value, torch.Tensor):
            found = "a nested tensordict" if value is not None else "not there"
            raise ValueError(
                f"the data's {key!r} is {found}; keys=Keys({name}=...) of memory_pair names the "
                f"tensor that holds each transition's {name}"
            )
        return _array(value).reshape(data.shape[0], -1)

    def _empty(self, empty_write_count: bool = True) -> None:
        self._rule.clear()
        if empty_write_count:
            self._write_count = 0

    def state_dict(self) -> dict[str, Any]:
        """The number of writes; the sampler saves the memory."""
        return {"write_count": self._write_count}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue the count of writes."""
        self._write_count = int(state_dict["write_count"])

    def dumps(self, path: str | Path) -> None:
        """Write `state_dict` into the folder `path`."""
        Path(path).mkdir(parents=True, exist_ok=True)
        (Path(path) / "writer.json").write_text(json.dumps(self.state_dict()))

    def loads(self, path: str | Path) -> None:
        """Read what `dumps` wrote."""
        self.load_state_dict(json.loads((Path(path) / "writer.json").read_text()))

    def __getstate__(self) -> dict[str, Any]:
        if get_spawning_popen() is not None:
            raise RuntimeError("the memory cannot be shared between processes: write from one")
        state: dict[str, Any] = super().__getstate__()
        return state


class MemorySampler(Sampler):
    """Picks the slots that the memory replays for `query`.

    `query` is the current observation, (O,), or those of several users, (E, O), of which each
    draw takes the next; set it before every `sample`. It stays until it is set again. Memories
    that do not look at whom they serve need none.
    """

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._query: Float32 | None = None  # (E, O)
        self._draws = 0

    @property
    def memory(self) -> Memory:
        """The memory, which holds no rows."""
        return self._rule.memory

    @property
    def query(self) -> Float32 | None:
        """The observations that the next draws ask about, (E, O)."""
        return self._query

    @query.setter
    def query(self, value: ArrayLike | torch.Tensor | None) -> None:
        self._query = None if value is None else np.atleast_2d(_array(value)).astype(np.float32)

    def sample(self, storage: Storage, batch_size: int) -> tuple[torch.Tensor, dict[str, Any]]:
        """The slots to replay, (b,), and what TorchRL's samplers tell about them."""
        if len(storage) != len(self._rule):
            raise ValueError(
                f"the storage holds {len(storage)} transitions, the sampler's memory "
                f"{len(self._rule)}: the buffer needs the writer that memory_pair gave with it"
            )
        if self._query is None and "query" in self._rule.recipe.needs and len(storage):
            raise ValueError(
                f"query=None: {self._rule.recipe.name!r} replays what is like the current "
                "observation; set sampler.query to it before sampling"
            )
        for buffer in storage._attached_entities_iter():
            _refuse_prefetch(buffer)
        query = None if self._query is None else self._query[self._draws % len(self._query)]
        slots, weights = self._rule.pick(batch_size, query)
        self._draws += 1
        return torch.from_numpy(slots), self._info(weights)

    def _info(self, weights: Float32) -> dict[str, Any]:
        return {}

    def update_priority(
        self,
        index: int | torch.Tensor,
        priority: float | torch.Tensor,
        *,
        storage: Storage | None = None,
    ) -> None:
        """Report TD errors of the transitions at `index`; memories without use for them skip."""
        slots = _array(index).reshape(-1)
        errors = np.broadcast_to(_array(priority).reshape(-1), slots.shape)
        known = errors != _UNKNOWN
        self.memory.report(slots[known], errors[known])

    def _empty(self) -> None:
        self._rule.clear()
        self._draws = 0

    def state_dict(self) -> dict[str, Any]:
        """The memory and the query: strings and tensors, which `torch.save` files."""
        state = self.memory.state()
        arrays = {name: torch.from_numpy(np.array(a)) for name, a in state.arrays.items()}
        return {"config": json.dumps(state.config), "arrays": arrays, "asked": self._asked()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from `state_dict`, with the memory shared as before."""
        arrays = {name: tensor.numpy() for name, tensor in state_dict["arrays"].items()}
        self._rule.load(State(json.loads(state_dict["config"]), arrays))
        self._ask(state_dict["asked"])

    def dumps(self, path: str | Path) -> None:
        """Write the memory and the query into the folder `path`."""
        Path(path).mkdir(parents=True, exist_ok=True)
        self.memory.save(Path(path) / _FILE)
        (Path(path) / _ASKED).write_text(self._asked())

    def loads(self, path: str | Path) -> None:
        """Read what `dumps` wrote."""
        self._rule.replace(load_replay(Path(path) / _FILE, kind=type(self.memory)))
        self._ask((Path(path) / _ASKED).read_text())

    def _asked(self) -> str:
        query = None if self._query is None else self._query.tolist()
        return json.dumps({"draws": self._draws, "query": query})

    def _ask(self, asked: str) -> None:
        saved = json.loads(asked)
        self.query, self._draws = saved["query"], check_count("draws", saved["draws"], low=0)


class PrioritySampler(MemorySampler, PrioritizedSampler):
    """A `MemorySampler` that TorchRL reports TD errors to, for memories that use them.

    Being a `PrioritizedSampler` is how `update_tensordict_priority` knows; none of that class's
    trees are used, which come from an extension that not every build of TorchRL can load.
    """

    reduction = "max"

    def _info(self, weights: Float32) -> dict[str, Any]:
        return {"priority_weight": torch.from_numpy(weights)}

    @property
    def default_priority(self) -> float:
        """Stands for a TD error that is not known: the memory has its own idea of newcomers."""
        return _UNKNOWN

    def add(self, index: int) -> None:
        """Nothing: the writer has told the memory."""

    def extend(self, index: torch.Tensor) -> None:
        """Nothing: the writer has told the memory."""

    def mark_update(self, index: int | torch.Tensor, *, storage: Storage | None = None) -> None:
        """Nothing: the writer has told the memory."""

    def __repr__(self) -> str:
        return "PrioritySampler()"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_rng": None}


def memory_pair(
    memory: str | type[Memory],
    capacity: int,
    observation_dim: int,
    *,
    seed: int = 0,
    params: Any = None,
    keys: Keys | None = None,
    **knobs: Any,
) -> tuple[MemorySampler, MemoryWriter]:
    """The sampler and the writer of one memory, for a storage of `capacity` transitions.

    `memory` is a name of `lser memories` ("lser", "per", "reward-top", ...), ``module:Class``, or
    a class; `params` and `knobs` are its constructor's. A memory that needs rows of its own is
    refused. `keys` names the fields of the data.
    """
    rule = Rule(Recipe(memory, seed, params, knobs), capacity, observation_dim, "TorchRL")
    sampler = PrioritySampler if rule.recipe.hears else MemorySampler
    return sampler(rule), MemoryWriter(rule, Keys() if keys is None else keys)


def _array(value: ArrayLike | torch.Tensor) -> NDArray[Any]:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().numpy()
    return np.asarray(value)


def _what(data: object) -> str:
    shape = f" of shape {tuple(data.shape)}" if isinstance(data, TensorDictBase) else ""
    return f"{type(data).__name__}{shape}"


def _refuse_prefetch(buffer: object) -> None:
    if getattr(buffer, "_prefetch", False):
        raise ValueError(
            f"prefetch={getattr(buffer, '_prefetch_cap', True)}: batches drawn ahead would answer "
            "an old query; use prefetch=None"
        )

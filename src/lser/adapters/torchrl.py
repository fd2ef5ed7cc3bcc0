"""Our memories inside TorchRL: a writer that decides the slot and a sampler that picks, one index.

The transitions lie in TorchRL's own storage, with whatever fields they have; guide and limits:
docs/guides/torchrl.md.
"""

import json
from multiprocessing.context import get_spawning_popen
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from lser.replay.base import State, check_choice
from lser.replay.persistence import load, save
from lser.replay.slots import LocalitySlots, PrioritizedSlots, Slots
from lser.types import Float32

try:
    from tensordict import TensorDictBase, is_tensor_collection
    from torchrl.data.replay_buffers.samplers import PrioritizedSampler, Sampler
    from torchrl.data.replay_buffers.storages import Storage
    from torchrl.data.replay_buffers.writers import Writer
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "lser.adapters.torchrl needs TorchRL: pip install 'lser[torchrl]'", name=error.name
    ) from error

__all__ = [
    "LocalitySlots",
    "MemorySampler",
    "MemoryWriter",
    "PrioritizedSlots",
    "PrioritySampler",
    "memory_pair",
]

Key = str | tuple[str, ...]
_FILE = "index.lser"


class MemoryWriter(Writer):
    """Puts each transition into the slot that the index gives it, or nowhere.

    `add` returns None and `extend` -1 for a transition that the memory refused. Rows of one call
    are taken in order of time; with ``order="return"`` a row continues the session of its
    `stream` where the data has that key, otherwise all rows are one stream.
    """

    def __init__(
        self,
        index: Slots,
        *,
        observation: Key = "observation",
        reward: Key = ("next", "reward"),
        done: Key = ("next", "done"),
        stream: Key = ("collector", "traj_ids"),
    ) -> None:
        super().__init__()
        self.index = index
        self._keys = (observation, reward, done)
        self._stream = stream
        self._write_count = 0

    def register_storage(self, storage: Storage) -> None:
        """Take a storage of one dimension and the index's capacity."""
        if storage.ndim > 1:
            raise ValueError(f"storage.ndim = {storage.ndim}: the memory needs a flat storage")
        if storage.max_size != self.index.capacity:
            raise ValueError(
                f"the storage has max_size {storage.max_size}, the index capacity "
                f"{self.index.capacity}: they must be the same"
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
        seen, reward, done = (_array(data.get(key)).reshape(rows, -1) for key in self._keys)
        stream = data.get(self._stream, None)
        streams = (
            np.zeros(rows, np.int64) if stream is None else _array(stream).reshape(rows, -1)[:, 0]
        )
        slots = torch.from_numpy(self.index.place(seen, reward[:, 0], done[:, 0], streams))
        kept = torch.nonzero(slots >= 0).squeeze(1)
        self._write_count += len(kept)
        if len(kept):
            self._storage.set(slots[kept], data if len(kept) == rows else data[kept])
            for buffer in self._storage._attached_entities_iter():
                buffer.mark_update(slots[kept])
        if self.index.stale:
            held = self._storage[: len(self._storage)].get(self._keys[0])
            self.index.refile(_array(held).reshape(len(held), -1))
        return slots

    def _empty(self, empty_write_count: bool = True) -> None:
        self.index.clear()
        if empty_write_count:
            self._write_count = 0

    def state_dict(self) -> dict[str, Any]:
        """The number of writes; the sampler saves the index."""
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
            raise RuntimeError("the index cannot be shared between processes: write from one")
        state: dict[str, Any] = super().__getstate__()
        return state


class MemorySampler(Sampler):
    """Picks the slots that the index replays for `query`.

    `query` is the current observation, (O,), or those of several users, (E, O), of which each
    draw takes the next; set it before every `sample`. It stays until it is set again.
    """

    def __init__(self, index: Slots) -> None:
        self.index = index
        self._query: Float32 | None = None  # (E, O)
        self._draws = 0

    @property
    def query(self) -> Float32 | None:
        """The observations that the next draws ask about, (E, O)."""
        return self._query

    @query.setter
    def query(self, value: ArrayLike | torch.Tensor | None) -> None:
        self._query = None if value is None else np.atleast_2d(_array(value)).astype(np.float32)

    def sample(self, storage: Storage, batch_size: int) -> tuple[torch.Tensor, dict[str, Any]]:
        """The slots to replay, (b,), and what TorchRL's samplers tell about them."""
        if len(storage) != len(self.index):
            raise ValueError(
                f"the storage holds {len(storage)} transitions, the sampler's index "
                f"{len(self.index)}: the buffer needs a MemoryWriter with the same index"
            )
        for buffer in storage._attached_entities_iter():
            _refuse_prefetch(buffer)
        query = None if self._query is None else self._query[self._draws % len(self._query)]
        slots, weights = self.index.pick(batch_size, query)
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
        self.index.update(slots, np.broadcast_to(_array(priority).reshape(-1), slots.shape))

    def _empty(self) -> None:
        self.index.clear()
        self._draws = 0

    def state_dict(self) -> dict[str, Any]:
        """The index and the query: strings and tensors, which `torch.save` files."""
        state = self._state()
        arrays = {name: torch.from_numpy(np.array(a)) for name, a in state.arrays.items()}
        return {"config": json.dumps(state.config), "arrays": arrays}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from `state_dict`, with the index shared as before."""
        arrays = {name: tensor.numpy() for name, tensor in state_dict["arrays"].items()}
        self._restore(State(json.loads(state_dict["config"]), arrays))

    def dumps(self, path: str | Path) -> None:
        """Write the index and the query into the folder `path`."""
        Path(path).mkdir(parents=True, exist_ok=True)
        save(Path(path) / _FILE, self.index.KIND, self._state())

    def loads(self, path: str | Path) -> None:
        """Read what `dumps` wrote."""
        kind, state = load(Path(path) / _FILE)
        check_choice("the saved index", kind, (self.index.KIND,))
        self._restore(state)

    def _state(self) -> State:
        state = self.index.state()
        arrays = dict(state.arrays)
        if self._query is not None:
            arrays["sampler_query"] = self._query
        return State({**state.config, "sampler_draws": self._draws}, arrays)

    def _restore(self, state: State) -> None:
        arrays = dict(state.arrays)
        self.query = arrays.pop("sampler_query", None)
        self._draws = int(str(state.config["sampler_draws"]))
        self.index.load(State(state.config, arrays))


class PrioritySampler(MemorySampler, PrioritizedSampler):
    """A `MemorySampler` that TorchRL reports TD errors to, for memories that use them.

    Being a `PrioritizedSampler` is how `update_tensordict_priority` knows; none of that class's
    trees are used, which come from an extension that not every build of TorchRL can load.
    """

    index: PrioritizedSlots
    reduction = "max"

    def _info(self, weights: Float32) -> dict[str, Any]:
        return {"priority_weight": torch.from_numpy(weights)}

    @property
    def default_priority(self) -> float:
        """What a transition without a TD error counts with: the largest seen."""
        return self.index.largest

    def add(self, index: int) -> None:
        """Nothing: the writer has told the index."""

    def extend(self, index: torch.Tensor) -> None:
        """Nothing: the writer has told the index."""

    def mark_update(self, index: int | torch.Tensor, *, storage: Storage | None = None) -> None:
        """Nothing: the writer has told the index."""

    def __repr__(self) -> str:
        return "PrioritySampler()"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_rng": None}


def memory_pair(index: Slots, **keys: Key) -> tuple[MemorySampler, MemoryWriter]:
    """The sampler and the writer over one index; `keys` name fields as in `MemoryWriter`."""
    sampler = PrioritySampler if isinstance(index, PrioritizedSlots) else MemorySampler
    return sampler(index), MemoryWriter(index, **keys)


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

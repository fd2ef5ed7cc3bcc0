"""Our memories as replay buffers of Tianshou, for one environment or many.

The transitions lie in Tianshou's own arrays, with whatever fields they have; guide and limits:
docs/guides/tianshou.md.
"""

from collections.abc import Callable
from typing import Any, NoReturn, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from lser.adapters.recipe import Recipe, Rule
from lser.checks import check_count
from lser.replay import Memory
from lser.types import Float32, Int64

try:
    from tianshou.data import (
        Batch,
        Collector,
        ReplayBuffer,
        ReplayBufferManager,
    )
    from tianshou.data.batch import alloc_by_keys_diff, create_value
    from tianshou.data.types import RolloutBatchProtocol
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "lser.adapters.tianshou needs Tianshou: pip install tianshou", name=error.name
    ) from error

Added = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]
_LIBRARY = "Tianshou"
_FIELDS = ("obs", "act", "rew", "terminated", "truncated", "obs_next")


class MemoryReplayBuffer(ReplayBufferManager):
    """A memory of `lser` where Tianshou expects a (vector) replay buffer.

    `memory` is a name of `lser memories` ("lser", "per", "reward-top", ...), ``module:Class``, or
    a class; `params` and `knobs` are its constructor's. A memory that needs rows of its own is
    refused. One memory of `total_size` transitions is shared by `buffer_num` environments.

    The query of a draw is the latest observation added, another environment's at each draw; at an
    episode's end that is the departed user's last one, unless `QueryCollector` or `set_query`
    gives the newcomer's first.

    Episodes do not lie in consecutive slots: n-step returns and frame stacking are refused.
    """

    def __init__(
        self,
        memory: str | type[Memory],
        total_size: int,
        buffer_num: int = 1,
        *,
        seed: int = 0,
        params: Any = None,
        **knobs: Any,
    ) -> None:
        size = check_count("total_size", total_size)
        environments = check_count("buffer_num", buffer_num)
        self._recipe = Recipe(memory, seed, params, knobs)
        self._recipe.make_rule(2, 1, _LIBRARY)  # refuses now, not at the first transition
        super().__init__([ReplayBuffer(size)])
        self.buffer_num = environments
        self._rule: Rule | None = None  # until an observation tells its width
        self._forget()

    def _forget(self) -> None:
        self._query: Float32 | None = None  # (environments, O)
        self._draws = 0
        self._weights: Float32 | None = None  # of the latest draw
        self._writes = 0
        self._write_of: Int64 = np.full(self.maxsize, -1, np.int64)  # by slot
        self._running = _Episodes(self.buffer_num)
        self._finished: list[list[tuple[int, int]]] = [[] for _ in range(self.buffer_num)]

    @property
    def memory(self) -> Memory:
        """The memory, which holds no rows; it exists from the first transition on."""
        if self._rule is None:
            raise ValueError("the buffer is empty: no observation has told the memory its width")
        return self._rule.memory

    def __len__(self) -> int:
        return 0 if self._rule is None else len(self._rule)

    def reset(self, keep_statistics: bool = False) -> None:
        """Forget all transitions, and unless told to keep them the running episodes' sums."""
        running = self._running
        super().reset(keep_statistics)
        self._forget()
        if keep_statistics:
            self._running = running
        if self._rule is not None:
            self._rule.clear()

    def add(
        self, batch: RolloutBatchProtocol, buffer_ids: NDArray[Any] | list[int] | None = None
    ) -> Added:
        """Store one transition per environment in `buffer_ids`.

        Returns slots (-1 where one was refused), returns and lengths of the episodes that ended
        (0 for others), and what `get_buffer_indices` takes as their start.
        """
        users = np.arange(self.buffer_num) if buffer_ids is None else np.asarray(buffer_ids)
        rows = Batch({key: batch[key] for key in self._reserved_keys if key in batch.get_keys()})
        missing = [key for key in _FIELDS if key not in rows.get_keys()]
        if missing or len(rows) != len(users):
            raise ValueError(
                f"the batch must have {', '.join(_FIELDS)} for {len(users)} environments "
                f"(buffer_num={self.buffer_num}); it has {len(rows)} rows and lacks {missing}"
            )
        rows.done = np.logical_or(rows.terminated, rows.truncated)
        seen = _flat(rows.obs)
        if self._rule is None:
            self._rule = Rule(self._recipe, self.maxsize, seen.shape[1], _LIBRARY)
        slots = self._rule.place(seen, rows.rew, rows.done, users)
        self._write(slots, rows)
        self._query = _flat(rows.obs_next).astype(np.float32)
        lengths, returns = self._follow(users, slots, rows)
        return slots, returns, lengths, users

    def _write(self, slots: Int64, rows: Batch) -> None:
        kept = slots >= 0
        at, rows = slots[kept], rows if kept.all() else rows[kept]
        if len(at):
            try:
                self._meta[at] = rows
            except ValueError:  # new fields; Tianshou's own buffers go about it this way
                rows.rew, rows.done = rows.rew.astype(float), rows.done.astype(bool)
                rows.terminated = rows.terminated.astype(bool)
                rows.truncated = rows.truncated.astype(bool)
                if len(self._meta.get_keys()) == 0:
                    self._meta = cast("Any", create_value(rows, self.maxsize, stack=False))
                else:
                    alloc_by_keys_diff(self._meta, rows, self.maxsize, stack=False)
                self._set_batch_for_children()
                self._meta[at] = rows
        self._lengths[0] = len(self)
        if self.memory.stale:
            self.memory.refile(_flat(self._meta.obs[: len(self)]))

    def _follow(self, users: Int64, slots: Int64, rows: Batch) -> tuple[Int64, NDArray[Any]]:
        """Lengths and returns of the episodes that end with these rows, 0 for the others."""
        lengths = np.zeros(len(users), np.int64)
        returns = np.zeros(len(users))
        for k, user in enumerate(users.tolist()):
            if slots[k] >= 0:
                self._write_of[slots[k]] = self._writes
            episode = self._running.slots[user]
            episode.append((int(slots[k]), self._writes))
            self._running.returns[user] += rows.rew[k]
            self._writes += 1
            if rows.done[k]:
                lengths[k], returns[k] = len(episode), self._running.returns[user]
                self._finished[user] = episode
                self._running.slots[user], self._running.returns[user] = [], 0.0
        return lengths, returns

    def get_buffer_indices(self, start: int, stop: int) -> Int64:
        """The slots of the last finished episode whose start `add` gave as `start`.

        One per step, so that lengths are right; -1 for a transition that is no longer held.
        """
        steps = self._finished[check_count("start", start, low=0, high=self.buffer_num - 1)]
        slots, writes = np.array(steps, np.int64).reshape(-1, 2).T
        return np.where((slots >= 0) & (self._write_of[slots] == writes), slots, -1)

    def set_array_at_key(
        self,
        seq: NDArray[Any],
        key: str,
        index: Any = None,
        default_value: float | None = None,
    ) -> None:
        """Set a field; refused where a transition is no longer held."""
        if isinstance(index, np.ndarray) and index.dtype != np.bool_ and np.any(index < 0):
            raise ValueError(f"{key!r} cannot be set: parts of the episode are no longer held")
        super().set_array_at_key(seq, key, index, default_value)

    def set_query(self, obs: Any) -> None:
        """Make `obs`, one observation or one per environment, what the next draws ask about."""
        if isinstance(obs, np.ndarray) and obs.ndim == 1 and obs.dtype != np.object_:
            obs = obs[None]
        self._query = _flat(obs).astype(np.float32)

    def sample_indices(self, batch_size: int | None) -> Int64:
        """The slots that the query replays; all in order for 0, all shuffled for None."""
        if batch_size is None:
            return self._random_state.permutation(len(self))
        if batch_size <= 0:
            return np.arange(len(self) if batch_size == 0 else 0)
        query = None if self._query is None else self._query[self._draws % len(self._query)]
        if self._rule is None:
            raise ValueError(f"cannot sample batch_size={batch_size}: the buffer is empty")
        slots, self._weights = self._rule.pick(batch_size, query)
        self._draws += 1
        return slots

    def sample(self, batch_size: int | None) -> tuple[RolloutBatchProtocol, Int64]:
        """A batch and its slots, with importance weights where the memory hears of TD errors."""
        self._weights = None
        batch, slots = super().sample(batch_size)
        if self._weights is not None and self._recipe.hears:
            batch.weight = self._weights
        return batch, slots

    @property
    def update_weight(self) -> Callable[[NDArray[Any], NDArray[Any] | torch.Tensor], None]:
        """Report TD errors by slots; there only for memories that hear of them.

        Tianshou's algorithms look for it after every update.
        """
        if not self._recipe.hears:
            raise AttributeError("update_weight: TD errors mean nothing to this memory")
        return self._report

    def _report(self, index: NDArray[Any], new_weight: NDArray[Any] | torch.Tensor) -> None:
        errors = new_weight.detach().cpu().numpy() if torch.is_tensor(new_weight) else new_weight
        self.memory.report(index, np.asarray(errors).reshape(-1))

    def unfinished_index(self) -> Int64:
        """None: it marks where a run of consecutive slots breaks off, and there are no runs."""
        return np.empty(0, np.int64)

    def next(self, index: ArrayLike) -> NoReturn:
        """Refused: the next step of an episode does not lie in the next slot."""
        raise ValueError(
            "n-step returns need episodes in consecutive slots, which this memory does not keep: "
            "use n_step_return_horizon=1"
        )

    def prev(self, index: ArrayLike) -> NoReturn:
        """Refused: the step before does not lie in the slot before."""
        raise ValueError(
            "frame stacking needs episodes in consecutive slots, which this memory does not keep: "
            "stack frames in the environment"
        )

    def dropnull(self) -> NoReturn:
        """Refused: slots cannot be taken out."""
        raise ValueError("transitions cannot be taken out of this memory")


class QueryCollector(Collector[Any]):
    """A collector that makes the query exact: what the policy acts on next, in every environment.

    The difference to a plain collector is where an episode has just ended.
    """

    def _collect(self, *args: Any, **kwargs: Any) -> Any:
        stats = super()._collect(*args, **kwargs)
        current = self._pre_collect_obs_RO
        if isinstance(self.buffer, MemoryReplayBuffer) and current is not None:
            self.buffer.set_query(current)
        return stats


class _Episodes:
    """Running episodes: their returns so far, and slot and number of each write."""

    def __init__(self, environments: int) -> None:
        self.returns = [0.0] * environments
        self.slots: list[list[tuple[int, int]]] = [[] for _ in range(environments)]


def _flat(obs: Any) -> NDArray[Any]:
    """Observations as rows, the arrays of a Batch side by side in order of their keys."""
    if isinstance(obs, Batch):
        return np.concatenate([_flat(obs[key]) for key in sorted(obs.get_keys())], axis=1)
    if isinstance(obs, np.ndarray) and obs.dtype == np.object_:  # dicts, as a vector env gives
        return _flat(Batch(list(obs)))
    array = np.asarray(obs)
    return array.reshape(len(array), -1)

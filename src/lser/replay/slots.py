"""Memories whose transitions lie elsewhere: which slot a newcomer takes, which slots to replay.

For libraries that keep transitions in a storage of their own, whatever fields those have. Row i of
that storage is slot i here; only order keys and the index are kept.
"""

from copy import deepcopy
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from lser.replay.base import (
    State,
    as_flags,
    as_floats,
    check_count,
    check_sample,
)
from lser.replay.draw import ANY_CODE
from lser.replay.locality import LocalityReplay
from lser.replay.prioritized import PrioritizedReplay
from lser.types import Float32, Int64


class Slots(Protocol):
    """Decides over the rows of a storage that somebody else keeps."""

    KIND: str
    capacity: int
    stale: bool  # codes have changed: `refile` before the next call

    def __len__(self) -> int: ...

    def place(
        self,
        observation: ArrayLike,
        reward: ArrayLike,
        ended: ArrayLike,
        streams: ArrayLike | None = None,
    ) -> Int64:
        """The slots N newcomers take, in order; -1 where one is refused or replaced by a later."""
        ...

    def pick(self, batch_size: int, query: ArrayLike | None = None) -> tuple[Int64, Float32]:
        """The slots to replay and their importance weights."""
        ...

    def update(self, slots: ArrayLike, td_errors: ArrayLike) -> None:
        """Report TD errors of the transitions in `slots`; negative slots are skipped."""
        ...

    def refile(self, observations: ArrayLike) -> None:
        """Take the observations of all slots in use, in order, after their codes changed."""
        ...

    def clear(self) -> None:
        """Forget everything and start as new."""
        ...

    def state(self) -> State:
        """Everything needed to continue exactly where it stands, the rng included."""
        ...

    def load(self, state: State) -> None:
        """Continue from `state()` of one made alike."""
        ...


class LocalitySlots:
    """`LocalityReplay` without its rows: the same slots and the same draws for the same seed.

    `knobs` are those of `LocalityReplay`, without `storage` and `path`.
    """

    KIND = "locality-slots"

    def __init__(self, capacity: int, observation_dim: int, **knobs: Any) -> None:
        for name in ("storage", "path"):
            if name in knobs:
                raise ValueError(f"{name}={knobs[name]!r}: the rows lie in another storage")
        self.observation_dim = check_count("observation_dim", observation_dim)
        self.capacity = check_count("capacity", capacity)
        self._knobs = knobs
        self.clear()

    def __len__(self) -> int:
        return len(self._memory)

    def place(
        self,
        observation: ArrayLike,
        reward: ArrayLike,
        ended: ArrayLike,
        streams: ArrayLike | None = None,
    ) -> Int64:
        """The slots N newcomers take, in order; -1 where one is refused or replaced by a later."""
        memory = self._memory
        seen = as_floats("observation", observation, (None, self.observation_dim))
        at, returns = memory._store.layout, memory._returns
        rows = np.zeros((len(seen), at.width), np.float32)
        rows[:, at.reward] = as_floats("reward", reward, (len(seen),))
        over = as_flags("ended", ended, len(seen))
        if returns is not None:
            labels = returns.labels(streams, len(rows))
        with memory._lock:
            ids, slots = memory._buckets.insert(rows, memory.encoder.encode_rows(seen))
            if returns is not None:
                late = returns.follow(labels, ids, slots, rows[:, at.reward], over)
                memory._buckets.rekey(*late)
            self.stale = memory.encoder.observe(seen)
        return last_of_each(slots)

    def pick(self, batch_size: int, query: ArrayLike | None = None) -> tuple[Int64, Float32]:
        """The slots that a query replays, all of weight one."""
        memory = self._memory
        code, uniform = ANY_CODE, memory._buckets.rules.uniform
        if not uniform and query is None:
            raise ValueError("query=None: this memory needs the current observation")
        with memory._lock:
            size = check_sample(batch_size, len(memory))
            if query is not None and not uniform and not memory.encoder.blind:
                observation = as_floats("query", query, (self.observation_dim,))
                code = int(memory.encoder.encode_rows(observation[None])[0])
            slots = memory._buckets.pick(code, size, memory.greedy)
        return slots, np.ones(size, np.float32)

    def update(self, slots: ArrayLike, td_errors: ArrayLike) -> None:
        """Nothing: draws do not depend on TD errors."""

    def refile(self, observations: ArrayLike) -> None:
        """Give the slots in use the codes of `observations`, theirs in order."""
        held = as_floats("observations", observations, (len(self), self.observation_dim))
        with self._memory._lock:
            codes = self._memory.encoder.encode_rows(held)
            self._memory._buckets = self._memory._buckets.refiled(codes)
            self.stale = False

    def stop_exploring(self) -> None:
        """Make every further draw reward-driven."""
        self._memory.stop_exploring()

    def stats(self) -> dict[str, float]:
        """Contents and draws so far, as `LocalityReplay.stats`."""
        return self._memory.stats()

    def clear(self) -> None:
        """Forget everything and start as new."""
        knobs = deepcopy(self._knobs)
        if knobs.get("encoder") is None:
            knobs["encoder"] = LocalityReplay(1, self.observation_dim, 1, **knobs).encoder
        self._memory = LocalityReplay(self.capacity, 1, 1, **knobs)
        self.stale = False

    def state(self) -> State:
        """Everything needed to continue exactly where it stands, the rng included."""
        return self._memory.state()

    def load(self, state: State) -> None:
        """Continue from `state()` of one made alike."""
        memory = LocalityReplay.from_state(state)
        _check_capacity(memory.capacity, self.capacity)
        self._memory, self.stale = memory, False

    def __getstate__(self) -> dict[str, Any]:
        state = {key: value for key, value in self.__dict__.items() if key != "_memory"}
        return state | {"state": self.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._memory = LocalityReplay.from_state(self.__dict__.pop("state"))


class PrioritizedSlots:
    """`PrioritizedReplay` without its rows; `knobs` are its own. Slots are used as a ring."""

    KIND = "per-slots"
    stale = False

    def __init__(self, capacity: int, **knobs: Any) -> None:
        self.capacity = check_count("capacity", capacity)
        self._knobs = knobs
        self.clear()

    def __len__(self) -> int:
        return len(self._memory)

    @property
    def largest(self) -> float:
        """The largest |TD error| reported so far; newcomers count as if they had it."""
        return self._memory.stats()["largest_priority"] - self._memory.offset

    def place(
        self,
        observation: ArrayLike,
        reward: ArrayLike,
        ended: ArrayLike,
        streams: ArrayLike | None = None,
    ) -> Int64:
        """The slots N newcomers take: those of the oldest; -1 where a later one replaces it."""
        n = len(as_floats("reward", reward, (None,)))
        nothing, never = np.zeros((n, 1), np.float32), np.zeros(n, np.bool_)
        ids = self._memory.extend(nothing, nothing, nothing[:, 0], nothing, never, never)
        self._written += n
        return last_of_each(ids % self.capacity)

    def pick(
        self,
        batch_size: int,
        query: ArrayLike | None = None,
    ) -> tuple[Int64, Float32]:
        """Slots in proportion to their priorities, and importance weights."""
        batch = self._memory.sample(batch_size)
        return batch.ids % self.capacity, batch.weights

    def update(self, slots: ArrayLike, td_errors: ArrayLike) -> None:
        """Report TD errors of the transitions in `slots`; negative slots are skipped."""
        at, errors = np.asarray(slots, np.int64), np.asarray(td_errors)
        held = at >= 0
        newest = self._written - 1  # the id in a slot: the last write that came to it
        self._memory.update(newest - (newest - at[held]) % self.capacity, errors[held])

    def refile(self, observations: ArrayLike) -> None:
        """Nothing: there are no codes."""

    def clear(self) -> None:
        """Forget everything and start as new."""
        self._memory = PrioritizedReplay(self.capacity, 1, 1, **self._knobs)
        self._written = 0

    def state(self) -> State:
        """Everything needed to continue exactly where it stands, the rng included."""
        state = self._memory.state()
        return State({**state.config, "slots_written": self._written}, state.arrays)

    def load(self, state: State) -> None:
        """Continue from `state()` of one made alike."""
        memory = PrioritizedReplay.from_state(state)
        _check_capacity(memory.capacity, self.capacity)
        self._written = check_count("slots_written", state.config["slots_written"], low=0)
        self._memory = memory


def last_of_each(slots: Int64) -> Int64:
    """`slots` with -1 wherever the same slot comes again later."""
    if len(slots) < 2:
        return slots
    kept = np.full(len(slots), -1, np.int64)
    _, backwards = np.unique(slots[::-1], return_index=True)
    last = len(slots) - 1 - backwards
    kept[last] = slots[last]
    return kept


def _check_capacity(saved: int, capacity: int) -> None:
    if saved != capacity:
        raise ValueError(f"the saved state has capacity {saved}, expected {capacity}")

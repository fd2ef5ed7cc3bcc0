"""What all memories share: rows, ids, one lock, statistics, state and file.

A memory is a store and a rule. The store keeps the rows; the rule says what to keep, what to draw
and what to do with TD errors, in terms of slots. `Memory` is both for the memories of this
package; others need only keep the `Replay` protocol.
"""

from abc import ABC, abstractmethod
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from lser.checks import as_flags, as_floats, check_count, check_feedback
from lser.files import State, rng_from_state, rng_state, save
from lser.params import make_params, show_knobs
from lser.replay.commit import Commit, Step, rewinding
from lser.replay.forks import survive_forks
from lser.replay.newest import Newest
from lser.replay.sessions import stream_labels
from lser.replay.store import Given, Storage, Store
from lser.types import Batch, Bool, Float32, Float64, Int64

Arrays = dict[str, Any]
_NO_LABELS: Int64 = np.empty(0, np.int64)
_NO_ENDS: Bool = np.empty(0, np.bool_)


class Block(NamedTuple):
    """Newcomers as a rule sees them; `ended` and `streams` only if it follows sessions."""

    rows: Float32  # (N, width) packed, or (N, 0) where rows lie with somebody else
    observation: Float32  # (N, O)
    reward: Float32  # (N,)
    ended: Bool  # (N,) whether the session ends with this step
    streams: Int64  # (N,) who took it


class Memory(ABC):
    """Rows, ids, one lock and one file format; what is kept and drawn is the subclass's.

    A subclass names its `KIND` and its `Params`, and overrides what differs of `begin`, `insert`,
    `draw`, `feedback`, `own_stats`, `own_state` and `restore`; all run under the lock, so one
    thread may write while another samples. Every random choice comes from `self.rng`.

    A call that an exception ends, of an allocation or of a signal handler at any moment, leaves
    the memory as before or as after it: `insert` and `feedback` work out everything first and then
    `commit` the changes; a `draw` moves the generator, and whatever goes with that, by one call
    (`draw_numbers`), or it first calls `rewind`.

    Made with ``storage="none"`` it is a rule without rows, for a library that keeps transitions
    in a storage of its own: `place` says which slots newcomers take, `pick` which to replay, and
    `report` takes TD errors.
    """

    KIND: ClassVar[str]
    Params: ClassVar[type]
    follows_sessions: ClassVar[bool] = False
    reads_rows: ClassVar[bool] = False  # a rule that cannot do without rows of its own
    stale = False  # codes have changed: `refile` before the next call
    _unfinished: Step | None = None  # of a call that was broken off

    def __init__(
        self,
        capacity: int,
        observation_dim: int,
        action_dim: int,
        *,
        seed: int = 0,
        params: Any = None,
        storage: Storage = "memory",
        path: str | Path | None = None,
        **knobs: Any,
    ) -> None:
        self.params = make_params(self.Params, params, knobs)
        self.seed = check_count("seed", seed, low=0)
        self._set_up(
            Store(capacity, observation_dim, action_dim, storage=storage, path=path),
            np.random.default_rng(self.seed),
        )

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        show_knobs(cls)

    def _set_up(self, store: Store, rng: np.random.Generator) -> None:
        if store.storage == "none" and self.reads_rows:
            raise ValueError(f"storage='none': {type(self).__name__} needs rows of its own")
        self.store, self.rng = store, rng
        self._lock = Lock()
        survive_forks(self)
        places = check_count("newest", getattr(self.params, "newest", 0), low=0)
        self.newest = Newest(store, places) if places else None
        self.begin()

    @property
    def capacity(self) -> int:
        """The most transitions it holds."""
        return self.store.capacity

    def __len__(self) -> int:
        return self.store.counts.item(0)

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
        """Add a block of N transitions, in order; returns their ids, -1 where one was refused."""
        block = (observation, action, reward, next_observation, terminated, truncated)
        with self._lock:
            ids = self.take(block, streams)
            if self.newest is not None:
                self.newest.note(ids)
            return ids

    def sample(self, batch_size: int, query: ArrayLike | None = None) -> Batch:
        """Draw `batch_size` transitions; `query` is the current observation, (O,)."""
        with self._lock:
            self.settle()
            batch = self.replay(self._size(batch_size), query)
            self._unfinished = None
            return batch

    def update(self, ids: ArrayLike, td_errors: ArrayLike) -> None:
        """Report signed TD errors of sampled transitions; ids no longer held are skipped."""
        if type(self).feedback is Memory.feedback:
            return
        names, errors = check_feedback(ids, td_errors)
        with self._lock:
            self.settle()
            self.feedback(*self.store.held(names, errors))

    def stop_exploring(self) -> None:
        """Make every further draw reward-driven where the memory has such a choice."""

    def stats(self) -> dict[str, float]:
        """How full it is, how much was ever written, and the memory's own numbers."""
        with self._lock:
            self.settle()
            return {
                "size": float(len(self)),
                "capacity": float(self.capacity),
                "written": float(self.store.written),
                **self.own_stats(),
            }

    # A rule without rows

    def place(
        self,
        observation: ArrayLike,
        reward: ArrayLike,
        ended: ArrayLike,
        streams: ArrayLike | None = None,
    ) -> Int64:
        """The slots N newcomers take, in order; -1 where one is refused or replaced by a later."""
        self._check_rowless("place")
        seen = as_floats("observation", observation, (None, self.store.observation_dim))
        n = len(seen)
        gains, ends = as_floats("reward", reward, (n,)), as_flags("ended", ended, n)
        # copies: a call that an exception cuts is finished later, when the caller has his back
        mine = np.empty((n, 0), np.float32), np.array(seen), np.array(gains), np.array(ends)
        block = Block(*mine, stream_labels(streams, n))
        with self._lock:
            self.settle()
            ids = self.insert(block)
            if self.newest is not None:
                self.newest.note(ids)
        return last_of_each(np.where(ids >= 0, ids % self.capacity, -1))

    def pick(self, batch_size: int, query: ArrayLike | None = None) -> tuple[Int64, Float32]:
        """The slots to replay and their importance weights."""
        with self._lock:
            self.settle()
            size = self._size(batch_size)
            slots, weights = self.combined(size, query)
            self._unfinished = None
        return slots, np.ones(size, np.float32) if weights is None else weights

    def report(self, slots: ArrayLike, td_errors: ArrayLike) -> None:
        """Report TD errors of the transitions in `slots`; slots that hold none are skipped."""
        names, errors = check_feedback(slots, td_errors)
        inside = (names >= 0) & (names < self.capacity)
        with self._lock:
            self.settle()
            inside[inside] = self.store.ids[names[inside]] >= 0
            self.feedback(names[inside], errors[inside])

    def refile(self, observations: ArrayLike) -> None:
        """Take the observations of all slots in use, in order, after their codes changed."""

    # Calls that are broken off

    def commit(self, *steps: Step) -> None:
        """Change the memory by `steps`, each of which gives the same when it is done twice."""
        self._unfinished = commit = Commit(steps)
        commit()
        self._unfinished = None

    def rewind(self) -> None:
        """From here on, an exception takes the generator back."""
        self._unfinished = rewinding(self)

    def settle(self) -> None:
        """Finish, or take back, what an exception left of an earlier call."""
        if self._unfinished is not None:
            self._unfinished()
            self._unfinished = None

    # What a memory says for itself

    def take(self, block: Given, streams: ArrayLike | None) -> Int64:
        """Take a block in as it was handed over; returns ids."""
        self.settle()
        rows, plain = self.store.packed(block)
        at, labels, ended = self.store.layout, _NO_LABELS, _NO_ENDS
        if self.follows_sessions:
            labels = stream_labels(streams, len(rows))
            ended = plain[4] | plain[5]
        elif streams is not None:
            stream_labels(streams, len(rows))  # not used, but checked
        return self.insert(Block(rows, rows[:, at.observation], rows[:, at.reward], ended, labels))

    def begin(self) -> None:
        """Make what the rule keeps, empty; store, params and rng are there."""

    def insert(self, block: Block) -> Int64:
        """Take a block in; returns ids. By default it goes over the oldest."""
        return self.store.append(block.rows)

    @abstractmethod
    def draw(self, size: int, query: ArrayLike | None) -> tuple[Int64, Float32 | None]:
        """The slots to replay, (size,), and their weights, or None for ones."""

    def replay(self, size: int, query: ArrayLike | None) -> Batch:
        """A batch of what `draw` picks."""
        return self.store.batch(*self.combined(size, query))

    def combined(self, size: int, query: ArrayLike | None) -> tuple[Int64, Float32 | None]:
        """What `draw` picks, its last places taken by the newest, newest last, with weight 1."""
        if self.newest is None:
            return self.draw(size, query)
        held = self.newest.slots(size - 1)
        slots, weights = self.draw(size - len(held), query)
        if weights is not None:
            weights = np.concatenate((weights, np.ones(len(held), np.float32)))
        return np.concatenate((slots, held)), weights

    def feedback(self, slots: Int64, td_errors: Float64) -> None:
        """Learn from the TD errors of what is held in `slots`."""

    def own_stats(self) -> dict[str, float]:
        """Numbers about the rule's contents and draws."""
        return {}

    def own_state(self) -> tuple[dict[str, Any], Arrays]:
        """What the rule keeps, as JSON-able settings and named arrays."""
        return {}, {}

    def restore(self, own: dict[str, Any], arrays: Arrays) -> None:
        """Continue from `own_state()`, after `begin`; the store is full already."""

    # State and file

    def state(self) -> State:
        """Everything needed to continue exactly where it stands, the rng included."""
        self.settle()
        store = self.store.state()
        own, arrays = self.own_state()
        config: dict[str, object] = {
            "params": asdict(self.params),
            "seed": self.seed,
            "store": store.config,
            "rng": rng_state(self.rng),
            "own": own,
        }
        return State(config, {**store.arrays, **arrays})

    @classmethod
    def from_state(cls, state: State, *, rows_path: str | Path | None = None) -> Self:
        """Rebuild a memory from `state()`; the rows of a memmap go to the file `rows_path`."""
        memory = cls.__new__(cls)
        memory.params = make_params(cls.Params, None, state.part("params").config)
        memory.seed = check_count("seed", state.config["seed"], low=0)
        store = Store.from_state(state.part("store"), path=rows_path)
        memory._set_up(store, np.random.default_rng(0))
        memory.rng = rng_from_state(state.config["rng"])
        memory.restore(state.part("own").config, state.arrays)
        return memory

    def save(self, path: str | Path) -> None:
        """Write one file that `lser.load_replay` reads back."""
        with self._lock:
            save(path, self.KIND, self.state())

    def __reduce__(self) -> tuple[Any, ...]:
        if self.store.storage == "memmap":
            raise TypeError("a memory whose rows lie in a file is copied by save and load_replay")
        with self._lock:
            config, arrays = self.state()
            copies = {name: np.array(array) for name, array in arrays.items()}
        return _rebuild, (type(self), config, copies)

    def _size(self, batch_size: object) -> int:
        if len(self) == 0:
            raise ValueError(f"cannot sample batch_size={batch_size}: the memory is empty")
        if type(batch_size) is int and batch_size > 0:
            return batch_size
        return check_count("batch_size", batch_size)

    def _check_rowless(self, what: str) -> None:
        if self.store.storage != "none":
            raise ValueError(f"{what} is for a memory with storage='none': this one keeps rows")


def _rebuild(kind: type[Memory], config: dict[str, object], arrays: Arrays) -> Memory:
    return kind.from_state(State(config, arrays))


def last_of_each(slots: Int64) -> Int64:
    """`slots` with -1 wherever the same slot comes again later."""
    if len(slots) < 2:
        return slots
    kept = np.full(len(slots), -1, np.int64)
    _, backwards = np.unique(slots[::-1], return_index=True)
    last = len(slots) - 1 - backwards
    kept[last] = slots[last]
    return kept

"""The plain memory: a ring of the newest transitions, drawn uniformly with replacement."""

from pathlib import Path
from threading import Lock
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from lser.replay.base import State, check_count, check_sample
from lser.replay.persistence import rng_from_state, rng_state, save
from lser.replay.store import Storage, Store
from lser.types import Batch, Int64


class UniformReplay:
    """Keeps the newest `capacity` transitions and draws each with the same probability.

    One thread may write while another samples: a lock makes each call wait for the other.
    """

    KIND = "uniform"

    def __init__(
        self,
        capacity: int,
        observation_dim: int,
        action_dim: int,
        *,
        seed: int = 0,
        storage: Storage = "memory",
        path: str | Path | None = None,
    ) -> None:
        self._rng = np.random.default_rng(check_count("seed", seed, low=0))
        self._store = Store(capacity, observation_dim, action_dim, storage=storage, path=path)
        self._lock = Lock()

    @property
    def capacity(self) -> int:
        """The most transitions it holds."""
        return self._store.capacity

    def __len__(self) -> int:
        return len(self._store)

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
        """Add a block of N transitions over the oldest; returns their ids."""
        rows = self._store.pack(
            observation, action, reward, next_observation, terminated, truncated
        )
        with self._lock:
            return self._store.append(rows)

    def sample(self, batch_size: int, query: ArrayLike | None = None) -> Batch:
        """Draw `batch_size` transitions independently; `query` is not used."""
        with self._lock:
            size = check_sample(batch_size, len(self._store))
            return self._store.batch(self._rng.integers(len(self._store), size=size))

    def update(self, ids: ArrayLike, td_errors: ArrayLike) -> None:
        """Nothing: draws do not depend on TD errors."""

    def stop_exploring(self) -> None:
        """Nothing: no draw is reward-driven."""

    def stats(self) -> dict[str, float]:
        """How full it is, and how much was ever written."""
        return {
            "size": float(len(self._store)),
            "capacity": float(self.capacity),
            "written": float(self._store.written),
        }

    def state(self) -> State:
        """Everything needed to continue exactly where it stands, the rng included."""
        store = self._store.state()
        return State({"store": store.config, "rng": rng_state(self._rng)}, store.arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild a memory from `state()`."""
        replay = cls.__new__(cls)
        replay._store = Store.from_state(state.part("store"))
        replay._rng = rng_from_state(state.config["rng"])
        replay._lock = Lock()
        return replay

    def save(self, path: str | Path) -> None:
        """Write one file that `load_replay` reads back."""
        with self._lock:
            save(path, self.KIND, self.state())

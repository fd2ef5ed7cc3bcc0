"""Attentive experience replay: of some random candidates, replay those most like the present.

Sun, Zhou, Li (2020), "Attentive Experience Replay", AAAI.
"""

from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from lser.replay.base import State, as_floats, check_choice, check_count, check_sample
from lser.replay.checks import check_number
from lser.replay.compiled import prefetch, unordered_kernel
from lser.replay.moments import Moments
from lser.replay.persistence import rng_from_state, rng_state, save
from lser.replay.prioritized import annealed
from lser.replay.store import Store
from lser.types import Batch, Float32, Int64

Features = Literal["standardised", "raw"]


class AttentiveReplay:
    """A FIFO memory that draws `candidates` times the batch and keeps the most similar to `query`.

    Similarity is the cosine of observations, standardised by the mean and deviation of everything
    ever added (`features="raw"`: as they are). The factor falls linearly from `candidates` to 1
    over the first `anneal` calls of `sample`; from then on, and without a query, draws are uniform.
    """

    KIND = "aer"

    def __init__(
        self,
        capacity: int,
        observation_dim: int,
        action_dim: int,
        *,
        seed: int = 0,
        candidates: float = 4.0,
        anneal: int = 100_000,
        features: Features = "standardised",
    ) -> None:
        self.candidates = check_number("candidates", candidates, low=1.0)
        self.anneal = check_count("anneal", anneal)
        self.features = check_choice("features", features, ("standardised", "raw"))
        self._store = Store(capacity, observation_dim, action_dim)
        self._moments = Moments(observation_dim)
        self._mean = np.zeros(observation_dim, dtype=np.float32)
        self._scale = np.ones(observation_dim, dtype=np.float32)
        self._stale = False  # whether mean and scale lag behind the moments
        self._draws = 0
        self._rng = np.random.default_rng(check_count("seed", seed, low=0))

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
        streams: ArrayLike | None = None,  # noqa: ARG002
    ) -> Int64:
        """Add a block of N transitions over the oldest; returns their ids."""
        rows = self._store.pack(
            observation, action, reward, next_observation, terminated, truncated
        )
        if self.features == "standardised":
            self._moments.add(rows)
            self._stale = True
        return self._store.append(rows)

    def sample(self, batch_size: int, query: ArrayLike | None = None) -> Batch:
        """Draw `batch_size` transitions, those most similar to `query` of a uniform draw."""
        size = check_sample(batch_size, len(self))
        wide = (self._store.observation_dim,)
        target = None if query is None else np.array(as_floats("query", query, wide))
        factor = annealed(self.candidates, 1.0, self._draws, self.anneal)
        self._draws += 1
        drawn = size if target is None else max(round(factor * size), size)
        slots = self._rng.integers(len(self), size=drawn)
        if target is not None and drawn > size:
            slots = self._most_similar(slots, target, size)
        return self._store.batch(slots)

    def _most_similar(self, slots: Int64, query: Float32, size: int) -> Int64:
        """The `size` of slots (n,) whose observations have the largest cosine to `query`."""
        alike = np.empty(len(slots), dtype=np.float32)
        if self._stale:
            self._mean = self._moments.mean.astype(np.float32)
            self._scale = self._moments.scale.astype(np.float32)
            self._stale = False
        _cosines(self._store.rows, slots, query, self._mean, self._scale, alike)
        return slots[np.argpartition(alike, len(slots) - size)[len(slots) - size :]]

    def update(self, ids: ArrayLike, td_errors: ArrayLike) -> None:
        """Nothing: draws do not depend on TD errors."""

    def stop_exploring(self) -> None:
        """Nothing: no draw is reward-driven."""

    def stats(self) -> dict[str, float]:
        """How full it is, and the present factor of candidates."""
        return {
            "size": float(len(self)),
            "candidates": annealed(self.candidates, 1.0, self._draws, self.anneal),
        }

    def state(self) -> State:
        """Everything needed to continue exactly where it stands, the rng included."""
        store = self._store.state()
        config: dict[str, object] = {
            "knobs": {
                "candidates": self.candidates,
                "anneal": self.anneal,
                "features": self.features,
            },
            "store": store.config,
            "rng": rng_state(self._rng),
            "draws": self._draws,
        }
        return State(config, {**store.arrays, **self._moments.arrays()})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild a memory from `state()`."""
        config: Any = state.config
        store = Store.from_state(State(config["store"], state.arrays))
        replay = cls(store.capacity, store.observation_dim, store.action_dim, **config["knobs"])
        replay._store = store
        replay._moments = Moments.from_arrays(state.arrays)
        replay._stale = replay.features == "standardised"
        replay._draws = config["draws"]
        replay._rng = rng_from_state(config["rng"])
        return replay

    def save(self, path: str | Path) -> None:
        """Write one file that `load_replay` reads back."""
        save(path, self.KIND, self.state())


_LINE = 16  # float32 in a cache line
_AHEAD = 24  # rows


@unordered_kernel
def _cosines(
    rows: Float32, slots: Int64, query: Float32, mean: Float32, scale: Float32, out: Float32
) -> None:
    """Write a number that grows with the cosine of each slot's observation to `query`, (n,)."""
    direction = (query - mean) * scale
    width, dim, count = rows.shape[1], len(direction), len(slots)
    for i in range(-_AHEAD, count):
        if i + _AHEAD < count:
            first = slots[i + _AHEAD] * width
            for j in range(0, dim + _LINE - 1, _LINE):
                prefetch(rows, first + min(j, dim - 1))
        if i < 0:
            continue
        row = rows[slots[i]]
        product = np.float32(0.0)
        squares = np.float32(0.0)
        for j in range(dim):
            feature = (row[j] - mean[j]) * scale[j]
            product += feature * direction[j]
            squares += feature * feature
        out[i] = product / np.sqrt(squares) if squares > 0.0 else np.float32(0.0)

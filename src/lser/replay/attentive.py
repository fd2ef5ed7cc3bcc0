"""Attentive experience replay: of some random candidates, replay those most like the present.

Sun, Zhou, Li (2020), "Attentive Experience Replay", AAAI.
"""

from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from lser.replay import sketch
from lser.replay.attention import attend
from lser.replay.base import State, as_floats, check_choice, check_count, check_sample
from lser.replay.checks import check_number
from lser.replay.moments import Moments
from lser.replay.persistence import rng_from_state, rng_state, save
from lser.replay.prioritized import annealed
from lser.replay.store import Store
from lser.types import Batch, Int64

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
        self._sketch = sketch.blank(self._store.capacity, self._store.observation_dim)
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
        streams: ArrayLike | None = None,
    ) -> Int64:
        """Add a block of N transitions over the oldest; returns their ids."""
        rows = self._store.pack(
            observation, action, reward, next_observation, terminated, truncated
        )
        if self.features == "standardised":
            self._moments.add(rows)
        sketch.write(self._sketch, self._store.written, rows, self._store.observation_dim)
        return self._store.append(rows)

    def sample(self, batch_size: int, query: ArrayLike | None = None) -> Batch:
        """Draw `batch_size` transitions, those most similar to `query` of a uniform draw."""
        size = check_sample(batch_size, len(self))
        wide = (self._store.observation_dim,)
        target = None if query is None else as_floats("query", query, wide)
        factor = annealed(self.candidates, 1.0, self._draws, self.anneal)
        self._draws += 1
        drawn = size if target is None else max(round(factor * size), size)
        if target is None or drawn == size:
            return self._store.batch(self._rng.integers(len(self), size=size))
        seed = self._rng.bit_generator.random_raw() >> 1  # Numba takes it as an int64
        store, filled = self._store, self._store.blank(size)
        attend(
            store.rows,
            store.ids,
            self._sketch,
            *self._moments.parts,
            target,
            seed,
            len(store),
            drawn,
            *filled,
        )
        return store.wrap(*filled)

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
        sketch.write(replay._sketch, 0, store.rows[: len(store)], store.observation_dim)
        replay._draws = config["draws"]
        replay._rng = rng_from_state(config["rng"])
        return replay

    def save(self, path: str | Path) -> None:
        """Write one file that `load_replay` reads back."""
        save(path, self.KIND, self.state())

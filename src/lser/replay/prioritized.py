"""Prioritized experience replay: transitions with large TD errors come back more often.

The proportional variant of Schaul et al. (2015), https://arxiv.org/abs/1511.05952.
"""

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from lser.replay.base import State, check_count, check_fraction, check_sample
from lser.replay.checks import check_feedback, check_number
from lser.replay.persistence import rng_from_state, rng_state, save
from lser.replay.store import Store
from lser.replay.sum_tree import SumTree
from lser.types import Batch, Int64


class PrioritizedReplay:
    """A FIFO memory that replays in proportion to priority^alpha, with importance weights.

    A priority is |TD error| + `offset`; a new transition gets the largest one seen so far. Weights
    are (N P)^-beta over the largest of the batch; beta rises linearly from `beta` to 1 over the
    first `anneal` calls of `sample`.
    """

    KIND = "per"

    def __init__(
        self,
        capacity: int,
        observation_dim: int,
        action_dim: int,
        *,
        seed: int = 0,
        alpha: float = 0.6,
        beta: float = 0.4,
        anneal: int = 100_000,
        offset: float = 1e-6,
    ) -> None:
        self.alpha = check_number("alpha", alpha, low=0.0)
        self.beta = check_fraction("beta", beta)
        self.anneal = check_count("anneal", anneal)
        self.offset = check_number("offset", offset, low=0.0, above=True)
        self._store = Store(capacity, observation_dim, action_dim)
        self._tree = SumTree(capacity)
        self._largest = 1.0  # raw priority, before the power
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
        """Add a block of N transitions with the largest priority seen; returns their ids."""
        rows = self._store.pack(
            observation, action, reward, next_observation, terminated, truncated
        )
        ids = self._store.append(rows)
        slots = self._store.slots(ids)
        self._tree.set(slots[slots >= 0], self._largest**self.alpha)
        return ids

    def sample(self, batch_size: int, query: ArrayLike | None = None) -> Batch:
        """Draw `batch_size` transitions, one from each of as many equal shares of the total."""
        size = check_sample(batch_size, len(self))
        beta = annealed(self.beta, 1.0, self._draws, self.anneal)
        self._draws += 1
        return self._store.batch(*self._tree.draw(self._rng.random(size), beta))

    def update(self, ids: ArrayLike, td_errors: ArrayLike) -> None:
        """Set the priorities of sampled transitions; ids no longer held are skipped."""
        names, errors = check_feedback(ids, td_errors)
        slots = self._store.slots(names)
        held = slots >= 0
        priority = np.abs(errors[held]) + self.offset
        self._largest = max(self._largest, float(priority.max(initial=0.0)))
        self._tree.set(slots[held], priority**self.alpha)

    def stop_exploring(self) -> None:
        """Nothing: its draws do not explore."""

    def stats(self) -> dict[str, float]:
        """How full it is, the present beta and the largest priority seen."""
        return {
            "size": float(len(self)),
            "beta": annealed(self.beta, 1.0, self._draws, self.anneal),
            "largest_priority": self._largest,
        }

    def state(self) -> State:
        """Everything needed to continue exactly where it stands, the rng included."""
        store = self._store.state()
        config: dict[str, object] = {
            "knobs": {
                "alpha": self.alpha,
                "beta": self.beta,
                "anneal": self.anneal,
                "offset": self.offset,
            },
            "store": store.config,
            "rng": rng_state(self._rng),
            "largest": self._largest,
            "draws": self._draws,
        }
        return State(config, {**store.arrays, "priorities": self._tree.priorities})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild a memory from `state()`."""
        config: Any = state.config
        store = Store.from_state(State(config["store"], state.arrays))
        replay = cls(store.capacity, store.observation_dim, store.action_dim, **config["knobs"])
        replay._store = store
        replay._tree.set(np.arange(store.capacity), state.arrays["priorities"])
        replay._largest, replay._draws = config["largest"], config["draws"]
        replay._rng = rng_from_state(config["rng"])
        return replay

    def save(self, path: str | Path) -> None:
        """Write one file that `load_replay` reads back."""
        save(path, self.KIND, self.state())


def annealed(start: float, end: float, draws: int, over: int) -> float:
    """The value after `draws` of the `over` calls in which it moves linearly from start to end."""
    return start + (end - start) * min(draws / over, 1.0)

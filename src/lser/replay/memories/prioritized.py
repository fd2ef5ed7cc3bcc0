"""Prioritized experience replay: transitions with large TD errors come back more often.

The proportional variant of Schaul et al. (2015), https://arxiv.org/abs/1511.05952.
"""

from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lser.checks import check_count, check_number
from lser.replay.generator import address_of
from lser.replay.memories.params import ANNEAL, PrioritizedParams
from lser.replay.memory import Arrays, Block, Memory
from lser.replay.sum_tree import SumTree
from lser.types import Float32, Float64, Int64

LARGEST = 1e290  # of a priority


class PrioritizedReplay(Memory):
    """A FIFO memory that replays in proportion to priority^alpha, with importance weights.

    A priority is |TD error| + `offset`; a new transition gets the largest one seen so far. Weights
    are (N P)^-beta over the largest of the batch; beta rises linearly from `beta` to 1 over the
    first `anneal` calls of `sample`.
    """

    KIND = "per"
    Params = PrioritizedParams
    params: PrioritizedParams

    def begin(self) -> None:
        """All priorities zero; a newcomer gets 1 until a larger error is seen."""
        self.tree = SumTree(self.capacity)
        self.largest = 1.0  # before the power
        self._draws: Int64 = np.zeros(1, np.int64)  # kernels count

    @property
    def draws(self) -> int:
        """How many draws there were."""
        return self._draws.item()

    @property
    def beta(self) -> float:
        """The power of the importance weights at the next draw."""
        anneal = ANNEAL if self.params.anneal is None else self.params.anneal
        return annealed(self.params.beta, 1.0, self.draws, anneal)

    def insert(self, block: Block) -> Int64:
        """Over the oldest, with the largest priority seen."""
        ids, slots, write = self.store.appending(block.rows)
        self.commit(write, self.tree.setting(slots, power(self.largest, self.params.alpha)))
        return ids

    def draw(self, size: int, query: ArrayLike | None) -> tuple[Int64, Float32 | None]:
        """One slot from each of as many equal shares of the total."""
        return self.tree.draw_from(address_of(self.rng), size, self.beta, self._draws)

    def feedback(self, slots: Int64, td_errors: Float64) -> None:
        """Set the priorities of what was sampled."""
        priority = np.abs(td_errors) + self.params.offset
        largest = max(self.largest, float(priority.max(initial=0.0)))
        change = self.tree.setting(slots, powers(priority, self.params.alpha))
        self.commit(change, partial(setattr, self, "largest", largest))

    def own_stats(self) -> dict[str, float]:
        """The present beta and the largest priority seen."""
        return {"beta": self.beta, "largest_priority": self.largest}

    def own_state(self) -> tuple[dict[str, Any], Arrays]:
        """The priorities."""
        own = {"largest": self.largest, "draws": self.draws}
        return own, {"priorities": self.tree.priorities}

    def restore(self, own: dict[str, Any], arrays: Arrays) -> None:
        """Continue from `own_state()`."""
        self.tree.load(arrays["priorities"])
        if not np.array_equal(arrays["priorities"] > 0, self.store.ids >= 0):
            raise ValueError("the saved priorities are not those of the slots that are held")
        self.largest = check_number("largest", own["largest"], low=0.0)
        self._draws[0] = check_count("draws", own["draws"], low=0, high=2**62)


def powers(priority: Float64, alpha: float) -> Float64:
    """Priorities to a power, at most so large that a sum of many is still a number."""
    bounded: Float64 = np.minimum(priority, LARGEST ** (1 / max(alpha, 1.0)))
    return bounded**alpha


@lru_cache
def power(priority: float, alpha: float) -> float:
    """`powers` of one priority, that of newcomers, which seldom changes."""
    return float(powers(np.array(priority), alpha))


def annealed(start: float, end: float, draws: int, over: int) -> float:
    """The value after `draws` of the `over` calls in which it moves linearly from start to end."""
    return start + (end - start) * (draws / over if draws < over else 1.0)

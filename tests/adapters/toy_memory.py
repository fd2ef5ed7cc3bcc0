"""Somebody else's memory, named `toy_memory:NewestReplay` where a name is taken."""

from dataclasses import dataclass

import numpy as np

from lser.params import MemoryParams
from lser.replay import Memory


@dataclass(frozen=True, kw_only=True)
class NewestParams(MemoryParams):
    """How far back it goes."""

    span: int = 5


class NewestReplay(Memory):
    """Draws from the last few transitions only, and remembers the TD errors it was told."""

    KIND = "newest"
    Params = NewestParams

    def begin(self):
        self.told = []

    def draw(self, size, query):
        last = (
            self.store.written - 1 - self.rng.integers(min(len(self), self.params.span), size=size)
        )
        return last % self.capacity, None

    def feedback(self, slots, td_errors):
        self.told.append(np.array(td_errors))

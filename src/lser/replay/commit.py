"""Calls that are broken off: what finishes them, or takes them back.

A signal handler may raise at any moment. A memory keeps at hand what remains to be done, or undone,
while it is being changed, and does that before it is used again.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np

Step = Callable[[], object]


class Changing(Protocol):
    """What draws from a generator of its own: a memory."""

    rng: np.random.Generator


class Commit:
    """The steps that change a memory, in order; each gives the same when it is done twice.

    An exception that a signal handler raises may come between any two of them, or in the middle
    of one. What is left is then done before the memory is used again.
    """

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self._steps = steps
        self._done = 0

    def __call__(self) -> None:
        """Do what is left."""
        while self._done < len(self._steps):
            self._steps[self._done]()
            self._done += 1


def rewinding(memory: Changing) -> Step:
    """What takes the generator of a memory back to where it is now."""
    return partial(setattr, memory.rng.bit_generator, "state", memory.rng.bit_generator.state)

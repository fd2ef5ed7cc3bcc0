"""Calls that are broken off: what finishes them, or takes them back.

A signal handler may raise at any moment. A memory keeps at hand what remains to be done, or undone,
while it is being changed, and does that before it is used again.
"""

from collections.abc import Callable
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


class Rewind:
    """Takes back what a call has changed that was broken off: the generator, and counts."""

    def __init__(self, memory: "Changing", *names: str) -> None:
        self._memory, self._names = memory, names
        self._rng = memory.rng.bit_generator.state
        self._counts = [getattr(memory, name) for name in names]

    def __call__(self) -> None:
        """Take it back."""
        self._memory.rng.bit_generator.state = self._rng
        for name, value in zip(self._names, self._counts, strict=True):
            setattr(self._memory, name, value)

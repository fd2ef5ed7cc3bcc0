"""What squads wait for, so that others can go on meanwhile."""

from collections.abc import Generator, Sequence
from typing import NamedTuple, Protocol


class Awaited(Protocol):
    """What a squad waits for."""

    def ready(self) -> bool:
        """Whether it is there."""
        ...


class All(NamedTuple):
    """Several such things: a squad goes on once every one of them is there."""

    parts: Sequence[Awaited]

    def ready(self) -> bool:
        """Whether all are there."""
        return all(part.ready() for part in self.parts)


class First(NamedTuple):
    """Several such things: a squad goes on once one of them is there."""

    parts: Sequence[Awaited]

    def ready(self) -> bool:
        """Whether one is there."""
        return any(part.ready() for part in self.parts)


Course = Generator[Awaited | None, None, None]
"""A squad's way to its end: it yields what it waits for, or None to let others go first."""

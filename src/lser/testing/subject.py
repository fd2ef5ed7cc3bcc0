"""What the contract is held against: a way to make a memory, and what it says of itself."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from lser.catalogue import MEMORIES
from lser.replay.protocol import Replay

OBSERVATION, ACTION, CAPACITY, BATCH = 4, 2, 40, 16


class Broken(AssertionError):
    """A memory does not keep the contract; says how."""


class NotForThis(Exception):
    """A check does not apply to this memory; says why."""


@dataclass(frozen=True)
class Subject:
    """A memory under test."""

    name: str
    kind: Any
    """Its class."""
    knobs: Mapping[str, Any] = field(default_factory=dict)
    """What it is made with beside its sizes and its seed."""
    needs: frozenset[str] | None = None
    """Of query, td_errors, sessions, goals: what it makes use of; None if nobody says."""
    exceptions: Mapping[str, str] = field(default_factory=dict)
    """Names of checks that are not for it, with the reason."""

    def make(self, capacity: Any = CAPACITY, *, seed: int = 3, **more: Any) -> Any:
        """An empty memory."""
        return self.kind(capacity, OBSERVATION, ACTION, seed=seed, **{**self.knobs, **more})


def subject(
    name: str,
    *,
    needs: frozenset[str] | None = None,
    exceptions: Mapping[str, str] | None = None,
    **knobs: Any,
) -> Subject:
    """A memory of the catalogue by its name, or anybody's by ``module:Class``, with `knobs`."""
    entry = MEMORIES[name]
    said = entry.needs if name in MEMORIES.own and needs is None else needs
    settings = {**entry.knobs, **entry.test_knobs, **knobs}
    return Subject(name, entry.load(), settings, said, exceptions or {})


def require(condition: object, words: str) -> None:
    """Raise Broken unless the condition holds."""
    if not condition:
        raise Broken(words)


@contextmanager
def refused(what: str, *naming: str) -> Iterator[None]:
    """What runs inside must raise a ValueError that names one of `naming`."""
    try:
        yield
    except ValueError as error:
        known = not naming or any(word in str(error) for word in naming)
        require(known, f"the error about {what} does not name {' or '.join(naming)}: {error}")
    except Exception as error:
        raise Broken(f"{what} raises {error!r} in place of a ValueError") from error
    else:
        raise Broken(f"{what} is not refused")


def is_replay(memory: object) -> bool:
    """Whether a memory has every method of the protocol."""
    return isinstance(memory, Replay)

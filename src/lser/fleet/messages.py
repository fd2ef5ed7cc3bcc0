"""What a fleet's learner and its crews say to each other, in turns.

Prepare  -> Ready, Drawn   observations are on the board; batches are drawn
Act      -> Ready, Drawn   actions taken and stored, what came of them is on the board; the
                           batches of the next step are drawn
Hear     -> Hear           TD errors heard and the next batches drawn, where memories wait for
                           them; Act's Ready follows the last of a step
Give     -> Ready, Drawn   evaluations that could not wait are done; the rest as after Act
Save     -> Save           checkpoints written
Close    -> Close          finished runs completed, the others marked as stopped
"""

import pickle
from dataclasses import dataclass, field
from functools import lru_cache
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from lser.agents.learner import Learner, Member
from lser.types import Float32

SHORT = 100  # bytes of messages without arrays
States = dict[int, dict[str, Any]]  # of learners, by slot


def send(pipe: Connection, message: Any) -> None:
    """Put a message into a pipe; those that come again and again are pickled once."""
    try:
        data = _packed(message)
    except TypeError:  # it holds arrays
        data = pickle.dumps(message)
    pipe.send_bytes(data)


def receive(pipe: Connection) -> Any:
    """What `send` sent; EOFError if nothing can come any more."""
    data = pipe.recv_bytes()
    return _unpacked(data) if len(data) < SHORT else pickle.loads(data)  # by a process of ours


@lru_cache
def _packed(message: Any) -> bytes:
    return pickle.dumps(message)


@lru_cache
def _unpacked(data: bytes) -> Any:
    return pickle.loads(data)


class Joined(NamedTuple):
    """What the learner's process must know of one seat; None in place of it if it failed."""

    kind: tuple[object, ...]
    learner_type: type[Learner]
    observation_dim: int
    member: Member
    state: dict[str, Any]
    waits: bool


@dataclass
class Prepare:
    """Get ready for the first step, or for the next after a pause."""


@dataclass
class Act:
    """The actions are on the board; with `hold` the next step is not prepared."""

    hold: bool = False
    actors: dict[int, Float32] = field(default_factory=dict)  # for evaluations, by slot
    states: States = field(default_factory=dict)  # of runs that had their sessions


@dataclass(frozen=True)
class Hear:
    """The TD errors of this turn are on the board."""

    turn: int


@dataclass
class Give:
    """The actors that evaluations wait for."""

    actors: dict[int, Float32]


@dataclass
class Save:
    """Write checkpoints of these learners' runs."""

    states: States


@dataclass
class Close:
    """End: complete the runs that had their sessions, mark the others as stopped."""

    states: States


class Ready(NamedTuple):
    """What seats see next is on the board, unless the step was held or is `blocked`.

    A `Drawn` follows it, but for one that is blocked: actors are asked while crews draw.
    """

    actors: tuple[int, ...] = ()  # slots that want theirs for an evaluation
    ended: tuple[int, ...] = ()  # slots that had their sessions
    blocked: bool = False  # the evaluations cannot wait


@dataclass(frozen=True)
class Drawn:
    """The batches of the next updates lie in their buffers."""

"""What a memory under test is fed, and how its states and batches are compared."""

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from lser.testing.subject import ACTION, BATCH, OBSERVATION, Subject
from lser.types import Batch, Bool, Float32, Int64

Block = tuple[Float32, Float32, Float32, Float32, Bool, Bool]
FIELDS = ("observation", "action", "reward", "next_observation", "terminated", "truncated")


class Life(NamedTuple):
    """A memory after some traffic, draws and feedback."""

    memory: Any
    columns: list[Any]
    """All that was added, field by field."""
    ids: list[Int64]
    """What each block was answered with."""
    rng: np.random.Generator
    """For more traffic."""


def blocks_of(
    rng: np.random.Generator, count: int, size: int = 8, first: int = 0
) -> Iterator[Block]:
    """Blocks for any memory: observations end with a goal, actions begin with a serial number."""
    for number in range(count):
        observation, following = rng.normal(size=(2, size, OBSERVATION)).astype(np.float32)
        observation[:, -1] = rng.integers(1, 11, size) / 10
        following[:, -1] = rng.integers(1, 11, size) / 10
        action = rng.normal(size=(size, ACTION)).astype(np.float32)
        action[:, 0] = first + number * size + np.arange(size)
        reward = rng.integers(0, 11, size).astype(np.float32)
        yield observation, action, reward, following, rng.random(size) < 0.1, rng.random(size) < 0.1


def life_of(subject: Subject, count: int = 12, seed: int = 11) -> Life:
    """A memory that has seen `count` blocks, and was drawn from and answered after each."""
    rng, memory = np.random.default_rng(seed), subject.make()
    blocks, ids = list(blocks_of(rng, count)), []
    for block in blocks:
        ids.append(memory.extend(*block))
        batch = memory.sample(BATCH, block[0][0])
        memory.update(batch.ids, rng.normal(size=BATCH))
    columns = [np.concatenate(column) for column in zip(*blocks, strict=True)]
    return Life(memory, columns, ids, rng)


class Snapshot:
    """Everything that a memory knows, to be compared with later."""

    def __init__(self, memory: Any) -> None:
        config, arrays = memory.state()
        self.config = copy.deepcopy(config)
        self.arrays = {name: np.array(array) for name, array in arrays.items()}

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Snapshot)
            and repr(self.config) == repr(other.config)
            and self.arrays.keys() == other.arrays.keys()
            and all(np.array_equal(self.arrays[n], other.arrays[n]) for n in self.arrays)
        )

    __hash__ = None  # type: ignore[assignment]  # states are compared, never keys


def same_batch(left: Batch, right: Batch) -> bool:
    """Whether two batches are equal in every field."""
    fields: Any = zip(left, right, strict=True)
    return all(np.array_equal(ours, theirs) for ours, theirs in fields)

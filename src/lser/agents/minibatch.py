"""The way of batches from a memory's arrays to the critics' inputs, for one agent or a stack."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lser.types import Batch, Float32

_ALIGN = 16  # floats: a product's last bit can depend on where its operands start


class Minibatch(NamedTuple):
    """Batches on the learner's device, scalars as columns; some fields are views of others.

    In a stack every field has a leading axis of agents.
    """

    inputs: Tensor  # (b, O + A) what a critic reads: observation and action
    observation: Tensor  # (b, O) a view of inputs
    action: Tensor  # (b, A) a view of inputs
    next_inputs: Tensor  # (b, O + A)
    next_observation: Tensor  # (b, O) a view of next_inputs
    next_action: Tensor  # (b, A) a view of next_inputs, for the learner to fill
    reward: Tensor  # (b, 1)
    discount: Tensor  # (b, 1) what the next value counts: 0 where terminated
    weights: Tensor  # (b, 1)
    normals: tuple[Tensor, ...]  # each (b, A): standard normal draws, as many as an update needs


class BatchShape(NamedTuple):
    """The sizes of the batches of one update."""

    agents: int | None  # of a stack, or None
    rows: int
    observations: int
    actions: int
    normals: int  # arrays of normal draws
    numbers: int = 0  # of a stack's plan, for each agent

    def parts(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of what lies one after another in a flat buffer."""
        lead = () if self.agents is None else (self.agents,)
        rows, width = self.rows, self.observations + self.actions
        sides = (2, *lead, rows, width)
        normals = (self.normals, *lead, self.actions, rows)
        return sides, (3, *lead, rows, 1), normals, (self.numbers, *lead)

    @property
    def floats(self) -> int:
        """Length of a flat buffer."""
        return sum(_padded(shape) for shape in self.parts())


def _padded(shape: tuple[int, ...]) -> int:
    return -(-int(np.prod(shape)) // _ALIGN) * _ALIGN


def split(shape: BatchShape, buffer: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Views of a flat `buffer`: inputs of both sides, scalars, normals, the plan's numbers."""
    views, start = [], 0
    for part in shape.parts():
        views.append(buffer[start : start + int(np.prod(part))].view(part))
        start += _padded(part)
    sides, scalars, normals, numbers = views
    return sides, scalars, normals, numbers


def minibatch(shape: BatchShape, buffer: Tensor) -> Minibatch:
    """A flat buffer as the learner reads it."""
    sides, scalars, normals, _ = split(shape, buffer)
    seen = shape.observations
    fields: list[Any] = [*(v for s in sides for v in (s, s[..., :seen], s[..., seen:])), *scalars]
    # normals lie transposed, like the networks' outputs
    return Minibatch._make([*fields, tuple(draw.mT for draw in normals)])


def plan_numbers(shape: BatchShape, buffer: Tensor) -> Tensor:
    """Those of a stack's plan (names, G) in a flat buffer."""
    return split(shape, buffer)[3]


class HostBatches:
    """A flat buffer on the host, into which the batch of each agent is copied."""

    def __init__(self, shape: BatchShape, buffer: Tensor) -> None:
        """Fill `buffer` of `shape.floats` numbers."""
        self.shape, self.buffer = shape, buffer
        *views, normals, numbers = split(shape, buffer)
        sides, scalars = (view.numpy() for view in views)
        self.numbers: Float32 = numbers.numpy()  # (names, G) of a stack's plan
        if shape.agents is None:
            sides, scalars, normals = sides[:, None], scalars[:, None], normals.unsqueeze(1)
        self._normals = list(normals)
        seen = shape.observations
        self._observation, self._next_observation = sides[..., :seen]
        self._action = sides[0, ..., seen:]
        self.rewards: Float32  # (G, b)
        self.rewards, self._discount, self._weights = scalars[..., 0]

    def fill(
        self, batch: Batch, discount: float, generator: torch.Generator, slot: int = 0
    ) -> None:
        """Copy the batch of one agent in, and draw what its update needs."""
        shape = self.shape
        observations, actions = (shape.rows, shape.observations), (shape.rows, shape.actions)
        if batch.observation.shape != observations or batch.action.shape != actions:
            raise ValueError(
                f"batch must have observations {observations} and actions {actions}, "
                f"got {batch.observation.shape} and {batch.action.shape}"
            )
        self._observation[slot] = batch.observation
        self._next_observation[slot] = batch.next_observation
        self._action[slot] = batch.action
        self.rewards[slot] = batch.reward
        np.multiply(~batch.terminated, np.float32(discount), out=self._discount[slot])
        self._weights[slot] = batch.weights
        for draws in self._normals:
            torch.randn(draws[slot].shape, generator=generator, out=draws[slot])

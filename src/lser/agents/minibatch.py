"""The way of batches from a memory's arrays to the critics' inputs, for one agent or a stack."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lser.types import Batch, Float32, Layout

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
    """The sizes of the batches of one update.

    They are laid out as critics read them, or `packed`: as the rows of memories, which are put
    there without being copied twice, and are unpacked on a device.
    """

    agents: int | None  # of a stack, or None
    rows: int
    observations: int
    actions: int
    normals: int  # arrays of normal draws
    numbers: int = 0  # of a stack's plan, for each agent
    packed: bool = False

    def parts(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of what lies one after another in a flat buffer."""
        lead = () if self.agents is None else (self.agents,)
        rows, width = self.rows, self.observations + self.actions
        normals = (self.normals, *lead, self.actions, rows)
        numbers = (self.numbers, *lead)
        if self.packed:
            return (*lead, rows, self.layout.width), (*lead, rows, 1), normals, numbers
        return (2, *lead, rows, width), (3, *lead, rows, 1), normals, numbers

    @property
    def layout(self) -> Layout:
        """What lies where in a packed row."""
        return Layout.of(self.observations, self.actions)

    @property
    def floats(self) -> int:
        """Length of a flat buffer."""
        return sum(_padded(shape) for shape in self.parts())

    @property
    def rest(self) -> slice:
        """Where in a flat buffer draws and numbers lie, behind the batches themselves."""
        return slice(sum(_padded(shape) for shape in self.parts()[:2]), self.floats)


def _padded(shape: tuple[int, ...]) -> int:
    return -(-int(np.prod(shape)) // _ALIGN) * _ALIGN


def split(shape: BatchShape, buffer: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Views of a flat `buffer`: inputs of both sides, scalars, normals, the plan's numbers.

    If it is packed the first two are rows and weights.
    """
    views, start = [], 0
    for part in shape.parts():
        views.append(buffer[start : start + int(np.prod(part))].view(part))
        start += _padded(part)
    batches, scalars, normals, numbers = views
    return batches, scalars, normals, numbers


def minibatch(shape: BatchShape, buffer: Tensor) -> Minibatch:
    """A flat buffer as the learner reads it."""
    sides, scalars, normals, _ = split(shape, buffer)
    return _minibatch(shape, list(sides), list(scalars), normals)


def _minibatch(
    shape: BatchShape, sides: list[Tensor], scalars: list[Tensor], normals: Tensor
) -> Minibatch:
    seen = shape.observations
    fields: list[Any] = [*(v for s in sides for v in (s, s[..., :seen], s[..., seen:])), *scalars]
    # normals lie transposed, like the networks' outputs
    return Minibatch._make([*fields, tuple(draw.mT for draw in normals)])


def plan_numbers(shape: BatchShape, buffer: Tensor) -> Tensor:
    """Those of a stack's plan (names, G) in a flat buffer."""
    return split(shape, buffer)[3]


def unpack(
    rows: Tensor,
    weights: Tensor,
    discount: Tensor,
    inputs: Tensor,
    next_observation: Tensor,
    reward: Tensor,
    kept: Tensor,
    weighed: Tensor,
) -> None:
    """Take packed rows (G, b, 2 O + A + 3) apart; `discount` (G, 1, 1) counts unless terminated."""
    wide, seen = inputs.shape[-1], next_observation.shape[-1]
    inputs.copy_(rows[..., :wide])
    reward.copy_(rows[..., wide : wide + 1])
    next_observation.copy_(rows[..., wide + 1 : wide + 1 + seen])
    kept.copy_((1 - rows[..., wide + 1 + seen : wide + 2 + seen]) * discount)
    weighed.copy_(weights)


class UnpackedBatches:
    """The batches of one update on a device, taken apart from packed ones."""

    def __init__(
        self, shape: BatchShape, discounts: Tensor, unpack: Callable[..., None] = unpack
    ) -> None:
        """Make room on the device of `discounts` (G, 1, 1); `unpack` may be a compiled one."""
        self._shape, self._discounts, self._unpack = shape, discounts, unpack
        wide = (discounts.shape[0], shape.rows, shape.observations + shape.actions)
        sides = [torch.zeros(wide, device=discounts.device) for _ in range(2)]
        scalars = [torch.zeros(*wide[:2], 1, device=discounts.device) for _ in range(3)]
        whole = torch.zeros(shape.floats, device=discounts.device)
        *_, normals, self.numbers = split(shape, whole)
        self._rest = whole[shape.rest]
        self.data = _minibatch(shape, sides, scalars, normals)

    def take(self, batches: Tensor) -> Minibatch:
        """What a flat buffer on the device holds."""
        rows, weights, *_ = split(self._shape, batches)
        data = self.data
        into = data.inputs, data.next_observation, data.reward, data.discount, data.weights
        self._unpack(rows, weights, self._discounts, *into)
        self._rest.copy_(batches[self._shape.rest])
        return data


class HostBatches:
    """A flat buffer on the host, into which the batch of each agent is copied."""

    numbers: Float32  # (names, G) of a stack's plan
    rewards: Float32  # (G, b)

    def __init__(self, shape: BatchShape, buffer: Tensor) -> None:
        """Fill `buffer` of `shape.floats` numbers."""
        self.shape, self.buffer = shape, buffer
        *views, normals, numbers = split(shape, buffer)
        self.numbers = numbers.numpy()
        self._normals = list(normals if shape.agents is not None else normals.unsqueeze(1))
        self._look_into(*(view.numpy() for view in views))

    def _look_into(self, sides: Float32, scalars: Float32) -> None:
        if self.shape.agents is None:
            sides, scalars = sides[:, None], scalars[:, None]
        seen = self.shape.observations
        self._observation, self._next_observation = sides[..., :seen]
        self._action = sides[0, ..., seen:]
        self.rewards, self._discount, self._weights = scalars[..., 0]

    def rows(self, slot: int) -> Float32 | None:
        """Where packed rows (b, width) of one agent may be put before `fill`, if anywhere."""
        return None

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
        self._put(batch, discount, slot)
        for draws in self._normals:
            torch.randn(draws[slot].shape, generator=generator, out=draws[slot])

    def _put(self, batch: Batch, discount: float, slot: int) -> None:
        self._observation[slot] = batch.observation
        self._next_observation[slot] = batch.next_observation
        self._action[slot] = batch.action
        self.rewards[slot] = batch.reward
        np.multiply(~batch.terminated, np.float32(discount), out=self._discount[slot])
        self._weights[slot] = batch.weights


class PackedBatches(HostBatches):
    """The same with packed rows: a memory that puts its rows there need not copy them again."""

    def _look_into(self, rows: Float32, weights: Float32) -> None:
        self._rows, self._weights = rows, weights[..., 0]
        self.rewards = rows[..., self.shape.layout.reward]

    def rows(self, slot: int) -> Float32 | None:
        """Where packed rows (b, width) of one agent may be put before `fill`."""
        rows: Float32 = self._rows[slot]
        return rows

    def _put(self, batch: Batch, discount: float, slot: int) -> None:
        """The `discount` is known on the device."""
        rows, at = self._rows[slot], self.shape.layout
        if not np.may_share_memory(rows, batch.observation):
            rows[:, at.observation] = batch.observation
            rows[:, at.action] = batch.action
            rows[:, at.reward] = batch.reward
            rows[:, at.next_observation] = batch.next_observation
            rows[:, at.terminated] = batch.terminated
        self._weights[slot] = batch.weights


def host_batches(shape: BatchShape, buffer: Tensor) -> HostBatches:
    """The batches of `shape` in a flat buffer on the host."""
    return (PackedBatches if shape.packed else HostBatches)(shape, buffer)

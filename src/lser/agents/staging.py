"""The way of a batch from the memory's arrays to the critics' inputs on the device."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lser.types import Batch


class Minibatch(NamedTuple):
    """A batch on the agent's device, scalars as columns; some fields are views of others."""

    inputs: Tensor  # (b, O + A) what a critic reads: observation and action
    observation: Tensor  # (b, O) a view of inputs
    action: Tensor  # (b, A) a view of inputs
    next_inputs: Tensor  # (b, O + A)
    next_observation: Tensor  # (b, O) a view of next_inputs
    next_action: Tensor  # (b, A) a view of next_inputs, for the agent to fill
    reward: Tensor  # (b, 1)
    discount: Tensor  # (b, 1) what the next value counts: 0 where terminated
    weights: Tensor  # (b, 1)


class Staging:
    """Arrays that are made once, and that the CPU's tensors share."""

    def __init__(
        self, rows: int, observation_dim: int, action_dim: int, device: torch.device
    ) -> None:
        """Make room for batches of `rows` transitions."""
        self.rows, self._split, self._actions = rows, observation_dim, action_dim
        self._device = device
        # Torch aligns memory and NumPy does not; a product's last bit can depend on it.
        self._host = torch.zeros(2, rows, observation_dim + action_dim), torch.zeros(3, rows, 1)
        inputs, self._scalars = (tensor.numpy() for tensor in self._host)
        self._observation, self._next_observation = inputs[..., :observation_dim]
        self._action = inputs[0, :, observation_dim:]
        self._loaded = self._views()

    def load(self, batch: Batch, discount: float) -> Minibatch:
        """Copy the batch in; the last one loaded is overwritten."""
        observations, actions = (self.rows, self._split), (self.rows, self._actions)
        if batch.observation.shape != observations or batch.action.shape != actions:
            raise ValueError(
                f"batch must have observations {observations} and actions {actions}, "
                f"got {batch.observation.shape} and {batch.action.shape}"
            )
        self._observation[:] = batch.observation
        self._next_observation[:] = batch.next_observation
        self._action[:] = batch.action
        reward, factor, weights = self._scalars[..., 0]
        reward[:] = batch.reward
        np.multiply(~batch.terminated, np.float32(discount), out=factor)
        weights[:] = batch.weights
        if self._device.type != "cpu":
            self._loaded = self._views()
        return self._loaded

    def _views(self) -> Minibatch:
        inputs, scalars = (tensor.to(self._device) for tensor in self._host)
        views = [
            view
            for side in inputs
            for view in (side, side[:, : self._split], side[:, self._split :])
        ]
        return Minibatch(*views, *scalars)

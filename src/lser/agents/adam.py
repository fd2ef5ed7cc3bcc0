"""Adam (Kingma and Ba, 2015) over one flat vector, or one of each agent of a stack."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lser.agents.kernels import Kernels
from lser.agents.perceptron import as_tensor


class Adam:
    """Moves `parameters` in place against `gradients`, with torch.optim.Adam's defaults.

    The number of steps is counted here on the host, one per agent: `plan` turns it into the two
    numbers of the next step, and `step` takes them, from the host or from a device.
    """

    def __init__(
        self, parameters: Tensor, gradients: Tensor, rates: Sequence[float], kernels: Kernels
    ) -> None:
        """Keep the two arrays (.., P); `step` reads the second and writes the first."""
        self._rates = np.array(rates, np.float64)
        self._rate = float(rates[0])
        self.steps = np.zeros(len(rates), np.int64)
        self.mean = torch.zeros_like(parameters)
        self.square = torch.zeros_like(parameters)
        self._stacked = parameters.ndim == 2
        self._step = kernels.adam
        vectors = (parameters, gradients, self.mean, self.square)
        self._operands = tuple(map(kernels.operand, vectors))

    def step(self) -> None:
        """One step of a single agent along the bias-corrected moments."""
        self.steps[0] += 1
        steps = int(self.steps[0])
        rate = self._rate / (1 - 0.9**steps)
        correction = (1 - 0.999**steps) ** -0.5
        self._step(*self._operands, np.float32(rate), np.float32(correction))

    def plan(self, active: NDArray[np.bool_], numbers: NDArray[np.float32]) -> None:
        """Count a step of the agents in `active` (G,); write rate and correction, (2, G)."""
        self.steps += active
        steps = np.maximum(self.steps, 1)  # an agent that never stepped must not divide by zero
        numbers[0] = self._rates / (1 - 0.9**steps)
        numbers[1] = (1 - 0.999**steps) ** -0.5

    def step_stack(self, rate: Tensor, correction: Tensor, active: Tensor) -> None:
        """One planned step of the agents with 1 in `active`; all three are (G, 1)."""
        self._step(*self._operands, rate, correction, active)

    def state_dict(self, slot: int = 0) -> dict[str, Any]:
        """Both moments and the number of steps of one agent."""
        moments = [m[slot] if self._stacked else m for m in (self.mean, self.square)]
        mean, square = (moment.cpu().clone() for moment in moments)
        return {"mean": mean, "square": square, "steps": int(self.steps[slot])}

    def load_state_dict(self, state: dict[str, Any], slot: int = 0) -> None:
        """Continue one agent from `state_dict()`."""
        for moment, name in ((self.mean, "mean"), (self.square, "square")):
            (moment[slot] if self._stacked else moment).copy_(as_tensor(state[name]))
        self.steps[slot] = int(state["steps"])

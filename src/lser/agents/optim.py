"""Adam (Kingma and Ba, 2015) over one flat vector."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from lser.agents.kernels import kernels_for
from lser.agents.networks import as_tensor


class Adam:
    """Moves `parameters` in place against `gradients`, with torch.optim.Adam's defaults."""

    def __init__(self, parameters: Tensor, gradients: Tensor, *, rate: float) -> None:
        """Keep the two vectors; `step` reads the second and writes the first."""
        self.rate = rate
        self._steps = 0
        self._mean = torch.zeros_like(parameters)
        self._square = torch.zeros_like(parameters)
        self._kernels = kernels_for(parameters.device)
        vectors = (parameters, gradients, self._mean, self._square)
        self._operands = tuple(map(self._kernels.operand, vectors))

    def step(self) -> None:
        """One step along the bias-corrected moments, betas .9 and .999, epsilon 1e-8."""
        self._steps += 1
        rate = self.rate / (1 - 0.9**self._steps)
        correction = (1 - 0.999**self._steps) ** -0.5
        self._kernels.adam(*self._operands, np.float32(rate), np.float32(correction))

    def state_dict(self) -> dict[str, Any]:
        """Both moments and the number of steps."""
        return {"mean": self._mean.clone(), "square": self._square.clone(), "steps": self._steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict()`."""
        self._mean.copy_(as_tensor(state["mean"]))
        self._square.copy_(as_tensor(state["square"]))
        self._steps = int(state["steps"])

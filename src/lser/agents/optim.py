"""Adam (Kingma and Ba, 2015) over one flat vector."""

from typing import Any

import torch
from torch import Tensor


class Adam:
    """Moves `parameters` in place against `gradients`, one fused call per step."""

    def __init__(self, parameters: Tensor, gradients: Tensor, *, rate: float) -> None:
        """Keep the two vectors; `step` reads the second and writes the first."""
        self.rate = rate
        self._parameters = parameters
        self._gradients = gradients
        self._mean = torch.zeros_like(parameters)
        self._square = torch.zeros_like(parameters)
        self._steps = torch.zeros((), device=parameters.device)

    def step(self) -> None:
        """One step with torch.optim.Adam's defaults: betas .9 and .999, epsilon 1e-8."""
        self._steps += 1
        torch._fused_adam_(
            [self._parameters],
            [self._gradients],
            [self._mean],
            [self._square],
            [],
            [self._steps],
            lr=self.rate,
            beta1=0.9,
            beta2=0.999,
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )

    def state_dict(self) -> dict[str, Any]:
        """Both moments and the number of steps."""
        return {
            "mean": self._mean.clone(),
            "square": self._square.clone(),
            "steps": self._steps.clone(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict()`."""
        self._mean.copy_(torch.as_tensor(state["mean"]))
        self._square.copy_(torch.as_tensor(state["square"]))
        self._steps.copy_(torch.as_tensor(state["steps"]))

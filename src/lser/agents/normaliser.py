"""Running mean and variance of observations, an option that is off by default."""

from typing import Any

import numpy as np

from lser.types import Float32


class Normaliser:
    """Standardises observations by the moments of all those seen while exploring."""

    def __init__(self, observation_dim: int) -> None:
        """Start as the identity."""
        self._count = 0
        self._mean = np.zeros(observation_dim)
        self._square = np.zeros(observation_dim)  # sum of squared deviations from the mean
        self._refresh()

    def see(self, observation: Float32) -> None:
        """Merge a block (N, O) into the moments (Chan et al., 1979)."""
        count = len(observation)
        total = self._count + count
        mean = observation.mean(0, dtype=np.float64)
        gap = mean - self._mean
        self._square += ((observation - mean) ** 2).sum(0) + gap**2 * self._count * count / total
        self._mean += gap * count / total
        self._count = total
        self._refresh()

    def __call__(self, observation: Float32) -> Float32:
        """Standardised observations; a feature that never varied is only centred."""
        return (observation - self._shift) * self._factor

    def state_dict(self) -> dict[str, Any]:
        """The moments."""
        return {"count": self._count, "mean": self._mean.copy(), "square": self._square.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict()`."""
        mean, square = (np.array(state[name], np.float64) for name in ("mean", "square"))
        if mean.shape != self._mean.shape or square.shape != self._mean.shape:
            raise ValueError(f"the saved normaliser has shapes {mean.shape} and {square.shape}")
        self._count, self._mean, self._square = int(state["count"]), mean, square
        self._refresh()

    def _refresh(self) -> None:
        deviation = np.sqrt(self._square / max(self._count, 1))
        self._shift = self._mean.astype(np.float32)
        self._factor = (1 / np.where(deviation > 0, deviation, 1.0)).astype(np.float32)

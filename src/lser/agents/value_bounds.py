"""Which values are possible: what the rewards that an agent has seen can add up to."""

from collections.abc import Sequence

import numpy as np

from lser.agents.params import ActorCriticParams
from lser.types import Float32


class ValueBounds:
    """The rewards that each of G agents has seen, and what its targets are clipped to."""

    def __init__(self, params: Sequence[ActorCriticParams]) -> None:
        self._params = list(params)
        self.given = any(p.value_bound is not None for p in params)  # whether anybody's are clipped
        self.automatic = np.array([p.value_bound == "auto" for p in params])
        # (G, 2) the lowest and the highest so far
        self.seen: Float32 = np.array([[np.inf, -np.inf]] * len(self._params), np.float32)

    def see(self, slot: int, rewards: Float32) -> None:
        """Widen the range of rewards seen by one agent."""
        found = self.seen[slot]
        found[0] = min(found[0], rewards.min())
        found[1] = max(found[1], rewards.max())

    def allowed(self, slot: int = 0) -> tuple[float, float]:
        """The lowest and highest value that rewards like those seen so far can add up to."""
        low, high = map(float, self.seen[slot])
        rest = 1 - self._params[slot].discount
        if low > high:
            return -np.inf, np.inf
        endless = [
            r / rest if rest else float(np.copysign(np.inf, r)) if r else 0.0 for r in (low, high)
        ]
        return min(low, endless[0]), max(high, endless[1])

    def limits(self, slot: int = 0) -> tuple[float, float]:
        """What one agent's targets are clipped to."""
        bound = self._params[slot].value_bound
        if bound is None:
            return -np.inf, np.inf
        low, high = self.allowed(slot) if bound == "auto" else bound
        return low, high

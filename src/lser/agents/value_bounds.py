"""Which values are possible: what the rewards that an agent has seen can add up to."""

from collections.abc import Sequence

import numpy as np

from lser.agents.params import ActorCriticParams
from lser.types import Bool, Float32, Float64


class ValueBounds:
    """The rewards that each of G agents has seen, and what its targets are clipped to."""

    def __init__(self, params: Sequence[ActorCriticParams]) -> None:
        self._params = list(params)
        self.given = any(p.value_bound is not None for p in params)  # whether anybody's are clipped
        self.automatic = np.array([p.value_bound == "auto" for p in params])
        # (G, 2) the lowest and the highest so far
        self.seen: Float32 = np.array([[np.inf, -np.inf]] * len(self._params), np.float32)
        self._told = np.full_like(self.seen, np.nan)  # what the limits below were found from
        self._limits: Float64 = np.empty((2, 0))

    def see(self, slot: int, rewards: Float32) -> None:
        """Widen the range of rewards seen by one agent."""
        found = self.seen[slot]
        found[0] = min(found[0], rewards.min())
        found[1] = max(found[1], rewards.max())

    def see_all(self, who: Bool, rewards: Float32) -> None:
        """The same for the agents in `who` (G,), whose batches have these `rewards` (G, b)."""
        if who.any():
            np.minimum(self.seen[:, 0], rewards.min(1), out=self.seen[:, 0], where=who)
            np.maximum(self.seen[:, 1], rewards.max(1), out=self.seen[:, 1], where=who)

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

    def all_limits(self) -> Float64:
        """The same for all agents, (2, G); ranges seldom widen, so it is seldom found anew."""
        if not np.array_equal(self._told, self.seen):
            self._told[:] = self.seen
            self._limits = np.array([self.limits(slot) for slot in range(len(self._params))]).T
        return self._limits

"""The linear bandit: ridge regression of clicks on observation x item vector.

`lser.agents.Ridge` regresses a page's reward on the direction of the action. Here every item shown
is a row of its own with its click: a page adds one Kronecker product to the sums, and the equations
are solved when a policy is published, not at every page.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lser.online.tower import with_one
from lser.types import Float32

LARGEST = 2_000  # unknowns; beyond, the normal equations take too long


class Bandit:
    """Expected clicks as oᵀ W x, in closed form from sums over all pages so far."""

    def __init__(self, observation_dim: int, item_dim: int, *, ridge: float = 10.0) -> None:
        """Start with W = 0; ValueError where there are too many unknowns."""
        unknowns = (observation_dim + 1) * item_dim
        if unknowns > LARGEST:
            raise ValueError(
                f"the bandit has (observation_dim + 1) * item_dim = {unknowns} unknowns, at most "
                f"{LARGEST} are possible; give fewer features or shorter vectors"
            )
        if not ridge > 0:
            raise ValueError(f"ridge must be positive, got {ridge}")
        self.shape = (observation_dim + 1, item_dim)
        self.gram: NDArray[np.float64] = np.eye(unknowns) * ridge
        self.moment: NDArray[np.float64] = np.zeros(unknowns)

    def see(self, observation: Float32, vectors: Float32, clicked: Float32) -> None:
        """Add one page: its observation (O,), item vectors (k, d) and clicks (k,)."""
        inputs = with_one(observation[None])[0].astype(np.float64)
        x = vectors.astype(np.float64)
        # the sum over items of (o ⊗ x)(o ⊗ x)ᵀ is ooᵀ ⊗ Σ xxᵀ
        self.gram += np.kron(np.outer(inputs, inputs), x.T @ x)
        self.moment += np.outer(inputs, clicked.astype(np.float64) @ x).ravel()

    def solve(self) -> Float32:
        """W, (O + 1, d)."""
        return np.linalg.solve(self.gram, self.moment).reshape(self.shape).astype(np.float32)

    def state(self) -> dict[str, Any]:
        """The sums."""
        return {"gram": self.gram.copy(), "moment": self.moment.copy()}

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state()`."""
        self.gram, self.moment = np.array(state["gram"]), np.array(state["moment"])

"""A user tower: a direction in the space of item vectors, fitted to clicks by their likelihood.

An item with vector x at place j is clicked by a user observed as o with probability
σ(f(o)·x + b_j); f is linear, or linear plus one hidden layer. The page for o is what is nearest
to f(o). Written in NumPy: at these sizes an update costs tens of microseconds.

It is not `lser.agents.ClickModel`, though both fit clicks by their likelihood. That one explores by
Thompson sampling and keeps the posterior's covariance, ((O + 1) d + 2) squared numbers inverted
every 64 updates: at 100 observed numbers and 32 dimensions 84 MB and seconds. It also takes a page
to be what its action shows in a fixed catalogue, and the clicks from the step of the profile; here
pages are drawn, catalogues change, places count, and which item was clicked is logged.
"""

from typing import Any

import numpy as np

from lser.types import Float32

_BETA, _GAMMA, _EPSILON = 0.9, 0.999, 1e-8  # Adam's


class Tower:
    """f and its optimiser."""

    def __init__(
        self,
        observation_dim: int,
        item_dim: int,
        *,
        places: int,
        hidden: int = 0,
        rate: float = 3e-3,
        shrinkage: float = 1e-4,
        seed: int = 0,
    ) -> None:
        """Start with f = 0, so that the first page is whatever the catalogue begins with."""
        for name, value, low in (("places", places, 1), ("hidden", hidden, 0)):
            if value < low:
                raise ValueError(f"{name} must be at least {low}, got {value}")
        if not 0 < rate < np.inf:
            raise ValueError(f"rate must be positive, got {rate}")
        rng = np.random.default_rng(seed)
        self.rate, self.shrinkage, self.hidden = rate, np.float32(shrinkage), hidden
        self.parameters: dict[str, Float32] = {
            "linear": np.zeros((observation_dim + 1, item_dim), np.float32),
            "places": np.full(places, -3.0, np.float32),
        }
        if hidden:
            first = rng.standard_normal((observation_dim + 1, hidden)) / np.sqrt(observation_dim)
            self.parameters["first"] = first.astype(np.float32)
            self.parameters["second"] = np.zeros((hidden, item_dim), np.float32)
        self._mean = {name: np.zeros_like(value) for name, value in self.parameters.items()}
        self._square = {name: np.zeros_like(value) for name, value in self.parameters.items()}
        self._steps = 0

    def learn(
        self, observation: Float32, vectors: Float32, clicked: Float32, shown: Float32
    ) -> Float32:
        """One step on pages: (b, O), (b, k, d), (b, k), (b, k); returns clicks minus expected."""
        inputs = with_one(observation)
        active, output = _forward(self.parameters, inputs)
        bias = self.parameters["places"][: clicked.shape[1]]
        logit = np.matmul(vectors, output[:, :, None])[:, :, 0] + bias
        error = (sigmoid(logit) - clicked) * shown  # (b, k)
        total = np.float32(1.0) / np.maximum(shown.sum(), 1.0)
        slope = np.matmul(error[:, None, :], vectors)[:, 0] * total  # (b, d)
        gradient = {"linear": inputs.T @ slope + self.shrinkage * self.parameters["linear"]}
        places = np.zeros_like(self.parameters["places"])
        places[: error.shape[1]] = error.sum(axis=0) * total
        gradient["places"] = places
        if active is not None:
            gradient["second"] = active.T @ slope + self.shrinkage * self.parameters["second"]
            back = (slope @ self.parameters["second"].T) * (active > 0)
            gradient["first"] = inputs.T @ back + self.shrinkage * self.parameters["first"]
        self._step(gradient)
        surprise: Float32 = -error.sum(axis=1)
        return surprise

    def _step(self, gradient: dict[str, Float32]) -> None:
        self._steps += 1
        first, second = 1 - _BETA**self._steps, 1 - _GAMMA**self._steps
        scale = np.float32(self.rate * np.sqrt(second) / first)
        for name, slope in gradient.items():
            mean, square = self._mean[name], self._square[name]
            mean += np.float32(1 - _BETA) * (slope - mean)
            square += np.float32(1 - _GAMMA) * (slope * slope - square)
            self.parameters[name] -= scale * mean / (np.sqrt(square) + np.float32(_EPSILON))

    def state(self) -> dict[str, Any]:
        """Parameters and optimiser, copied."""
        return {
            name: {key: value.copy() for key, value in part.items()}
            for name, part in (
                ("parameters", self.parameters), ("mean", self._mean), ("square", self._square)
            )
        } | {"steps": self._steps}  # fmt: skip

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state()`."""
        self.parameters = {key: np.array(value) for key, value in state["parameters"].items()}
        self._mean = {key: np.array(value) for key, value in state["mean"].items()}
        self._square = {key: np.array(value) for key, value in state["square"].items()}
        self._steps = int(state["steps"])


def direction(parameters: dict[str, Float32], observation: Float32) -> Float32:
    """f(o), (..., d), for observations (..., O)."""
    linear = parameters["linear"]
    output: Float32 = observation @ linear[:-1] + linear[-1]
    if "first" in parameters:
        first = parameters["first"]
        output += np.maximum(observation @ first[:-1] + first[-1], 0) @ parameters["second"]
    return output


def with_one(observation: Float32) -> Float32:
    """Observations (N, O) with a constant behind them."""
    out = np.ones((len(observation), observation.shape[1] + 1), np.float32)
    out[:, :-1] = observation
    return out


def sigmoid(logit: Float32) -> Float32:
    """1 / (1 + exp(-logit)), without overflow."""
    value: Float32 = np.float32(0.5) * (1 + np.tanh(np.float32(0.5) * logit))
    return value


def _forward(parameters: dict[str, Float32], inputs: Float32) -> tuple[Float32 | None, Float32]:
    output: Float32 = inputs @ parameters["linear"]
    if "first" not in parameters:
        return None, output
    active: Float32 = np.maximum(inputs @ parameters["first"], 0)
    return active, output + active @ parameters["second"]

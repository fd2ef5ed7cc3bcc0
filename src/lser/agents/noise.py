"""Exploration noise, one independent process per user stream."""

from typing import Any

import numpy as np

from lser.types import Bool, Float32


class Noise:
    """Ornstein-Uhlenbeck noise x <- x - theta x + sigma N(0, 1), or white noise at theta = 1.

    The stationary variance of x is sigma² / (1 - (1 - theta)²); `sample` returns `scale` times x.
    """

    def __init__(
        self,
        action_dim: int,
        theta: float,
        sigma: float,
        scale: float,
        *,
        rng: np.random.Generator,
    ) -> None:
        """Start every stream at 0."""
        if not 0 < theta <= 1:
            raise ValueError(f"noise_theta must be in (0, 1], got {theta}")
        for name, value in (("sigma", sigma), ("scale", scale)):
            if not 0 <= value < np.inf:
                raise ValueError(f"noise_{name} must be finite and not negative, got {value}")
        self._keep = np.float32(1 - theta)
        self._sigma = np.float32(sigma)
        self._scale = np.float32(scale)
        self._rng = rng
        self._state = np.zeros((0, action_dim), np.float32)  # (N, A)

    def sample(self, streams: int) -> Float32:
        """The next noise of every stream, (streams, A); another number of streams starts anew."""
        if streams != len(self._state):
            self._state = np.zeros((streams, self._state.shape[1]), np.float32)
        self._state *= self._keep
        self._state += self._sigma * self._rng.standard_normal(self._state.shape, np.float32)
        return self._scale * self._state

    def reset(self, done: Bool) -> None:
        """Return the streams marked in `done` (N,) to 0."""
        if len(self._state) == 0:  # nothing has been drawn yet
            return
        if done.shape != self._state.shape[:1]:
            raise ValueError(f"done must have shape {self._state.shape[:1]}, got {done.shape}")
        self._state[done] = 0.0

    def state_dict(self) -> dict[str, Any]:
        """The state of every stream and of the rng."""
        return {"streams": self._state.copy(), "rng": self._rng.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict()`."""
        streams = np.array(state["streams"], np.float32)
        if streams.ndim != self._state.ndim or streams.shape[1:] != self._state.shape[1:]:
            raise ValueError(f"the saved noise has shape {streams.shape}")
        self._state = streams
        self._rng.bit_generator.state = state["rng"]


class WeightNoise:
    """Exploration in parameters: a random linear layer beside the actor, one per user stream.

    It reads the direction of the observation and is drawn anew when a session ends, so a user meets
    one policy, not a different one on every page; each action component moves with deviation
    `scale` over layers.
    """

    def __init__(
        self, observation_dim: int, action_dim: int, scale: float, *, rng: np.random.Generator
    ) -> None:
        """Start without streams."""
        self._scale = np.float32(scale)
        self._rng = rng
        self._weights = np.zeros((0, observation_dim, action_dim), np.float32)  # (N, O, A)

    def sample(self, observation: Float32) -> Float32:
        """What the layers add to actions (N, A); another number of streams starts anew."""
        if len(observation) != len(self._weights):
            self._weights = np.zeros((len(observation), *self._weights.shape[1:]), np.float32)
            self.reset(np.ones(len(observation), np.bool_))
        length = np.linalg.norm(observation, axis=1, keepdims=True)
        moved: Float32 = np.einsum("no,noa->na", observation / (length + 1e-8), self._weights)
        return moved

    def reset(self, done: Bool) -> None:
        """Draw the layers of the streams marked in `done` (N,) anew."""
        if len(self._weights):
            shape = (int(done.sum()), *self._weights.shape[1:])
            self._weights[done] = self._scale * self._rng.standard_normal(shape, np.float32)

    def state_dict(self) -> dict[str, Any]:
        """The layers and the rng."""
        return {"weights": self._weights.copy(), "rng": self._rng.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict()`."""
        weights = np.array(state["weights"], np.float32)
        if weights.ndim != 3 or weights.shape[1:] != self._weights.shape[1:]:
            raise ValueError(f"the saved weight noise has shape {weights.shape}")
        self._weights = weights
        self._rng.bit_generator.state = state["rng"]

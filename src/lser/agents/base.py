"""The protocol every agent keeps."""

from typing import Any, NamedTuple, Protocol

from lser.types import Batch, Bool, Float32


class Learned(NamedTuple):
    """What one update did: named losses and the signed TD error of every sample."""

    losses: dict[str, float]
    td_errors: Float32  # (b,)


class Agent(Protocol):
    """A continuous-action learner over N user streams."""

    def act(self, observation: Float32, *, explore: bool = False) -> Float32:
        """Actions (N, A) within the Box bounds for observations (N, O)."""
        ...

    def end_sessions(self, done: Bool) -> None:
        """Forget per-stream exploration state (noise) where a session just ended, (N,)."""
        ...

    def learn(self, batch: Batch) -> Learned:
        """One gradient update of critic and actor, and of the target networks."""
        ...

    def stop_exploring(self) -> None:
        """From now on `explore=True` acts like `explore=False`."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Networks, optimisers, noise and rngs as nested dicts of tensors, arrays and numbers."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state_dict()`."""
        ...

"""The protocol every agent keeps."""

from typing import Any, NamedTuple, Protocol

from lser.types import Batch, Bool, Float32, Transitions


class Values(NamedTuple):
    """What the first critic says of a batch, to see values that leave what rewards allow."""

    replayed_mean: float  # of the replayed actions
    replayed_largest: float
    own_mean: float  # of the actor's own actions
    own_largest: float
    spread: float  # deviation of values over random actions, mean over the batch
    saturated: float  # share of the actor's action components within 1 % of a bound
    bound_low: float  # what rewards seen so far allow
    bound_high: float


class Learned(NamedTuple):
    """What one update did: named losses, the signed TD error of every sample, and now and then
    the critic's values."""

    losses: dict[str, float]
    td_errors: Float32  # (b,)
    values: Values | None = None


class Agent(Protocol):
    """A continuous-action learner over N user streams.

    One that has `observe` as well (`Observer`) is told of every transition, once, as it is stored.
    """

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


class Observer(Protocol):
    """An agent that counts or learns from every transition, beside what is replayed."""

    def observe(self, transitions: Transitions) -> None:
        """Take a block of new transitions into account."""
        ...

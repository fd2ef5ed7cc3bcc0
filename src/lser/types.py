"""What travels between layers: blocks of transitions, sampled batches, a catalogue of items."""

from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]
Horizon = Literal["continuing", "session"]
# Whether traffic goes on when a user leaves, or a session is all there is (training/traffic.py).
HORIZONS: tuple[Horizon, ...] = ("continuing", "session")


class Transitions(NamedTuple):
    """A block: stacked transitions of one vector step, or of any N >= 1 steps.

    Row i of consecutive blocks belongs to the same stream of users, so memories that follow
    sessions (returns, hindsight goals) can tell one stream from the next. A session ends at a row
    with ``terminated`` or ``truncated`` set; only ``terminated`` stops bootstrapping.
    """

    observation: Float32  # (N, O)
    action: Float32  # (N, A)
    reward: Float32  # (N,)
    next_observation: Float32  # (N, O)
    terminated: Bool  # (N,)
    truncated: Bool  # (N,)


class Batch(NamedTuple):
    """What a memory replays: the six fields of the transitions, their ids and their weights."""

    observation: Float32  # (b, O)
    action: Float32  # (b, A)
    reward: Float32  # (b,)
    next_observation: Float32  # (b, O)
    terminated: Bool  # (b,)
    truncated: Bool  # (b,)
    ids: Int64  # (b,) never repeat over the life of a memory
    weights: Float32  # (b,) importance weights; ones where the memory has none


class Layout(NamedTuple):
    """Which columns of a packed row hold what; the two flags are 0.0 or 1.0."""

    observation: slice
    action: slice
    reward: int
    next_observation: slice
    terminated: int
    truncated: int
    width: int

    @classmethod
    def of(cls, observation_dim: int, action_dim: int) -> Self:
        """The layout [observation | action | reward | next_observation | two flags]."""
        reward = observation_dim + action_dim
        ends = reward + 1 + observation_dim
        return cls(
            slice(0, observation_dim),
            slice(observation_dim, reward),
            reward,
            slice(reward + 1, ends),
            ends,
            ends + 1,
            ends + 2,
        )


class Profile(NamedTuple):
    """Where an observation keeps the running mean of the clicked items' vectors."""

    start: int  # columns of the observation; as many first components of the vectors
    stop: int
    memory: float  # weight of the newest page


class Items(NamedTuple):
    """What a recommender knows of its own catalogue: an action shows the items it scores highest.

    A score is the inner product of the action with the item's vector.
    """

    vectors: Float32  # (M, A)
    shown: int  # items on a page
    profile: Profile | None = None

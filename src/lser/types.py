"""The two values that travel between layers: a block of transitions and a sampled batch."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


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

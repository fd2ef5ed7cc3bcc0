"""Follow each stream's open session, and hand a session over when it ends.

Row i of consecutive blocks is one stream of users; a session ends at a row with `terminated` or
`truncated` set. A block of another size than the last starts new streams: the sessions open until
then are handed over as they are. So is a session that reaches `limit` steps, so that a stream
without ends does not grow for ever.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from lser.types import Bool, Float32, Int64

_FIRST = 16  # steps a stream has room for before its first growth


class Session(NamedTuple):
    """The steps of one session in order."""

    ids: Int64  # (T,)
    reward: Float32  # (T,)


class Sessions:
    """The open sessions of all streams, as (streams, steps) arrays that grow by doubling."""

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, got {limit}")
        self.limit = limit
        self._start(0)

    def _start(self, streams: int) -> None:
        self._length = np.zeros(streams, dtype=np.int64)
        self._ids = np.empty((streams, _FIRST), dtype=np.int64)
        self._reward = np.empty((streams, _FIRST), dtype=np.float32)

    def follow(self, ids: Int64, reward: Float32, ended: Bool) -> list[Session]:
        """Add one step to each of N streams; returns the sessions that are over."""
        over: list[Session] = []
        if len(ids) != len(self._length):
            over = [self._take(stream) for stream in np.flatnonzero(self._length)]
            self._start(len(ids))
        room = self._ids.shape[1]
        if self._length.size and self._length.max() == room:
            self._ids = np.concatenate((self._ids, np.empty_like(self._ids)), axis=1)
            self._reward = np.concatenate((self._reward, np.empty_like(self._reward)), axis=1)
        streams = np.arange(len(ids))
        self._ids[streams, self._length] = ids
        self._reward[streams, self._length] = reward
        self._length += 1
        done = np.flatnonzero(ended | (self._length >= self.limit))
        return over + [self._take(stream) for stream in done]

    def _take(self, stream: int | np.int64) -> Session:
        steps = self._length[stream]
        self._length[stream] = 0
        return Session(self._ids[stream, :steps].copy(), self._reward[stream, :steps].copy())

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The open sessions as named arrays, for a memory's `state()`."""
        return {
            "session_length": self._length.copy(),
            "session_ids": self._ids.copy(),
            "session_reward": self._reward.copy(),
        }

    @classmethod
    def from_arrays(cls, limit: int, arrays: dict[str, NDArray[np.generic]]) -> Self:
        """Rebuild from `arrays()`; entries of other names are left alone."""
        sessions = cls(limit)
        sessions._length = arrays["session_length"].astype(np.int64)
        sessions._ids = arrays["session_ids"].astype(np.int64)
        sessions._reward = arrays["session_reward"].astype(np.float32)
        return sessions


def discounted_returns(reward: Float32, discount: float) -> NDArray[np.float64]:
    """The discounted sum of a session's rewards from each step to its end, (T,)."""
    returns = np.empty(len(reward), dtype=np.float64)
    total = 0.0
    for step in range(len(reward) - 1, -1, -1):
        total = float(reward[step]) + discount * total
        returns[step] = total
    return returns

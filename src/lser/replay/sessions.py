"""Follow each stream's open session, and hand a session over when it ends.

A stream is a sequence of users, one after the other; a session ends at a row with `terminated` or
`truncated` set. Only open sessions are remembered, so streams may come and go. A session that
reaches `limit` steps is handed over as if it had ended, so that a stream without ends does not
grow for ever.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lser.types import Bool, Float32, Int64


class Session(NamedTuple):
    """The steps of one session in order."""

    ids: Int64  # (T,)
    reward: Float32  # (T,)


def stream_labels(streams: ArrayLike | None, rows: int) -> Int64:
    """The stream of each of a block's rows, (N,): row i is stream i unless `streams` says."""
    if streams is None:
        return np.arange(rows)
    labels = np.asarray(streams)
    if labels.shape != (rows,) or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"streams must be {rows} integers, got {streams!r}")
    return labels.astype(np.int64)


class Sessions:
    """The open session of every stream."""

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, got {limit}")
        self.limit = limit
        self._open: dict[int, tuple[list[int], list[float]]] = {}

    def follow(self, streams: Int64, ids: Int64, reward: Float32, ended: Bool) -> list[Session]:
        """Add a block's rows to their streams, in order; returns the sessions that are over."""
        over: list[Session] = []
        rows = zip(streams.tolist(), ids.tolist(), reward.tolist(), ended.tolist(), strict=True)
        for stream, identity, gain, end in rows:
            steps = self._open.get(stream)
            if steps is None:
                steps = self._open[stream] = ([], [])
            steps[0].append(identity)
            steps[1].append(gain)
            if end or len(steps[0]) >= self.limit:
                del self._open[stream]
                over.append(Session(np.array(steps[0]), np.array(steps[1], dtype=np.float32)))
        return over

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The open sessions as named arrays, for a memory's `state()`."""
        steps = list(self._open.values())
        return {
            "session_stream": np.array(list(self._open), dtype=np.int64),
            "session_length": np.array([len(ids) for ids, _ in steps], dtype=np.int64),
            "session_ids": np.array([i for ids, _ in steps for i in ids], dtype=np.int64),
            "session_reward": np.array([r for _, gains in steps for r in gains], dtype=np.float32),
        }

    @classmethod
    def from_arrays(cls, limit: int, arrays: dict[str, NDArray[np.generic]]) -> Self:
        """Rebuild from `arrays()`; entries of other names are left alone."""
        sessions = cls(limit)
        ids = arrays["session_ids"].tolist()
        reward = arrays["session_reward"].tolist()
        first = 0
        streams, lengths = arrays["session_stream"].tolist(), arrays["session_length"].tolist()
        for stream, length in zip(streams, lengths, strict=True):
            sessions._open[stream] = (ids[first : first + length], reward[first : first + length])
            first += length
        return sessions


def discounted_returns(reward: Float32, discount: float) -> NDArray[np.float64]:
    """The discounted sum of a session's rewards from each step to its end, (T,)."""
    returns = np.empty(len(reward), dtype=np.float64)
    total = 0.0
    for step in range(len(reward) - 1, -1, -1):
        total = float(reward[step]) + discount * total
        returns[step] = total
    return returns

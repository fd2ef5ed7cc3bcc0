"""Follow each stream's open session, and hand a session over when it ends.

A stream is a sequence of users, one after the other; a session ends at a row with `terminated` or
`truncated` set. Only open sessions are remembered, so streams may come and go. A session that
reaches `limit` steps is handed over as if it had ended, so that a stream without ends does not
grow for ever.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lser.checks import check_fraction
from lser.types import Bool, Float32, Float64, Int64

_LIMIT = 10_000  # steps after which a session counts as ended
_LARGEST = float(np.finfo(np.float32).max)


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


def discounted_returns(reward: Float32, discount: float) -> Float64:
    """The discounted sum of a session's rewards from each step to its end, (T,)."""
    returns = np.empty(len(reward), dtype=np.float64)
    total = 0.0
    for step in range(len(reward) - 1, -1, -1):
        total = float(reward[step]) + discount * total
        returns[step] = total
    return returns


class Returns:
    """Order keys that come late: the discounted returns of the sessions that end."""

    def __init__(self, discount: float) -> None:
        self.discount = check_fraction("discount", discount)
        self._sessions = Sessions(_LIMIT)
        self._slots: dict[int, int] = {}  # of the transitions of open sessions, by id

    def follow(
        self, streams: Int64, ids: Int64, slots: Int64, reward: Float32, ended: Bool
    ) -> tuple[Int64, Int64, Float32]:
        """Add a block; returns slots, ids and returns of the transitions whose sessions ended.

        Dropped transitions (id -1) have no key of their own but count in the others' returns.
        """
        self._slots.update(zip(ids.tolist(), slots.tolist(), strict=True))
        over = self._sessions.follow(streams, ids, reward, ended)
        late = [i for session in over for i in session.ids.tolist()]
        keys = [discounted_returns(session.reward, self.discount) for session in over]
        merged = np.concatenate([np.empty(0), *keys]).clip(-_LARGEST, _LARGEST)
        at = [self._slots.pop(i) if i >= 0 else -1 for i in late]
        return np.array(at, np.int64), np.array(late, np.int64), merged.astype(np.float32)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The open sessions as named arrays, for a memory's `state()`."""
        sessions = self._sessions.arrays()
        slots = [self._slots[i] if i >= 0 else -1 for i in sessions["session_ids"].tolist()]
        return {**sessions, "session_slots": np.array(slots, np.int64)}

    @classmethod
    def from_arrays(cls, discount: object, arrays: dict[str, NDArray[np.generic]]) -> Self:
        """Rebuild from `arrays()`."""
        returns = cls(check_fraction("discount", discount))
        returns._sessions = Sessions.from_arrays(_LIMIT, arrays)
        ids, slots = arrays["session_ids"].tolist(), arrays["session_slots"].tolist()
        returns._slots = dict(zip(ids, slots, strict=True))
        return returns


class Tails:
    """The id of the newest step of every open session, by stream."""

    def __init__(self) -> None:
        self._last: dict[int, int] = {}

    def follow(self, streams: Int64, ids: Int64, ended: NDArray[np.bool_]) -> Int64:
        """Take in a block; returns the id before each of its rows in its session, or -1."""
        previous = []
        for stream, identity, end in zip(
            streams.tolist(), ids.tolist(), ended.tolist(), strict=True
        ):
            previous.append(self._last.pop(stream, -1))
            if not end:
                self._last[stream] = identity
        return np.array(previous, dtype=np.int64)

    def array(self) -> Int64:
        """The open sessions as pairs of stream and id, (streams, 2)."""
        return np.array(list(self._last.items()), dtype=np.int64).reshape(-1, 2)

    def restore(self, pairs: NDArray[np.generic]) -> None:
        """Continue from what `array` returned."""
        self._last = {int(stream): int(identity) for stream, identity in pairs.tolist()}

"""Follow each stream's open session, and hand a session over when it ends.

A stream is a sequence of users, one after the other; a session ends at a row with `terminated` or
`truncated` set. Only open sessions are remembered, so streams may come and go. A session that
reaches `limit` steps is handed over as if it had ended, and of too many open ones those open for
longest are given up, so that neither streams without ends nor users who just leave grow for ever.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lser.checks import as_array, check_fraction
from lser.types import Bool, Float32, Float64, Int64

_FEWEST = 1_000  # open sessions that even a small memory follows
_LIMIT = 10_000  # steps after which a session counts as ended
_LARGEST = float(np.finfo(np.float32).max)


_Steps = tuple[list[int], list[float]]  # ids and rewards of an open session


class Session(NamedTuple):
    """The steps of one session in order."""

    ids: Int64  # (T,)
    reward: Float32  # (T,)


def stream_labels(streams: ArrayLike | None, rows: int) -> Int64:
    """The stream of each of a block's rows, (N,): row i is stream i unless `streams` says."""
    if streams is None:
        return np.arange(rows)
    try:
        labels = as_array(streams)
    except ValueError as error:
        raise ValueError(f"streams is not an array: {error}") from None
    if labels.shape != (rows,) or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"streams must be {rows} integers, got {streams!r}")
    if labels.dtype == np.uint64 and labels.max(initial=0) >= 2**63:
        raise ValueError(f"streams must be below 2**63, got {labels.max()}")
    return labels.astype(np.int64)


class Sessions:
    """The open session of every stream: at most `most` of them, the longest open are given up."""

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, got {limit}")
        self.limit = limit
        self.most = max(limit, _FEWEST)
        self._open: dict[int, _Steps] = {}

    def follow(self, streams: Int64, ids: Int64, reward: Float32, ended: Bool) -> list[Session]:
        """Add a block's rows to their streams, in order; returns the sessions that are over."""
        over, change = self.following(streams, ids, reward, ended)
        change()
        return over

    def following(
        self, streams: Int64, ids: Int64, reward: Float32, ended: Bool
    ) -> tuple[list[Session], Callable[[], None]]:
        """What `follow` would return, and what does it: the same when done twice."""
        labels = streams.tolist()
        rows = zip(labels, ids.tolist(), reward.tolist(), ended.tolist(), strict=True)
        if len(set(labels)) == len(labels):
            return self._following_once(rows)
        over: list[Session] = []
        news: dict[int, _News] = {}
        for stream, identity, gain, end in rows:
            steps = news.get(stream)
            if steps is None:
                before = self._open.get(stream)
                steps = news[stream] = _News(before, 0 if before is None else len(before[0]))
            elif steps.over:  # a new session is the youngest
                del news[stream]
                steps = news[stream] = _News(None, 0)
            steps.ids.append(identity)
            steps.reward.append(gain)
            if end or steps.length + len(steps.ids) >= self.limit:
                steps.over = True
                over.append(steps.session())
        return over, partial(self._take, news)

    def _following_once(
        self, rows: Iterable[tuple[int, int, float, bool]]
    ) -> tuple[list[Session], Callable[[], None]]:
        """`following` where every stream has one row: the usual block, in half the time."""
        over: list[Session] = []
        news: list[tuple[int, _Steps | None, int, int, float, bool]] = []
        find, limit = self._open.get, self.limit
        for stream, identity, gain, end in rows:
            before = find(stream)
            length = 0 if before is None else len(before[0])
            ends = end or length + 1 >= limit
            if ends:
                held, gains = before or ([], [])
                both = np.array([*held, identity]), np.array([*gains, gain], dtype=np.float32)
                over.append(Session(*both))
            news.append((stream, before, length, identity, gain, ends))
        return over, partial(self._take_once, news)

    def _take_once(self, news: "list[tuple[int, _Steps | None, int, int, float, bool]]") -> None:
        held = self._open
        for stream, before, length, identity, gain, ends in news:
            if ends:
                held.pop(stream, None)
            elif before is None:
                held[stream] = ([identity], [gain])
            else:
                ids, reward = before
                if len(ids) == length:  # else it is there already
                    ids.append(identity)
                if len(reward) == length:
                    reward.append(gain)
        while len(held) > self.most:
            held.pop(next(iter(held)))

    def _take(self, news: "dict[int, _News]") -> None:
        for stream, steps in news.items():
            if steps.over or steps.before is None:
                self._open.pop(stream, None)
            if not steps.over:
                ids, reward = steps.before or ([], [])
                ids[steps.length :] = steps.ids
                reward[steps.length :] = steps.reward
                self._open[stream] = (ids, reward)
        while len(self._open) > self.most:
            self._open.pop(next(iter(self._open)))

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
        names = ("session_stream", "session_length", "session_ids")
        if any(arrays[name].dtype != np.int64 or arrays[name].ndim != 1 for name in names):
            raise ValueError("the saved sessions are not named by vectors of integers")
        ids, reward = arrays["session_ids"].tolist(), arrays["session_reward"].tolist()
        streams, lengths = arrays["session_stream"].tolist(), arrays["session_length"].tolist()
        whole = len(ids) == len(reward) == sum(lengths) and len(streams) == len(set(streams))
        if not whole or min(lengths, default=1) < 1 or min(ids, default=-1) < -1:
            raise ValueError("the saved sessions do not fit each other")
        if not np.isfinite(arrays["session_reward"].astype(np.float64)).all():
            raise ValueError("the saved sessions hold rewards that are not finite")
        first = 0
        for stream, length in zip(streams, lengths, strict=True):
            sessions._open[stream] = (ids[first : first + length], reward[first : first + length])
            first += length
        return sessions


class _News:
    """What a block adds to a stream's session, of which `before` holds `length` steps."""

    def __init__(self, before: _Steps | None, length: int) -> None:
        self.before, self.length = before, length
        self.ids: list[int] = []
        self.reward: list[float] = []
        self.over = False

    def session(self) -> Session:
        """All its steps."""
        ids, reward = self.before or ([], [])
        ids, reward = ids[: self.length] + self.ids, reward[: self.length] + self.reward
        return Session(np.array(ids), np.array(reward, dtype=np.float32))


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

    def __init__(self, discount: float, capacity: int) -> None:
        self.discount = check_fraction("discount", discount)
        self.capacity = capacity
        self._sessions = Sessions(_LIMIT)
        self._sessions.most = max(capacity, _FEWEST)

    def following(
        self, streams: Int64, ids: Int64, reward: Float32, ended: Bool
    ) -> tuple[tuple[Int64, Int64, Float32], Callable[[], None]]:
        """Slots, ids and returns of what a block completes; and what takes the block in.

        Dropped transitions (id -1) have no key of their own but count in the others' returns.
        """
        over, change = self._sessions.following(streams, ids, reward, ended)
        late = np.concatenate([np.empty(0, np.int64), *(session.ids for session in over)])
        keys = [discounted_returns(session.reward, self.discount) for session in over]
        merged = np.concatenate([np.empty(0), *keys]).clip(-_LARGEST, _LARGEST)
        slots = np.where(late >= 0, late % self.capacity, -1)
        return (slots, late, merged.astype(np.float32)), change

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The open sessions as named arrays, for a memory's `state()`."""
        return self._sessions.arrays()

    def restored(self, arrays: dict[str, NDArray[np.generic]]) -> Self:
        """The same with the sessions of `arrays()`."""
        returns = type(self)(self.discount, self.capacity)
        returns._sessions = Sessions.from_arrays(_LIMIT, arrays)
        returns._sessions.most = self._sessions.most
        return returns


class Tails:
    """The id of the newest step of every open session, by stream: of at most `most` streams."""

    def __init__(self, most: int) -> None:
        self.most = max(most, _FEWEST)
        self._last: dict[int, int] = {}

    def following(
        self, streams: Int64, ids: Int64, ended: NDArray[np.bool_]
    ) -> tuple[Int64, Callable[[], None]]:
        """The id before each of a block's rows in its session, or -1; and what takes them in."""
        labels = streams.tolist()
        newest = np.where(ended, -1, ids).tolist()  # -1: over
        if len(set(labels)) == len(labels):  # every stream has one row: the usual block
            previous = [self._last.get(stream, -1) for stream in labels]
            news = dict(zip(labels, newest, strict=True))
        else:
            previous, news = [], {}
            for stream, identity in zip(labels, newest, strict=True):
                before = news.pop(stream, None)
                previous.append(self._last.get(stream, -1) if before is None else before)
                news[stream] = identity
        return np.array(previous, dtype=np.int64), partial(self._take, news)

    def _take(self, news: dict[int, int]) -> None:
        for stream, identity in news.items():
            self._last.pop(stream, None)
            if identity >= 0:
                self._last[stream] = identity
        while len(self._last) > self.most:
            self._last.pop(next(iter(self._last)))

    def array(self) -> Int64:
        """The open sessions as pairs of stream and id, (streams, 2)."""
        return np.array(list(self._last.items()), dtype=np.int64).reshape(-1, 2)

    def restore(self, pairs: NDArray[np.generic]) -> None:
        """Continue from what `array` returned."""
        if pairs.dtype != np.int64 or pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(f"tails has shape {pairs.shape} of {pairs.dtype}")
        if (pairs[:, 1].astype(np.int64) < 0).any():
            raise ValueError("tails names steps that no session can have")
        self._last = {int(stream): int(identity) for stream, identity in pairs.tolist()}

"""Successful sessions: which ones they are, and the zones of slots that hold them whole."""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from math import ceil

import numpy as np

from lser.types import Int64


class RunningQuantile:
    """The quantile of the last `window` scores."""

    def __init__(self, quantile: float, window: int, scores: Iterable[float] = ()) -> None:
        self.quantile = quantile
        self.scores = deque(scores, maxlen=window)  # oldest first
        self._sorted = sorted(self.scores)

    def reaches(self, score: float) -> bool:
        """Take in a score; says whether it is at or above the quantile, itself included."""
        if len(self.scores) == self.scores.maxlen:
            del self._sorted[bisect_left(self._sorted, self.scores[0])]
        self.scores.append(score)
        insort(self._sorted, score)
        rank = max(ceil(self.quantile * len(self._sorted)), 1)
        return score >= self._sorted[rank - 1]


class Zone:
    """Slots `first` to `first + size` that hold whole sessions, the oldest making room."""

    def __init__(self, first: int, size: int) -> None:
        self.first = first
        self.size = size
        self.sessions: list[tuple[int, int]] = []  # offset and length, oldest first
        self._cursor = 0

    def make_room(self, length: int) -> tuple[Int64, Int64]:
        """Place a session of `length` <= size steps; returns its slots and the slots it empties."""
        if self._cursor + length > self.size:
            self._cursor = 0
        start, end = self._cursor, self._cursor + length
        gone = [s for s in self.sessions if s[0] < end and start < s[0] + s[1]]
        self.sessions = [s for s in self.sessions if s not in gone]
        self.sessions.append((start, length))
        self._cursor = end
        emptied = [np.arange(offset, offset + steps) for offset, steps in gone]
        slots = self.first + np.concatenate([np.empty(0, dtype=np.int64), *emptied])
        return self.first + np.arange(start, end), slots

    def restore(self, sessions: Iterable[tuple[int, int]]) -> None:
        """Continue with these sessions, oldest first."""
        self.sessions = [(int(offset), int(steps)) for offset, steps in sessions]
        self._cursor = sum(self.sessions[-1]) if self.sessions else 0

"""Which sessions are successful, and the zones that keep whole ones (DER)."""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

import numpy as np

from lser.types import Int64


class RunningQuantile:
    """The quantile of the last `window` scores."""

    def __init__(self, quantile: float, window: int, scores: Iterable[float] = ()) -> None:
        self.quantile = quantile
        self.scores = deque(scores, maxlen=window)  # oldest first
        self._sorted = sorted(self.scores)
        self._torn = False  # `_sorted` may not be what it says

    def reaches(self, score: float) -> bool:
        """Take in a score; says whether it is at or above the quantile, itself included.

        The same object a second time is not taken in again: a call that was broken off may be
        repeated.
        """
        taken = bool(self.scores) and self.scores[-1] is score
        if self._torn:
            if not taken:
                self.scores.append(score)
            self._sorted = sorted(self.scores)
        elif not taken:
            self._torn = True
            if len(self.scores) == self.scores.maxlen:
                del self._sorted[bisect_left(self._sorted, self.scores[0])]
            self.scores.append(score)
            insort(self._sorted, score)
        self._torn = False
        rank = max(ceil(self.quantile * len(self._sorted)), 1)
        return score >= self._sorted[rank - 1]


class Zone:
    """Slots `first` to `first + size` that hold whole sessions, the oldest making room."""

    def __init__(self, first: int, size: int) -> None:
        self.first = first
        self.size = size
        self.sessions: list[tuple[int, int]] = []  # offset and length, oldest first
        self._cursor = 0

    def making_room(self, length: int) -> "Room":
        """Where a session of `length` <= size steps would go, and what would go for it."""
        start = 0 if self._cursor + length > self.size else self._cursor
        end = start + length
        gone = [s for s in self.sessions if s[0] < end and start < s[0] + s[1]]
        kept = [s for s in self.sessions if s not in gone]
        emptied = [np.arange(offset, offset + steps) for offset, steps in gone]
        slots = self.first + np.concatenate([np.empty(0, dtype=np.int64), *emptied])
        return Room([*kept, (start, length)], self.first + np.arange(start, end), slots)

    def make_room(self, length: int) -> tuple[Int64, Int64]:
        """Place a session of `length` <= size steps; returns its slots and the slots it empties."""
        room = self.making_room(length)
        self.restore(room.sessions)
        return room.slots, room.emptied

    def restore(self, sessions: Iterable[tuple[int, int]]) -> None:
        """Continue with these sessions, oldest first; ValueError where the zone has no room."""
        found = [(int(offset), int(steps)) for offset, steps in sessions]
        for offset, steps in found:
            if steps < 1 or offset < 0 or offset + steps > self.size:
                raise ValueError(
                    f"a session at {offset} of {steps} is not in a zone of {self.size}"
                )
        self._cursor = sum(found[-1]) if found else 0
        self.sessions = found


class Room(NamedTuple):
    """A place for a session in a zone."""

    sessions: list[tuple[int, int]]  # of the zone from then on
    slots: Int64
    emptied: Int64  # the slots of sessions that make room

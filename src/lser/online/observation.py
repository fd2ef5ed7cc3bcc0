"""What is known about a visitor, as one vector of a fixed, versioned layout.

Layout 1: the caller's features | running mean of the vectors of clicked items | of shown items |
pages p/(p+10), clicks c/(c+10), clicked share of the last page, pause since the last page
s/(s+3600), and the time of day as sine and cosine. Everything comes from the log: the states here
are a fold of decisions and feedback, and after a restart they are the same again.
"""

import math
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

from lser.compiled import kernel
from lser.types import Float32

LAYOUT = 1
MEMORY = 0.3  # weight of the newest page in the running means
_COUNTS = 6
_SCALE = 10  # a count n is observed as n / (n + 10)
_PAUSE = 3_600.0
_DAY = 86_400.0
# columns of a visitor's numbers
PAGES, CLICKS, LAST, SHARE, SHOWN, SESSION = range(6)


class Layout(NamedTuple):
    """Where the parts of an observation lie."""

    features: int  # numbers given by the caller
    dim: int  # of the item vectors
    version: int = LAYOUT

    @property
    def width(self) -> int:
        """Numbers in an observation."""
        return self.features + 2 * self.dim + _COUNTS


class Visitor(NamedTuple):
    """One visitor's state; the arrays are views of the table."""

    vectors: Float32  # (features + 2 * dim,)
    numbers: "np.ndarray[Any, np.dtype[np.float64]]"  # see the columns above


class Visitors:
    """The states of the latest visitors, bounded: the one unseen longest gives way."""

    def __init__(self, layout: Layout, capacity: int) -> None:
        """Keep at most `capacity` visitors."""
        if layout.version != LAYOUT:
            raise ValueError(f"observation layout {layout.version}; this release has {LAYOUT}")
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, got {capacity}")
        self.layout, self.capacity = layout, capacity
        self._row: OrderedDict[str, int] = OrderedDict()
        self._vectors = np.zeros((64, layout.width - _COUNTS), np.float32)
        self._numbers = np.zeros((64, 6), np.float64)

    def __len__(self) -> int:
        return len(self._row)

    def find(self, user: str) -> Visitor | None:
        """A visitor who is known."""
        row = self._row.get(user)
        return None if row is None else Visitor(self._vectors[row], self._numbers[row])

    def meet(self, user: str) -> Visitor:
        """A visitor, known or new."""
        row = self._row.get(user)
        if row is not None:
            self._row.move_to_end(user)
            return Visitor(self._vectors[row], self._numbers[row])
        if len(self._row) >= self.capacity:
            _, row = self._row.popitem(last=False)
            self._vectors[row] = 0
            self._numbers[row] = 0
        else:
            row = len(self._row)
            if row >= len(self._vectors):
                self._vectors = np.concatenate((self._vectors, np.zeros_like(self._vectors)))
                self._numbers = np.concatenate((self._numbers, np.zeros_like(self._numbers)))
        self._row[user] = row
        return Visitor(self._vectors[row], self._numbers[row])

    def observe(self, user: str | None, features: Float32 | None, now: float) -> Float32:
        """The observation (width,) of a visitor at a time; features left out are the last ones."""
        layout = self.layout
        out = np.zeros(layout.width, np.float32)
        visitor = None if user is None else self.find(user)
        pages = clicks = share = pause = 0.0
        if visitor is not None:
            out[:-_COUNTS] = visitor.vectors
            pages, clicks, last, share = visitor.numbers[:4].tolist()
            pause = max(0.0, now - last)
        if features is not None:
            out[: layout.features] = features
        angle = 2 * math.pi * (now % _DAY) / _DAY
        out[-_COUNTS:] = (
            pages / (pages + _SCALE),
            clicks / (clicks + _SCALE),
            share,
            pause / (pause + _PAUSE),
            math.sin(angle),
            math.cos(angle),
        )
        return out

    def session(self, user: str, now: float, timeout: float) -> int:
        """The number of the visitor's session at a time."""
        visitor = self.find(user)
        if visitor is None or not visitor.numbers[PAGES]:
            return 1
        number = int(visitor.numbers[SESSION])
        return number + 1 if now - visitor.numbers[LAST] > timeout else number

    def show(
        self, user: str, features: Float32 | None, vectors: Float32, session: int, now: float
    ) -> None:
        """Fold in a page of items with these vectors (k, dim)."""
        visitor = self.meet(user)
        layout = self.layout
        if features is not None:
            visitor.vectors[: layout.features] = features
        if len(vectors):
            _move(visitor.vectors[layout.features + layout.dim :], vectors)
        pages, clicks, _, _, shown, _ = visitor.numbers.tolist()
        visitor.numbers[:] = pages + 1, clicks, now, 0.0, shown + len(vectors), session

    def click(self, user: str, vectors: Float32, share: float) -> None:
        """Fold in clicks on items with these vectors (n, dim): a `share` of their page."""
        if not len(vectors):
            return
        visitor = self.meet(user)
        layout = self.layout
        _move(visitor.vectors[layout.features : layout.features + layout.dim], vectors)
        visitor.numbers[CLICKS] += len(vectors)
        visitor.numbers[SHARE] = min(1.0, visitor.numbers[SHARE] + share)

    def state(self) -> dict[str, Any]:
        """Everything, least recently met first."""
        rows = np.fromiter(self._row.values(), np.int64, len(self._row))
        return {
            "users": list(self._row),
            "vectors": self._vectors[rows],
            "numbers": self._numbers[rows],
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state()`."""
        count = len(state["users"])
        room = max(64, 1 << max(count - 1, 0).bit_length())
        self._row = OrderedDict((user, row) for row, user in enumerate(state["users"]))
        self._vectors = np.zeros((room, self.layout.width - _COUNTS), np.float32)
        self._numbers = np.zeros((room, 6), np.float64)
        self._vectors[:count], self._numbers[:count] = state["vectors"], state["numbers"]


def warm_up() -> None:
    """Compile or load the kernel now, not at the first visitor's page."""
    _move(np.zeros(1, np.float32), np.zeros((1, 1), np.float32))


@kernel
def _move(mean: Any, vectors: Any) -> None:
    """Move a running mean towards the mean of vectors (n, dim)."""
    for column in range(len(mean)):
        total = np.float32(0)
        for row in range(len(vectors)):
            total += vectors[row, column]
        mean[column] += np.float32(MEMORY) * (total / np.float32(len(vectors)) - mean[column])

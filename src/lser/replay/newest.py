"""Combined replay: which transitions are the newest, for the last places of every batch."""

import numpy as np

from lser.replay.store import Store
from lser.types import Int64

NONE: Int64 = np.empty(0, np.int64)


class Newest:
    """What a store still holds of its last `count` writes."""

    def __init__(self, store: Store, count: int) -> None:
        self.count, self._store = count, store
        # how many writes there were, and the ids of the last `count` of them, oldest first
        self._latest: tuple[int, Int64] = (0, NONE)

    def note(self, ids: Int64) -> None:
        """Remember which of the newcomers' `ids` (N,), -1 where one was refused, are the newest."""
        written, latest = self._latest
        kept = ids[ids >= 0]
        if written + len(kept) == self._store.written:  # else they are found at the next draw
            latest = np.concatenate((latest, kept))
            self._latest = self._store.written, latest[latest >= self._oldest()]

    def slots(self, most: int) -> Int64:
        """Their slots, oldest first; of more than `most` the newest."""
        store = self._store
        if self._latest[0] != store.written:  # a restored memory, or a call that was broken off
            recent = store.ids >= self._oldest()
            self._latest = store.written, np.sort(store.ids[recent])
        slots = store.slots(self._latest[1])
        slots = slots[slots >= 0]
        return slots[max(0, len(slots) - most) :]

    def _oldest(self) -> int:
        """The smallest id that one of the last `count` writes can have."""
        return max(self._store.written - self.count, 0) * self._store.capacity

"""Order keys that come late: the discounted return of a transition, known when its session ends."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lser.replay.base import check_fraction
from lser.replay.sessions import Sessions, discounted_returns, stream_labels
from lser.types import Bool, Float32, Int64

_LIMIT = 10_000  # steps after which a session counts as ended
_LARGEST = float(np.finfo(np.float32).max)


class Returns:
    """Follows open sessions and hands out the returns of those that end."""

    def __init__(self, discount: float) -> None:
        self.discount = check_fraction("discount", discount)
        self._sessions = Sessions(_LIMIT)
        self._slots: dict[int, int] = {}  # of the transitions of open sessions, by id

    def labels(self, streams: ArrayLike | None, rows: int) -> Int64:
        """The stream of each row."""
        return stream_labels(streams, rows)

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

"""Who follows whom: the later steps of a stored transition's session, in a ring of slots.

A session has a record while at least one of its steps is stored, so there are never more records
than slots. A step k places on is usually k equal strides of ids away (blocks of one size); that
guess is checked, and where it fails the steps are walked one by one.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lser.replay.checks import Float64
from lser.replay.compiled import kernel, prefetch
from lser.types import Int64

HELD, RECORD, STEP, FOLLOWING = range(4)


class Links(NamedTuple):
    """The steps in all slots, side by side in memory, and the records of their sessions."""

    steps: Int64  # (capacity, 4): id or -1, record, step, id of the next step stored or -1
    length: Int64  # (capacity,) per record: steps so far
    alive: Int64  # (capacity,) per record: steps still stored
    free: Int64  # (capacity,) a stack of unused records
    unused: Int64  # (1,) the height of that stack


def new_links(capacity: int) -> Links:
    """Links of an empty ring."""
    return Links(
        steps=np.full((capacity, 4), -1, dtype=np.int64),
        length=np.zeros(capacity, dtype=np.int64),
        alive=np.zeros(capacity, dtype=np.int64),
        free=np.arange(capacity)[::-1].copy(),
        unused=np.array([capacity]),
    )


@kernel
def link(links: Links, ids: Int64, previous: Int64) -> None:
    """Enter ids (N,), each after the step `previous` (N,) of its session, or -1 at its start."""
    steps, length, alive, free, unused = links
    capacity = len(steps)
    for i in range(len(ids)):
        slot = ids[i] % capacity
        if steps[slot, HELD] >= 0:
            old = steps[slot, RECORD]
            alive[old] -= 1
            if alive[old] == 0:
                free[unused[0]] = old
                unused[0] += 1
        before = previous[i] % capacity
        steps[slot, HELD] = ids[i]
        if previous[i] >= 0 and steps[before, HELD] == previous[i]:
            record = steps[before, RECORD]
            steps[before, FOLLOWING] = ids[i]
        else:
            unused[0] -= 1
            record = free[unused[0]]
            length[record] = 0
        steps[slot, RECORD] = record
        steps[slot, STEP] = length[record]
        steps[slot, FOLLOWING] = -1
        length[record] += 1
        alive[record] += 1


@kernel
def later(steps: Int64, length: Int64, slots: Int64, points: Float64, out: Int64) -> None:
    """For each slot (b,) one of its and the later steps' slots, by uniform points of [0, 1)."""
    capacity = len(steps)
    for i in range(len(slots)):
        prefetch(steps, slots[i] * 4)
    for i in range(len(slots)):
        prefetch(length, steps[slots[i], RECORD])
    for i in range(len(slots)):
        held, record, step, following = steps[slots[i]]
        ahead = int(points[i] * (length[record] - step))
        out[i] = (held + ahead * (following - held)) % capacity if ahead else slots[i]
        prefetch(steps, out[i] * 4)
    for i in range(len(slots)):
        held, record, step, following = steps[slots[i]]
        ahead = int(points[i] * (length[record] - step))
        guess = steps[out[i]]
        right = guess[HELD] == held + ahead * (following - held) and guess[RECORD] == record
        if ahead and not (right and guess[STEP] == step + ahead):
            out[i] = slots[i]
            for _ in range(ahead):
                out[i] = steps[out[i], FOLLOWING] % capacity


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

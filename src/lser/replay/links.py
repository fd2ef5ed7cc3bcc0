"""Who follows whom: the later steps of a stored transition's session, in a ring of slots.

A session has a record while at least one of its steps is stored, so there are never more records
than slots. A step k places on is usually k equal strides of ids away (blocks of one size); that
guess is checked, and where it fails the steps are walked one by one.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lser.replay.compiled import kernel
from lser.types import Int64


class Links(NamedTuple):
    """Per slot: its id, its session's record, its step and the id of the next step; the records."""

    held: Int64  # (capacity,) -1 in empty slots
    record: Int64  # (capacity,)
    step: Int64  # (capacity,)
    following: Int64  # (capacity,) -1 where no later step is stored
    length: Int64  # (capacity,) per record: steps so far
    alive: Int64  # (capacity,) per record: steps still stored
    free: Int64  # (capacity,) a stack of unused records
    unused: Int64  # (1,) the height of that stack


def new_links(capacity: int) -> Links:
    """Links of an empty ring."""
    empty = np.full(capacity, -1, dtype=np.int64)
    zero = np.zeros(capacity, dtype=np.int64)
    return Links(
        held=empty,
        record=zero.copy(),
        step=zero.copy(),
        following=empty.copy(),
        length=zero.copy(),
        alive=zero,
        free=np.arange(capacity)[::-1].copy(),
        unused=np.array([capacity]),
    )


@kernel
def link(links: Links, ids: Int64, previous: Int64) -> None:
    """Enter ids (N,), each after the step `previous` (N,) of its session, or -1 at its start."""
    capacity = len(links.held)
    for i in range(len(ids)):
        slot = ids[i] % capacity
        if links.held[slot] >= 0:
            old = links.record[slot]
            links.alive[old] -= 1
            if links.alive[old] == 0:
                links.free[links.unused[0]] = old
                links.unused[0] += 1
        before = previous[i] % capacity
        links.held[slot] = ids[i]
        if previous[i] >= 0 and links.held[before] == previous[i]:
            record = links.record[before]
            links.following[before] = ids[i]
        else:
            links.unused[0] -= 1
            record = links.free[links.unused[0]]
            links.length[record] = 0
        links.record[slot] = record
        links.step[slot] = links.length[record]
        links.length[record] += 1
        links.alive[record] += 1
        links.following[slot] = -1


@kernel
def later(links: Links, slot: int, point: float) -> int:
    """The slot of one of this and the later steps stored, by a uniform `point` of [0, 1)."""
    capacity = len(links.held)
    record = links.record[slot]
    steps = int(point * (links.length[record] - links.step[slot]))
    if steps == 0:
        return slot
    stride = links.following[slot] - links.held[slot]
    identity = links.held[slot] + steps * stride
    guess = identity % capacity
    same = links.held[guess] == identity and links.record[guess] == record
    if same and links.step[guess] == links.step[slot] + steps:
        return int(guess)
    for _ in range(steps):
        slot = links.following[slot] % capacity
    return slot


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

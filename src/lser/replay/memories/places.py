"""What SER keeps beside the rows: a ring of the newest slots, and a heap of long-term ones."""

from typing import NamedTuple

import numpy as np

from lser.compiled import kernel
from lser.types import Float32, Float64, Int64


class Places(NamedTuple):
    """The two sets of slots, as arrays; `counts` holds used slots, ring size, ring head, kept."""

    ring: Int64  # (short,) slots of the newest transitions
    heap: Int64  # (long,) slots of the kept ones, lowest rank first
    where: Int64  # (capacity,) a slot's position in the heap, -1 in the ring
    rank: Float64  # (capacity,)
    key: Float64  # (capacity,)
    counts: Int64  # (4,)


class Neighbours(NamedTuple):
    """What ranks a leaving transition by its neighbours: fewest stay. No probes: rank as it is."""

    rows: Float32  # (capacity, columns) the store's rows, observation first
    scale: Float64  # (O,) each feature's scale
    radius: float  # root mean square over features
    probes: Float64  # (N, probes) uniform numbers that pick kept transitions to compare with


def new_places(short: int, long: int) -> Places:
    """Empty places for `short` newest and `long` kept transitions."""
    capacity = short + long
    return Places(
        ring=np.zeros(short, dtype=np.int64),
        heap=np.zeros(long, dtype=np.int64),
        where=np.full(capacity, -1, dtype=np.int64),
        rank=np.zeros(capacity),
        key=np.zeros(capacity),
        counts=np.zeros(4, dtype=np.int64),
    )


@kernel
def place(
    places: Places,
    rank: Float64,
    key: Float64,
    neighbours: Neighbours,
    slots: Int64,
    ran: Int64,
) -> None:
    """Choose the slots of up to `short` newcomers with ranks and keys (N,); fills `slots`.

    `ran` (1,) is 0; it becomes 1, and a second call does nothing.
    """
    if ran[0]:
        return
    ran[0] = 1
    counts, short, long = places.counts, len(places.ring), len(places.heap)
    for i in range(len(slots)):
        if counts[1] < short:
            slot = counts[0]
            counts[0] += 1
            places.ring[counts[1]] = slot
            counts[1] += 1
        else:
            leaving = places.ring[counts[2]]
            if neighbours.probes.shape[1] > 0 and counts[3] > 0:
                places.rank[leaving] = -_crowding(places, neighbours, leaving, i)
                # The kept ones' neighbours change too: one of them is counted again each time.
                kept = places.heap[int(neighbours.probes[i, 0] * counts[3])]
                places.rank[kept] = -_crowding(places, neighbours, kept, i)
                _sift(places, kept)
            if counts[3] < long:
                slot = counts[0]
                counts[0] += 1
                places.heap[counts[3]] = leaving
                places.where[leaving] = counts[3]
                counts[3] += 1
                _sift(places, leaving)
            elif long > 0 and _below(places, places.heap[0], leaving):
                slot = places.heap[0]
                places.where[slot] = -1
                places.heap[0] = leaving
                places.where[leaving] = 0
                _sift(places, leaving)
            else:
                slot = leaving
            places.ring[counts[2]] = slot
            counts[2] = (counts[2] + 1) % short
        places.rank[slot] = rank[i]
        places.key[slot] = key[i]
        slots[i] = slot


@kernel
def rerank(places: Places, slots: Int64, rank: Float64) -> None:
    """Give slots (n,) new ranks (n,), wherever they are."""
    for i in range(len(slots)):
        places.rank[slots[i]] = rank[i]
        if places.where[slots[i]] >= 0:
            _sift(places, slots[i])


@kernel
def _below(places: Places, left: int, right: int) -> bool:
    if places.rank[left] != places.rank[right]:
        return bool(places.rank[left] < places.rank[right])
    return bool(places.key[left] < places.key[right])


@kernel
def _sift(places: Places, slot: int) -> None:
    """Move one slot of the heap to where its rank belongs."""
    heap, where, size = places.heap, places.where, places.counts[3]
    at = where[slot]
    while at > 0 and _below(places, slot, heap[(at - 1) // 2]):
        heap[at] = heap[(at - 1) // 2]
        where[heap[at]] = at
        at = (at - 1) // 2
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _below(places, heap[child + 1], heap[child]):
            child += 1
        if not _below(places, heap[child], slot):
            break
        heap[at] = heap[child]
        where[heap[at]] = at
        at = child
    heap[at] = slot
    where[slot] = at


@kernel
def _crowding(places: Places, neighbours: Neighbours, slot: int, i: int) -> float:
    """The share of probed kept transitions that lie within the radius of `slot`."""
    probes, scale = neighbours.probes.shape[1], neighbours.scale
    kept = places.counts[3]
    limit = neighbours.radius * neighbours.radius * len(scale)
    everyone = kept <= probes
    compared = near = 0
    for j in range(min(kept, probes)):
        other = places.heap[j if everyone else int(neighbours.probes[i, j] * kept)]
        if other == slot:
            continue
        distance = 0.0
        for k in range(len(scale)):
            step = (neighbours.rows[slot, k] - neighbours.rows[other, k]) * scale[k]
            distance += step * step
        compared += 1
        near += distance < limit
    return float(near / max(compared, 1))

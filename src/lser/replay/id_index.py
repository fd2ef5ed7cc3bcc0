"""From ids to slots, for memories that pick the slots themselves.

Open addressing with linear probing; the table holds slots only, a slot's id is the store's to
say. Half the table stays empty, and removal closes the gap, so probes stay short for ever.
"""

import numpy as np
from numpy.typing import NDArray

from lser.replay.compiled import kernel
from lser.types import Int64

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: spreads consecutive ids


class IdIndex:
    """The slot of every id held; starts from `ids` (capacity,), -1 in empty slots."""

    def __init__(self, ids: Int64) -> None:
        bits = max(int(2 * len(ids) - 1).bit_length(), 1)
        self._shift = np.uint64(64 - bits)
        self._table: NDArray[np.int32] = np.full(1 << bits, -1, dtype=np.int32)
        self._ids: Int64 = np.full(len(ids), -1, dtype=np.int64)
        held = np.flatnonzero(ids >= 0)
        self.assign(held, ids[held])

    def assign(self, slots: Int64, ids: Int64) -> None:
        """Let slots (n,) hold new ids (n,), or none where an id is -1, instead of their old."""
        _assign(self._table, self._shift, self._ids, slots, ids)

    def slots(self, ids: Int64) -> Int64:
        """The slots of ids (n,), -1 where one is not held."""
        found = np.empty(len(ids), dtype=np.int64)
        _find(self._table, self._shift, self._ids, ids, found)
        return found


@kernel
def _home(identity: int, shift: np.uint64) -> np.int64:
    return np.int64((np.uint64(identity) * _GOLDEN) >> shift)


@kernel
def _assign(
    table: NDArray[np.int32], shift: np.uint64, held: Int64, slots: Int64, ids: Int64
) -> None:
    mask = len(table) - 1
    for i in range(len(slots)):
        slot = slots[i]
        if held[slot] >= 0:
            _remove(table, shift, held, slot)
        held[slot] = ids[i]
        if ids[i] >= 0:
            at = _home(ids[i], shift)
            while table[at] >= 0:
                at = (at + 1) & mask
            table[at] = slot


@kernel
def _remove(table: NDArray[np.int32], shift: np.uint64, held: Int64, slot: int) -> None:
    mask = len(table) - 1
    gap = _home(held[slot], shift)
    while table[gap] != slot:
        gap = (gap + 1) & mask
    at = (gap + 1) & mask
    while table[at] >= 0:
        # An entry may fill the gap unless its home lies past it.
        if ((at - _home(held[table[at]], shift)) & mask) >= ((at - gap) & mask):
            table[gap] = table[at]
            gap = at
        at = (at + 1) & mask
    table[gap] = -1


@kernel
def _find(
    table: NDArray[np.int32], shift: np.uint64, held: Int64, ids: Int64, found: Int64
) -> None:
    mask = len(table) - 1
    for i in range(len(ids)):
        found[i] = -1
        if ids[i] < 0:
            continue
        at = _home(ids[i], shift)
        while table[at] >= 0:
            if held[table[at]] == ids[i]:
                found[i] = table[at]
                break
            at = (at + 1) & mask

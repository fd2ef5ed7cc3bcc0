"""The kernels that pack, copy and gather rows."""

import numpy as np

from lser.compiled import Num, copy, inner, kernel, prefetch
from lser.types import Bool, Float32, Float64, Int64

LARGEST = np.finfo(np.float32).max
AHEAD = 16  # rows; measured: 8 to 32 are alike
_LINE = 16  # float32 in a cache line


@inner
def pack_row(
    observation: Float32,
    action: Float32,
    reward: Float32,
    next_observation: Float32,
    terminated: Bool,
    truncated: Bool,
    k: Num,
    rows: Float32,
    slot: Num,
) -> None:
    """Lay out transition k of a block in a row of `rows` (n, 2 O + A + 3)."""
    observed, acted = observation.shape[1], action.shape[1]
    row, at = slot * rows.shape[1], observed + acted
    copy(observation, k * observed, observed, rows, row)
    copy(action, k * acted, acted, rows, row + observed)
    rows[slot, at] = reward[k]
    copy(next_observation, k * observed, observed, rows, row + at + 1)
    rows[slot, at + 1 + observed] = terminated[k]
    rows[slot, at + 2 + observed] = truncated[k]


@inner
def finite(values: Float32) -> Num:
    """Whether everything in an array (n,) is finite."""
    wrong = 0
    for c in range(len(values)):
        wrong += not abs(values[c]) <= LARGEST  # true for NaN
    return wrong == 0


@inner
def all_finite(
    observation: Float32, action: Float32, reward: Float32, next_observation: Float32
) -> Num:
    """Whether everything in a block is finite."""
    seen = finite(observation.reshape(-1)) and finite(next_observation.reshape(-1))
    return seen and finite(action.reshape(-1)) and finite(reward)


@kernel
def pack(
    observation: Float32,
    action: Float32,
    reward: Float32,
    next_observation: Float32,
    terminated: Bool,
    truncated: Bool,
    rows: Float32,
) -> Num:
    """Fill rows (N, 2 O + A + 3); returns whether everything in them is finite."""
    for k in range(len(rows)):
        pack_row(observation, action, reward, next_observation, terminated, truncated, k, rows, k)
    return finite(rows.reshape(-1))


@inner
def prefetch_row(rows: Float32, slot: Num, count: Num) -> None:
    """Prefetch the first `count` numbers of a row: waiting for memory is what copies cost."""
    for c in range(0, count + _LINE - 1, _LINE):
        prefetch(rows, slot * rows.shape[1] + min(c, count - 1))


@kernel
def gather(
    kept: Float32, held: Int64, slots: Int64, rows: Float32, flags: Bool, ids: Int64
) -> None:
    """Copy rows (b, width) and ids (b,) at `slots` out, the two last columns as flags (2, b)."""
    count, width = len(slots), rows.shape[1]
    for k in range(-AHEAD, count):
        if k + AHEAD < count:
            prefetch_row(kept, slots[k + AHEAD], width)
            prefetch(held, slots[k + AHEAD])
        if k >= 0:
            slot = slots[k]
            copy(kept, slot * width, width, rows, k * width)
            flags[0, k] = kept[slot, width - 2] != 0
            flags[1, k] = kept[slot, width - 1] != 0
            ids[k] = held[slot]


@kernel
def name_writes(first: Num, capacity: Num, slots: Int64, ids: Int64) -> None:
    """The ids (N,) of writes to `slots` (N,), which are numbered from `first` on."""
    for k in range(len(ids)):
        ids[k] = (first + k) * capacity + slots[k]


@kernel
def ring_writes(first: Num, capacity: Num, slots: Int64, ids: Int64) -> None:
    """The slots and ids (N,) of writes over the oldest, which are numbered from `first` on."""
    for k in range(len(ids)):
        slots[k] = (first + k) % capacity
        ids[k] = (first + k) * capacity + slots[k]


@kernel
def append_rows(kept: Float32, held: Int64, counts: Int64, rows: Float32, ids: Int64) -> None:
    """Write rows over the oldest, fill their `ids`, and count: nothing comes between."""
    first, count, capacity, width = counts[1], len(rows), len(held), rows.shape[1]
    for k in range(count):
        slot = (first + k) % capacity
        ids[k] = (first + k) * capacity + slot
        if k >= count - capacity:
            copy(rows, k * width, width, kept, slot * width)
            held[slot] = ids[k]
    counts[0], counts[1] = min(first + count, capacity), first + count


@kernel
def find_held(held: Int64, ids: Int64, values: Float64, slots: Int64, theirs: Float64) -> Num:
    """Put the slots of those `ids` (n,) that are held first, and their values; returns how many."""
    count, capacity = 0, len(held)
    for k in range(len(ids)):
        slot = ids[k] % capacity
        if ids[k] >= 0 and held[slot] == ids[k]:
            slots[count], theirs[count] = slot, values[k]
            count += 1
    return count


@kernel
def empty_slots(held: Int64, counts: Int64, slots: Int64) -> None:
    """Forget what `slots` hold, and count: one call, so that nothing comes between."""
    for k in range(len(slots)):
        counts[0] -= held[slots[k]] >= 0
        held[slots[k]] = -1


@kernel
def write_rows(
    kept: Float32,
    held: Int64,
    counts: Int64,
    slots: Int64,
    rows: Float32,
    ids: Int64,
    written: Num,
) -> None:
    """Copy rows and their ids to `slots`, and count: one call, so that nothing comes between.

    A second call with the same arguments changes nothing.
    """
    count, width = len(slots), rows.shape[1]
    for k in range(-AHEAD, count):
        if k + AHEAD < count:
            prefetch_row(kept, slots[k + AHEAD], width)
        if k >= 0:
            copy(rows, k * width, width, kept, slots[k] * width)
            counts[0] += held[slots[k]] < 0
            held[slots[k]] = ids[k]
    counts[1] = written

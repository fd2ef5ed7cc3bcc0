"""Kernels for packed rows: lay transitions out, and copy rows in and out of a large array."""

import numpy as np

from lser.replay.compiled import Num, kernel, prefetch
from lser.types import Bool, Float32, Int64

_EXPONENT = np.int32(0x7F800000)  # all of these bits set: infinite or not a number
_LINE = 16  # float32 in a cache line
_AHEAD = 16  # rows; measured: 8 to 32 are alike


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
    n, wide, narrow = len(rows), observation.shape[1], action.shape[1]
    gain = wide + narrow
    bits = rows.view(np.int32)
    worst = np.int32(0)
    for k in range(n):
        for c in range(wide):
            rows[k, c] = observation[k, c]
        for c in range(narrow):
            rows[k, wide + c] = action[k, c]
        rows[k, gain] = reward[k]
        for c in range(wide):
            rows[k, gain + 1 + c] = next_observation[k, c]
        rows[k, gain + 1 + wide] = terminated[k]
        rows[k, gain + 2 + wide] = truncated[k]
        for c in range(rows.shape[1]):
            worst = max(worst, bits[k, c] & _EXPONENT)
    return worst < _EXPONENT


@kernel
def finite(values: Float32) -> Num:
    """Whether everything in an array (n,) is finite."""
    bits, worst = values.view(np.int32), np.int32(0)
    for c in range(len(bits)):
        worst = max(worst, bits[c] & _EXPONENT)
    return worst < _EXPONENT


@kernel
def near_start(rows: Float32, slot: Num, count: Num) -> None:
    """Bring the first `count` numbers of a row into the cache ahead of their use."""
    for c in range(0, count + _LINE - 1, _LINE):
        prefetch(rows, slot * rows.shape[1] + min(c, count - 1))


@kernel
def near(rows: Float32, slot: Num) -> None:
    """Bring a row into the cache ahead of its copy: waiting for memory is what copies cost."""
    near_start(rows, slot, rows.shape[1])


@kernel
def gather(
    kept: Float32, held: Int64, slots: Int64, rows: Float32, flags: Bool, ids: Int64
) -> None:
    """Copy rows (b, width) and ids (b,) at `slots` out, the two last columns as flags (2, b)."""
    count, width = len(slots), rows.shape[1]
    for k in range(-_AHEAD, count):
        if k + _AHEAD < count:
            near(kept, slots[k + _AHEAD])
            prefetch(held, slots[k + _AHEAD])
        if k >= 0:
            slot = slots[k]
            for c in range(width):
                rows[k, c] = kept[slot, c]
            flags[0, k] = kept[slot, width - 2] != 0
            flags[1, k] = kept[slot, width - 1] != 0
            ids[k] = held[slot]


@kernel
def scatter(kept: Float32, slots: Int64, rows: Float32) -> None:
    """Copy rows to `slots`, in order; a negative slot takes none."""
    count = len(slots)
    for k in range(-_AHEAD, count):
        if k + _AHEAD < count and slots[k + _AHEAD] >= 0:
            near(kept, slots[k + _AHEAD])
        if k >= 0 and slots[k] >= 0:
            for c in range(rows.shape[1]):
                kept[slots[k], c] = rows[k, c]

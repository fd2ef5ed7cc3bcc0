"""Between arrays and the index in one call: pack, hash and store; hash a query, pick and gather.

Each call into compiled code costs as much as storing a transition, so memories that hash with
SimHash take this way.
"""

import numpy as np

from lser.replay.compiled import (
    Num,
    UInt32,
    float32_at,
    float64_at,
    int64_at,
    kernel,
    uint32_at,
)
from lser.replay.draw import pick
from lser.replay.hashing import signs
from lser.replay.header import (
    BITS,
    CAPACITY,
    COLUMNS,
    DIM,
    IDS,
    ROWS,
    SCALE,
    SCRATCH,
    SHIFT,
    SIZE,
    VECTORS,
    WIDTH,
)
from lser.replay.index import extend
from lser.replay.packing import finite, gather, pack
from lser.types import Bool, Float32, Int64


@kernel
def _encode(h: Int64, rows: Float32, codes: UInt32) -> None:
    shift, scale = float64_at(h[SHIFT], 1, h[DIM])[0], float64_at(h[SCALE], 1, h[DIM])[0]
    signs(rows, shift, scale, float64_at(h[VECTORS], h[DIM], h[COLUMNS]), h[BITS], codes)


@kernel
def extend_plain(
    h: Int64,
    observation: Float32,
    action: Float32,
    reward: Float32,
    next_observation: Float32,
    terminated: Bool,
    truncated: Bool,
    ids: Int64,
    start: Num,
) -> Num:
    """`extend` with a block; returns -1, nothing stored, if shapes are wrong or not all finite."""
    n, wide, narrow = len(ids), h[DIM], h[WIDTH] - 2 * h[DIM] - 3
    wrong = observation.shape != (n, wide) or next_observation.shape != (n, wide)
    if wrong or action.shape != (n, narrow) or len(terminated) != n or len(truncated) != n:
        return -1
    if n == 1:  # allocating would take a tenth of the time
        rows = float32_at(h[SCRATCH] + 16, 1, h[WIDTH])
        codes, slots = uint32_at(h[SCRATCH] + 8, 1), int64_at(h[SCRATCH], 1, 1)[0]
    else:
        rows = np.empty((n, h[WIDTH]), np.float32)
        codes, slots = np.empty(n, np.uint32), np.empty(n, np.int64)
    if not pack(observation, action, reward, next_observation, terminated, truncated, rows):
        return -1
    _encode(h, rows, codes)
    return extend(h, rows, codes, ids, slots, start)


@kernel
def replay_plain(
    h: Int64, query: Float32, greedy: Num, rows: Float32, flags: Bool, ids: Int64
) -> Num:
    """Fill rows, flags and ids, as `gather` does, with what a query (O,) replays.

    Returns False, nothing drawn, if its shape is wrong, not all is finite or nothing is stored.
    """
    if len(query) != h[DIM] or not finite(query) or h[SIZE] == 0:
        return False
    code, slots = np.empty(1, np.uint32), np.empty(len(ids), np.int64)
    _encode(h, query.reshape(1, len(query)), code)
    pick(h, np.int64(code[0]), greedy, slots)
    kept, held = float32_at(h[ROWS], h[CAPACITY], h[WIDTH]), int64_at(h[IDS], 1, h[CAPACITY])[0]
    gather(kept, held, slots, rows, flags, ids)
    return True

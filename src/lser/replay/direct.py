"""From arrays to the index in one call: pack, hash with SimHash and store.

Each call into compiled code costs as much as storing a transition, so single pushes take this way.
"""

from lser.replay.compiled import Num, UInt32, float64_at, kernel
from lser.replay.hashing import signs
from lser.replay.header import BITS, COLUMNS, DIM, SCALE, SHIFT, VECTORS
from lser.replay.index import extend
from lser.replay.packing import pack
from lser.types import Bool, Float32, Int64


@kernel
def extend_plain(
    h: Int64,
    observation: Float32,
    action: Float32,
    reward: Float32,
    next_observation: Float32,
    terminated: Bool,
    truncated: Bool,
    rows: Float32,
    codes: UInt32,
    ids: Int64,
    slots: Int64,
) -> Num:
    """Fill rows, codes, ids, slots; returns as `extend`, or -1, nothing stored, if not finite."""
    if not pack(observation, action, reward, next_observation, terminated, truncated, rows):
        return -1
    shift, scale = float64_at(h[SHIFT], 1, h[DIM])[0], float64_at(h[SCALE], 1, h[DIM])[0]
    signs(rows, shift, scale, float64_at(h[VECTORS], h[DIM], h[COLUMNS]), h[BITS], codes)
    return extend(h, rows, codes, ids, slots, 0)

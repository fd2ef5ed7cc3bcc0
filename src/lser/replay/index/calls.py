"""What Python calls: the kernels of the index behind the address of their header.

Each call into compiled code costs as much as storing a transition. So what a memory does for a
block, or for a query, is one call: `extend` hashes, places and copies; `replay` hashes, picks and
gathers.
"""

from typing import Any

import numpy as np
from numba import carray, types  # type: ignore[attr-defined]  # missing in its stubs

from lser.compiled import Num, UInt32, inlined, inner, kernel, pointer, refuse_others
from lser.replay.index import drawing, dump, placing
from lser.replay.index.hashing import sign_code
from lser.replay.index.layout import (
    Header,
    features_of,
    header_at,
    ids_of,
    scale_of,
    shift_of,
    sums_of,
)
from lser.replay.rows import AHEAD, all_finite, finite, gather, pack_row, prefetch_row
from lser.types import Bool, Float32, Int64

HASH = -2  # as a code: that of the query, by the SimHash of the header
WRONG = -1  # instead of a count: the shapes of the arguments are wrong, or not all is finite


@inlined
def rows_of(h: Header) -> Any:
    """The packed rows of the store, (capacity, width)."""
    return carray(pointer(h.rows), (h.capacity, h.width), np.float32)


@inner
def encode(h: Header, observation: Float32) -> Num:
    """The code of an observation, by the SimHash of the header."""
    planes = carray(pointer(h.planes), (h.plane_count, h.dim), np.float64)
    return sign_code(observation, shift_of(h), scale_of(h), planes, features_of(h), sums_of(h))


@kernel
def extend(
    address: Num,
    observation: Float32,
    action: Float32,
    reward: Float32,
    next_observation: Float32,
    terminated: Bool,
    truncated: Bool,
    ids: Int64,
    places: Int64,
) -> Num:
    """Store a block as far as there is room; returns the first row without, or WRONG.

    `ids` and `places` are those of `placing.place_all`; a SimHash in the header gives the codes.
    """
    h = header_at(address)
    n, dim = len(ids), h.dim
    wrong = observation.shape != (n, dim) or next_observation.shape != (n, dim)
    if wrong or action.shape != (n, h.width - 2 * dim - 3) or len(reward) != n:
        return WRONG
    if len(terminated) != n or len(truncated) != n:
        return WRONG
    begin = places[n]
    if begin == 0:
        if not all_finite(observation, action, reward, next_observation):
            return WRONG
        if h.plane_count > 0:
            for k in range(n):
                places[k] = encode(h, observation[k])
    stop = placing.place_all(h, reward, ids, places)
    rows = rows_of(h)
    for k in range(begin - AHEAD, stop):
        if k + AHEAD < stop and places[k + AHEAD] >= 0:
            prefetch_row(rows, places[k + AHEAD], h.width)
        if k >= begin and places[k] >= 0:
            slot = places[k]
            pack_row(
                *(observation, action, reward, next_observation, terminated, truncated),
                *(k, rows, slot),
            )
    return stop


@kernel
def replay(
    address: Num, query: Float32, code: Num, greedy: Num, rows: Float32, flags: Bool, ids: Int64
) -> Num:
    """Fill rows, flags and ids, as `gather` does, with what a query (O,) or a code replays.

    Returns WRONG, nothing drawn, if the shape is wrong, not all is finite or nothing is stored.
    """
    h = header_at(address)
    if h.size == 0:
        return WRONG
    if code == HASH:
        if len(query) != h.dim or not finite(query):
            return WRONG
        code = encode(h, query)
    slots = np.empty(len(ids), np.int64)
    drawing.pick(h, code, greedy, slots)
    gather(rows_of(h), ids_of(h), slots, rows, flags, ids)
    return len(ids)


@kernel
def place(address: Num, keys: Float32, ids: Int64, places: Int64) -> Num:
    """`placing.place_all`."""
    return placing.place_all(header_at(address), keys, ids, places)


@kernel
def rekey(address: Num, slots: Int64, ids: Int64, keys: Float32, start: Num) -> Num:
    """`placing.rekey`."""
    return placing.rekey(header_at(address), slots, ids, keys, start)


@kernel
def pick(address: Num, code: Num, greedy: Num, slots: Int64) -> None:
    """`drawing.pick`."""
    drawing.pick(header_at(address), code, greedy, slots)


@kernel
def relink(address: Num) -> None:
    """`dump.relink`."""
    dump.relink(header_at(address))


@kernel
def write_out(address: Num, sizes: Int64, slots: Int64, keys: Float32) -> None:
    """`dump.write_out`."""
    dump.write_out(header_at(address), sizes, slots, keys)


@kernel
def read_in(address: Num, codes: UInt32, sizes: Int64, slots: Int64, keys: Float32) -> None:
    """`dump.read_in`."""
    dump.read_in(header_at(address), codes, sizes, slots, keys)


@kernel
def problem(address: Num, filed: Int64) -> Num:
    """`dump.problem`."""
    return dump.problem(header_at(address), filed)


def prepare() -> None:
    """Compile `extend` and `replay` for the arrays they take, and let them refuse all others.

    They raise TypeError then, before they have done anything: what Numba's dispatcher looks at
    need not be looked at twice.
    """
    storing: Any = extend  # Numba's dispatchers, which pass for plain functions elsewhere
    picking: Any = replay
    if storing.signatures:
        return
    matrix, vector, flags = types.float32[:, ::1], types.float32[::1], types.boolean[::1]
    block = (matrix, matrix, vector, matrix, flags, flags)
    ids = places = types.int64[::1]
    storing.compile((types.int64, *block, ids, places))
    drawn = (matrix, types.boolean[:, ::1], ids)
    picking.compile((types.int64, vector, types.int64, types.float64, *drawn))
    refuse_others(extend)
    refuse_others(replay)

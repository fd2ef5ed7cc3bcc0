"""What Python calls: the kernels of the index behind the address of their header.

Each call into compiled code costs as much as storing a transition. So what a memory does for a
block, or for a query, is one call: `extend` packs, hashes, places and copies; `replay` hashes,
picks and gathers.
"""

from typing import Any

import numpy as np
from numba import carray, types  # type: ignore[attr-defined]  # missing in its stubs

from lser.compiled import Num, UInt32, inlined, inner, kernel, pointer, refuse_others
from lser.replay.index import drawing, dump, placing
from lser.replay.index.encoders import signs
from lser.replay.index.layout import Header, header_at, ids_of
from lser.replay.store import finite, gather, pack, scatter
from lser.types import Bool, Float32, Int64

HASH = -2  # as a code: that of the query, by the SimHash of the header
WRONG = -1  # instead of a count: the shapes of the arguments are wrong, or not all is finite
NARROW = -2  # instead of a count: the workspace is too small for the block


@inlined
def rows_of(h: Header) -> Any:
    """The packed rows of the store, (capacity, width)."""
    return carray(pointer(h.rows), (h.capacity, h.width), np.float32)


@inner
def encode(h: Header, rows: Float32, codes: UInt32) -> None:
    """The codes of rows that begin with an observation, by the SimHash of the header."""
    planes = carray(pointer(h.planes), (h.plane_count, h.dim), np.float64)
    shift = carray(pointer(h.shift), h.dim, np.float64)
    scale = carray(pointer(h.scale), h.dim, np.float64)
    signs(rows, shift, scale, planes, codes)


@kernel
def extend(
    address: Num,
    observation: Float32,
    action: Float32,
    reward: Float32,
    next_observation: Float32,
    terminated: Bool,
    truncated: Bool,
    given: UInt32,
    found: Int64,
) -> Num:
    """Store a block as far as there is room; returns the first row without, or WRONG or NARROW.

    `found` (2, N + 1) takes ids and slots, and behind the ids the row to go on from. `given` (N,)
    are the rows' codes; if it is empty, they are hashed here.
    """
    h = header_at(address)
    n, dim = found.shape[1] - 1, h.dim
    start = found[0, n]
    if n > h.work_rows:
        return NARROW
    wrong = observation.shape != (n, dim) or next_observation.shape != (n, dim)
    if wrong or action.shape != (n, h.width - 2 * dim - 3) or len(reward) != n:
        return WRONG
    if len(terminated) != n or len(truncated) != n:
        return WRONG
    rows = carray(pointer(h.workspace), (n, h.width), np.float32)
    if not pack(observation, action, reward, next_observation, terminated, truncated, rows):
        return WRONG
    codes = given
    if len(given) == 0 and n > 0:
        codes = carray(pointer(h.workspace + 4 * n * h.width), n, np.uint32)
        encode(h, rows, codes)
    stop = placing.place_all(h, codes, reward, found[0], found[1], start)
    found[0, n] = stop
    scatter(rows_of(h), found[1, start:stop], rows[start:stop])
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
        codes = np.empty(1, np.uint32)
        encode(h, query.reshape(1, len(query)), codes)
        code = np.int64(codes[0])
    slots = np.empty(len(ids), np.int64)
    drawing.pick(h, code, greedy, slots)
    gather(rows_of(h), ids_of(h), slots, rows, flags, ids)
    return len(ids)


@kernel
def place(address: Num, codes: UInt32, keys: Float32, found: Int64) -> Num:
    """`placing.place_all`, with `found` as `extend` takes it."""
    n = found.shape[1] - 1
    found[0, n] = placing.place_all(
        header_at(address), codes, keys, found[0], found[1], found[0, n]
    )
    return found[0, n]


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
    if extend.signatures:  # type: ignore[attr-defined]  # a Numba dispatcher
        return
    matrix, vector, flags = types.float32[:, ::1], types.float32[::1], types.boolean[::1]
    block = (matrix, matrix, vector, matrix, flags, flags)
    found, codes, ids = types.int64[:, ::1], types.uint32[::1], types.int64[::1]
    extend.compile((types.int64, *block, codes, found))  # type: ignore[attr-defined]
    drawn = (matrix, types.boolean[:, ::1], ids)
    replay.compile((types.int64, vector, types.int64, types.float64, *drawn))  # type: ignore[attr-defined]
    refuse_others(extend)
    refuse_others(replay)

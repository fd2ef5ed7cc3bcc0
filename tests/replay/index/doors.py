"""Kernels that only kernels call, behind the address of an index's header, for tests."""

import numba

from lser.replay.index import blocks, drawing, dump, placing
from lser.replay.index import sorted as ordered
from lser.replay.index.layout import header_at


def door(inner):
    """`inner` as a function that Python may call, with an address in place of the header."""

    @numba.njit
    def call(address, *arguments):
        return inner(header_at(address), *arguments)

    return call


open_bucket, fits, nearest_two = map(door, (placing.open_bucket, blocks.fits, drawing.nearest_two))
insert, delete_worst, delete_entry = map(
    door, (ordered.insert, ordered.delete_worst, ordered.delete_entry)
)
best, by_rank, in_order = map(door, (ordered.best, ordered.by_rank, dump.in_order))


@numba.njit
def worst(address, bucket):
    """An inlined kernel cannot be called with any number of arguments."""
    return ordered.worst(header_at(address), bucket)

"""Kernels that only kernels call, behind the address of an index's header, for tests.

Each is written out: Numba copies an inlined kernel only into calls with plain arguments.
"""

import numba

from lser.replay.index import blocks, drawing, dump, placing
from lser.replay.index import sorted as ordered
from lser.replay.index.layout import header_at


@numba.njit
def open_bucket(address, code, size_class):
    return placing.open_bucket(header_at(address), code, size_class)


@numba.njit
def fits(address, bucket):
    return blocks.fits(header_at(address), bucket)


@numba.njit
def insert(address, bucket, word, newer):
    ordered.insert(header_at(address), bucket, word, newer)


@numba.njit
def delete_worst(address, bucket):
    ordered.delete_worst(header_at(address), bucket)


@numba.njit
def delete_entry(address, bucket, key, identity):
    ordered.delete_entry(header_at(address), bucket, key, identity)


@numba.njit
def best(address, bucket, slots):
    ordered.best(header_at(address), bucket, slots)


@numba.njit
def by_rank(address, bucket, ranks):
    ordered.by_rank(header_at(address), bucket, ranks)


@numba.njit
def worst(address, bucket):
    return ordered.worst(header_at(address), bucket)


@numba.njit
def in_order(address, bucket):
    return dump.in_order(header_at(address), bucket)


@numba.njit
def nearest_two(address, code):
    return drawing.nearest_two(header_at(address), code)

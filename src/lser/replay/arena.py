"""Runs of words in one arena: power-of-two sizes, freed runs wait in a list per size."""

from lser.replay.compiled import Num, int64_at, kernel
from lser.replay.header import ARENA_ROOM, ARENA_TOP, CLASSES, FREE, words
from lser.types import Int64


@kernel
def missing(h: Int64, size_class: Num) -> Num:
    """Words beyond the top of the arena that a run of 2**size_class takes; 0 if one is free."""
    return 0 if int64_at(h[FREE], CLASSES, 1)[size_class, 0] >= 0 else 1 << size_class


@kernel
def has_room(h: Int64, wanted: Num) -> Num:
    """Whether so many words can be had without growing the arena."""
    return h[ARENA_TOP] + wanted <= h[ARENA_ROOM]


@kernel
def take_run(h: Int64, size_class: Num) -> Num:
    """The offset of a run; there must be one."""
    free = int64_at(h[FREE], CLASSES, 1)
    at = free[size_class, 0]
    if at >= 0:
        free[size_class, 0] = words(h)[at]
        return at
    at = h[ARENA_TOP]
    h[ARENA_TOP] += 1 << size_class
    return at


@kernel
def give_run(h: Int64, at: Num, size_class: Num) -> None:
    """Return a run to the list of its size."""
    free = int64_at(h[FREE], CLASSES, 1)
    words(h)[at] = free[size_class, 0]
    free[size_class, 0] = at

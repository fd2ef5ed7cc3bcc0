"""Where the entries of a bucket lie: an allocator of runs, entries, and blocks of entries.

An entry is one word, order key << 32 | slot. A bucket of up to `WIDE` entries is one run of the
arena. A larger one is a directory: a run of pairs, (order key of a block's first entry,
offset << 8 | count), whose blocks hold up to `WIDE` entries each. Runs have power-of-two sizes;
freed runs wait in a list per size, linked by their first words.
"""

import numpy as np

from lser.compiled import Num, copy, inlined, inner
from lser.replay.index.layout import LEAST, Header, arena, buckets, free_runs
from lser.types import Int64

SLOT = 0xFFFFFFFF
BLOCK = 6  # the class of a block's run
WIDE = 1 << BLOCK


@inlined
def order_key(value: Num) -> Num:
    """A float32 as an integer of the same order; -0.0 and 0.0 are equal."""
    bits = np.int64(np.float32(np.float32(value) + np.float32(0.0)).view(np.int32))
    return bits if bits >= 0 else bits ^ np.int64(0x7FFFFFFF)


@inlined
def key_value(key: Num) -> Num:
    """The float32 of an order key."""
    bits = key if key >= 0 else key ^ np.int64(0x7FFFFFFF)
    return np.int32(bits).view(np.float32)


@inlined
def slide(words: Int64, start: Num, stop: Num, to: Num) -> None:
    """Copy a part of the arena to where the two may overlap."""
    copy(words, start, stop - start, words, to)


@inlined
def missing(h: Header, size_class: Num) -> Num:
    """Words beyond the top of the arena that a run of 2**size_class takes; 0 if one is free."""
    return 0 if free_runs(h)[size_class] >= 0 else 1 << size_class


@inlined
def has_room(h: Header, wanted: Num) -> Num:
    """Whether so many words can be had without growing the arena."""
    return h.arena_top + wanted <= h.arena_room


@inner
def take_run(h: Header, size_class: Num) -> Num:
    """The offset of a run; there must be one."""
    free = free_runs(h)
    at = free[size_class]
    if at >= 0:
        free[size_class] = arena(h)[at]
        return at
    at = h.arena_top
    h.arena_top += 1 << size_class
    return at


@inner
def give_run(h: Header, at: Num, size_class: Num) -> None:
    """Return a run to the list of its size."""
    free = free_runs(h)
    arena(h)[at] = free[size_class]
    free[size_class] = at


@inner
def fits(h: Header, bucket: Num) -> Num:
    """Whether one more entry of a bucket has room, whatever must be split or moved for it."""
    record = buckets(h)[bucket]
    if not record.blocks:
        if record.count < 1 << record.size_class:
            return True
        if record.size_class < BLOCK:
            return has_room(h, missing(h, record.size_class + 1))
        return has_room(h, missing(h, BLOCK) + missing(h, LEAST))
    # a block for a split; a directory begun anew where a removal comes first and leaves one block
    wanted = missing(h, BLOCK) + missing(h, LEAST)
    if 2 * record.blocks == 1 << record.size_class:
        larger = record.size_class + 1
        wanted += 1 << larger if larger == BLOCK else missing(h, larger)  # one free run serves once
    return has_room(h, wanted)


@inner
def move(h: Header, bucket: Num, size_class: Num) -> None:
    """Move the run of a bucket, of entries or of its directory, to one of another size."""
    record = buckets(h)[bucket]
    old, new = record.start, take_run(h, size_class)
    used = 2 * record.blocks if record.blocks else record.count
    slide(arena(h), old, old + used, new)
    give_run(h, old, record.size_class)
    record.start, record.size_class = new, size_class


@inner
def block_at(h: Header, bucket: Num, b: Num) -> tuple[Num, Num]:
    """Where block b begins, and how many entries it holds; without a directory, the whole run."""
    record = buckets(h)[bucket]
    if not record.blocks:
        return record.start, record.count
    word = arena(h)[record.start + 2 * b + 1]
    return word >> 8, word & 255


@inlined
def describe(h: Header, bucket: Num, b: Num, at: Num, count: Num) -> None:
    """Write the directory's pair of block b."""
    words, pair = arena(h), buckets(h)[bucket].start + 2 * b
    words[pair], words[pair + 1] = words[at] >> 32, (at << 8) | count


@inner
def open_block(h: Header, bucket: Num, b: Num) -> Num:
    """Make an empty block b, with a pair; returns where it begins."""
    record = buckets(h)[bucket]
    if 2 * record.blocks == 1 << record.size_class:
        move(h, bucket, record.size_class + 1)
    words, pair, end = arena(h), record.start + 2 * b, record.start + 2 * record.blocks
    slide(words, pair, end, pair + 2)
    record.blocks += 1
    at = take_run(h, np.int64(BLOCK))
    words[pair + 1] = at << 8
    return at


@inner
def close_block(h: Header, bucket: Num, b: Num) -> None:
    """Forget block b; a bucket with one block left needs no directory."""
    record, words = buckets(h)[bucket], arena(h)
    start, pair = record.start, record.start + 2 * b
    give_run(h, words[pair + 1] >> 8, np.int64(BLOCK))
    slide(words, pair + 2, start + 2 * record.blocks, pair)
    record.blocks -= 1
    if record.blocks == 1:
        left = words[start + 1] >> 8
        give_run(h, start, record.size_class)
        record.start, record.size_class, record.blocks = left, BLOCK, 0


@inlined
def begin_directory(h: Header, bucket: Num) -> None:
    """Put the run of a bucket under a directory, as its only block."""
    record = buckets(h)[bucket]
    at = record.start
    record.start, record.size_class, record.blocks = take_run(h, np.int64(LEAST)), LEAST, 1
    describe(h, bucket, np.int64(0), at, record.count)


@inner
def split(h: Header, bucket: Num, b: Num, p: Num, key: Num) -> tuple[Num, Num]:
    """Make room at position p of a full block b; returns the block and position it has become.

    Newcomers of equal keys meet at the front of those already there: cut there, and with what is
    cut off moved to the next block while that has room, blocks fill up instead of being halved.
    """
    at, count = block_at(h, bucket, b)
    words = arena(h)
    if p == 0:  # better than all: the next ones may be too
        open_block(h, bucket, b)
        return b, p
    cut = p if p == count or words[at + p] >> 32 == key else count >> 1
    lent = False
    if b + 1 < buckets(h)[bucket].blocks:
        other, more = block_at(h, bucket, b + 1)
        if more + count - cut < WIDE:
            slide(words, other, other + more, other + count - cut)
            slide(words, at + cut, at + count, other)
            describe(h, bucket, b + 1, other, more + count - cut)
            lent = True
    if not lent:
        fresh = open_block(h, bucket, b + 1)
        slide(words, at + cut, at + count, fresh)
        if cut < count:
            describe(h, bucket, b + 1, fresh, count - cut)
    describe(h, bucket, b, at, cut)
    if p > cut or cut == count:
        return b + 1, p - cut
    return b, p


@inlined
def merge(h: Header, bucket: Num, b: Num) -> None:
    """Move the entries of block b + 1 to the end of block b, if both together leave room."""
    at, count = block_at(h, bucket, b)
    other, more = block_at(h, bucket, b + 1)
    if count + more <= WIDE - WIDE // 4:
        slide(arena(h), other, other + more, at + count)
        describe(h, bucket, b, at, count + more)
        close_block(h, bucket, b + 1)

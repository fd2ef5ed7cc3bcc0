"""Where the entries of a bucket lie: in one run of the arena, or in blocks under a directory.

A bucket of up to `WIDE` entries is one run. A larger one is a run of pairs, (order key of a block's
first entry, offset << 8 | count), whose blocks hold up to `WIDE` entries each.
"""

from lser.replay.arena import give_run, has_room, missing, take_run
from lser.replay.compiled import Num, kernel, slide
from lser.replay.header import BLOCKS, CLASS, COUNT, LEAST, START, records, words
from lser.types import Int64

BLOCK = 6  # the class of a block's run
WIDE = 1 << BLOCK


@kernel
def fits(h: Int64, bucket: Num) -> Num:
    """Whether one more entry of a bucket has room, whatever must be split or moved for it."""
    record = records(h)[bucket]
    if not record[BLOCKS]:
        if record[COUNT] < 1 << record[CLASS]:
            return True
        if record[CLASS] < BLOCK:
            return has_room(h, missing(h, record[CLASS] + 1))
        return has_room(h, missing(h, BLOCK) + missing(h, LEAST))
    # a block for a split; a directory begun anew where a removal comes first and leaves one block
    wanted = missing(h, BLOCK) + missing(h, LEAST)
    if 2 * record[BLOCKS] == 1 << record[CLASS]:
        larger = record[CLASS] + 1
        wanted += 1 << larger if larger == BLOCK else missing(h, larger)  # one free run serves once
    return has_room(h, wanted)


@kernel
def move(h: Int64, bucket: Num, size_class: Num) -> None:
    """Move the run of a bucket, of entries or of its directory, to one of another size."""
    record = records(h)[bucket]
    old, new = record[START], take_run(h, size_class)
    used = 2 * record[BLOCKS] if record[BLOCKS] else record[COUNT]
    slide(words(h), old, old + used, new)
    give_run(h, old, record[CLASS])
    record[START], record[CLASS] = new, size_class


@kernel
def block_at(h: Int64, bucket: Num, b: Num) -> tuple[Num, Num]:
    """Where block b begins, and how many entries it holds."""
    record = records(h)[bucket]
    if not record[BLOCKS]:
        return record[START], record[COUNT]
    word = words(h)[record[START] + 2 * b + 1]
    return word >> 8, word & 255


@kernel
def describe(h: Int64, bucket: Num, b: Num, at: Num, count: Num) -> None:
    """Write the pair of block b."""
    arena, pair = words(h), records(h)[bucket, START] + 2 * b
    arena[pair], arena[pair + 1] = arena[at] >> 32, (at << 8) | count


@kernel
def _open_block(h: Int64, bucket: Num, b: Num) -> Num:
    """Make an empty block b, with a pair; returns where it begins."""
    record = records(h)[bucket]
    if 2 * record[BLOCKS] == 1 << record[CLASS]:
        move(h, bucket, record[CLASS] + 1)
    arena, pair, end = words(h), record[START] + 2 * b, record[START] + 2 * record[BLOCKS]
    slide(arena, pair, end, pair + 2)
    record[BLOCKS] += 1
    at = take_run(h, BLOCK)
    arena[pair + 1] = at << 8
    return at


@kernel
def close_block(h: Int64, bucket: Num, b: Num) -> None:
    """Forget block b; a bucket with one block left needs no directory."""
    record, arena = records(h)[bucket], words(h)
    start, pair = record[START], record[START] + 2 * b
    give_run(h, arena[pair + 1] >> 8, BLOCK)
    slide(arena, pair + 2, start + 2 * record[BLOCKS], pair)
    record[BLOCKS] -= 1
    if record[BLOCKS] == 1:
        left = arena[start + 1] >> 8
        give_run(h, start, record[CLASS])
        record[START], record[CLASS], record[BLOCKS] = left, BLOCK, 0


@kernel
def begin_directory(h: Int64, bucket: Num) -> None:
    """Put the run of a bucket under a directory, as its only block."""
    record = records(h)[bucket]
    at = record[START]
    record[START], record[CLASS], record[BLOCKS] = take_run(h, LEAST), LEAST, 1
    describe(h, bucket, 0, at, record[COUNT])


@kernel
def _lend(h: Int64, bucket: Num, b: Num, cut: Num) -> Num:
    """Move the entries of block b from `cut` on to the front of the next; whether it has room."""
    if b + 1 >= records(h)[bucket, BLOCKS]:
        return False
    at, count = block_at(h, bucket, b)
    other, more = block_at(h, bucket, b + 1)
    if more + count - cut >= WIDE:
        return False
    slide(words(h), other, other + more, other + count - cut)
    slide(words(h), at + cut, at + count, other)
    describe(h, bucket, b + 1, other, more + count - cut)
    return True


@kernel
def split(h: Int64, bucket: Num, b: Num, p: Num, key: Num) -> tuple[Num, Num]:
    """Make room at position p of a full block b; returns the block and position it has become.

    Newcomers of equal keys meet at the front of those already there: cut there, and with what is
    cut off moved to the next block while it has room, blocks fill up instead of being halved.
    """
    at, count = block_at(h, bucket, b)
    arena = words(h)
    if p == 0:  # better than all: the next ones may be too
        _open_block(h, bucket, 0)
        return 0, 0
    cut = count >> 1
    if p == count or arena[at + p] >> 32 == key:
        cut = p
    if not _lend(h, bucket, b, cut):
        fresh = _open_block(h, bucket, b + 1)
        slide(arena, at + cut, at + count, fresh)
        if cut < count:
            describe(h, bucket, b + 1, fresh, count - cut)
    describe(h, bucket, b, at, cut)
    return (b + 1, p - cut) if p > cut or cut == count else (b, p)


@kernel
def merge(h: Int64, bucket: Num, b: Num) -> None:
    """Move the entries of block b + 1 to the end of block b, if both together leave room."""
    at, count = block_at(h, bucket, b)
    other, more = block_at(h, bucket, b + 1)
    if count + more <= WIDE - WIDE // 4:
        slide(words(h), other, other + more, at + count)
        describe(h, bucket, b, at, count + more)
        close_block(h, bucket, b + 1)

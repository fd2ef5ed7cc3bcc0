"""The entries of a bucket in order, best first: sorted blocks, and a directory once there are two.

An entry is one word, order key << 32 | slot. Equal keys are in the order of their slots' ids, newer
first; as a newcomer is newer than all, ids are only looked at where an older entry is sought. A
bucket of up to `WIDE` entries is one run of the arena. A larger one is a run of pairs, (order key
of a block's first entry, offset << 8 | count), whose blocks hold up to `WIDE` entries each. So the
best of a bucket are read as they lie, the worst is the last, and a newcomer moves at most one
block's entries, however large the bucket: a heap would walk down all its levels.

Where an id is asked for, `NEWEST` stands for one above all others.
"""

import numpy as np

from lser.replay.arena import give_run, has_room, missing, take_run
from lser.replay.compiled import Num, kernel, prefetch, slide
from lser.replay.header import BLOCKS, CLASS, COUNT, LEAST, SIZE, START, held, records, words
from lser.types import Int64

SLOT = 0xFFFFFFFF
NEWEST = -1
BLOCK = 6  # the class of a block's run
WIDE = 1 << BLOCK
LINE = 8  # words in a cache line


@kernel
def order_key(value: Num) -> Num:
    """A float32 as an integer of the same order; -0.0 and 0.0 are equal."""
    bits = np.int64(np.float32(np.float32(value) + np.float32(0.0)).view(np.int32))
    return bits if bits >= 0 else bits ^ np.int64(0x7FFFFFFF)


@kernel
def key_value(key: Num) -> Num:
    """The float32 of an order key."""
    bits = key if key >= 0 else key ^ np.int64(0x7FFFFFFF)
    return np.int32(bits).view(np.float32)


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
def first_is_better(h: Int64, arena: Int64, at: Num, key: Num, i: Num) -> Num:
    """Whether the first entry of the block under the pair at `at` is better than (key, i)."""
    if arena[at] != key or i == NEWEST:
        return arena[at] > key
    return held(h)[arena[arena[at + 1] >> 8] & SLOT] > i


@kernel
def seek_block(h: Int64, bucket: Num, key: Num, i: Num) -> Num:
    """The block to which (key, i) belongs: the last that begins with a better entry, or 0."""
    record, arena = records(h)[bucket], words(h)
    low, high = 0, record[BLOCKS]
    while low < high:
        middle = (low + high) >> 1
        better = first_is_better(h, arena, record[START] + 2 * middle, key, i)
        low = middle + 1 if better else low
        high = high if better else middle
    return max(low - 1, 0)


@kernel
def recall_block(h: Int64, bucket: Num, key: Num, guess: Num) -> Num:
    """`seek_block` for a newcomer of this key, if a guess does not already lead to it."""
    record, arena = records(h)[bucket], words(h)
    if guess < record[BLOCKS]:
        pair = record[START] + 2 * guess
        last = guess + 1 == record[BLOCKS]
        if (guess == 0 or arena[pair] > key) and (last or arena[pair + 2] <= key):
            return guess
    return seek_block(h, bucket, key, NEWEST)


@kernel
def seek_entry(h: Int64, at: Num, count: Num, key: Num, i: Num) -> Num:
    """How many entries of a block are better than (key, i)."""
    arena, low = words(h), 0
    while count > 0:
        half = count >> 1
        word = arena[at + low + half]
        better = word >> 32 > key
        if word >> 32 == key and i != NEWEST:
            better = held(h)[word & SLOT] > i
        low = low + half + 1 if better else low
        count = count - half - 1 if better else half
    return low


@kernel
def _describe(h: Int64, bucket: Num, b: Num, at: Num, count: Num) -> None:
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
def _close_block(h: Int64, bucket: Num, b: Num) -> None:
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
def _begin_directory(h: Int64, bucket: Num) -> None:
    """Put the run of a bucket under a directory, as its only block."""
    record = records(h)[bucket]
    at = record[START]
    record[START], record[CLASS], record[BLOCKS] = take_run(h, LEAST), LEAST, 1
    _describe(h, bucket, 0, at, record[COUNT])


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
    _describe(h, bucket, b + 1, other, more + count - cut)
    return True


@kernel
def _split(h: Int64, bucket: Num, b: Num, p: Num, key: Num) -> tuple[Num, Num]:
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
            _describe(h, bucket, b + 1, fresh, count - cut)
    _describe(h, bucket, b, at, cut)
    return (b + 1, p - cut) if p > cut or cut == count else (b, p)


@kernel
def _settle(arena: Int64, at: Num, p: Num, word: Num) -> Num:
    """Put the newest entry among the p of a block, from its end, which has room; returns where."""
    low, left = at, p
    while left > 0:  # the first that is no better, without branches on what is found
        half = left >> 1
        better = arena[low + half] >> 32 > word >> 32
        low = low + half + 1 if better else low
        left = left - half - 1 if better else half
    slide(arena, low, at + p, low + 1)
    arena[low] = word
    return low - at


@kernel
def insert_newest(h: Int64, bucket: Num, word: Num, guess: Num) -> None:
    """`insert` for an id above all others, which is what traffic brings; `guess` is its block."""
    record, arena = records(h)[bucket], words(h)
    if record[BLOCKS] == 0:
        if record[COUNT] < 1 << record[CLASS]:
            _settle(arena, record[START], record[COUNT], word)
            record[COUNT] += 1
            return
    else:
        pair = record[START] + 2 * recall_block(h, bucket, word >> 32, guess)
        block = arena[pair + 1]
        if block & 255 < WIDE:
            if _settle(arena, block >> 8, block & 255, word) == 0:
                arena[pair] = word >> 32
            arena[pair + 1] = block + 1
            record[COUNT] += 1
            return
    insert(h, bucket, word, NEWEST)


@kernel
def replace_worst(h: Int64, bucket: Num, word: Num, guess: Num) -> None:
    """Put the newest entry, which `fits`, in the place of the worst."""
    record, arena = records(h)[bucket], words(h)
    if record[BLOCKS] == 0:
        _settle(arena, record[START], record[COUNT] - 1, word)
        return
    last = record[START] + 2 * record[BLOCKS] - 1
    if arena[last] & 255 > 1:
        arena[last] -= 1
        record[COUNT] -= 1
    else:
        delete_worst(h, bucket)
    insert_newest(h, bucket, word, guess)


@kernel
def insert(h: Int64, bucket: Num, word: Num, i: Num) -> None:
    """Put an entry of id i, or `NEWEST`, in its place; it must fit."""
    record, key = records(h)[bucket], word >> 32
    if not record[BLOCKS] and record[COUNT] == 1 << record[CLASS]:
        if record[CLASS] < BLOCK:
            move(h, bucket, record[CLASS] + 1)
        else:
            _begin_directory(h, bucket)
    b = seek_block(h, bucket, key, i)
    at, count = block_at(h, bucket, b)
    p = seek_entry(h, at, count, key, i)
    if record[BLOCKS] and count == WIDE:
        b, p = _split(h, bucket, b, p, key)
        at, count = block_at(h, bucket, b)
    arena = words(h)
    slide(arena, at + p, at + count, at + p + 1)
    arena[at + p] = word
    record[COUNT] += 1
    if record[BLOCKS]:
        _describe(h, bucket, b, at, count + 1)


@kernel
def _merge(h: Int64, bucket: Num, b: Num) -> None:
    """Move the entries of block b + 1 to the end of block b, if both together leave room."""
    at, count = block_at(h, bucket, b)
    other, more = block_at(h, bucket, b + 1)
    if count + more <= WIDE - WIDE // 4:
        slide(words(h), other, other + more, at + count)
        _describe(h, bucket, b, at, count + more)
        _close_block(h, bucket, b + 1)


@kernel
def delete(h: Int64, bucket: Num, b: Num, p: Num) -> None:
    """Take out the entry at position p of block b."""
    record = records(h)[bucket]
    at, count = block_at(h, bucket, b)
    slide(words(h), at + p + 1, at + count, at + p)
    record[COUNT] -= 1
    if not record[BLOCKS]:
        return
    if count == 1:
        _close_block(h, bucket, b)
        return
    _describe(h, bucket, b, at, count - 1)
    if count <= WIDE // 4:
        _merge(h, bucket, b if b + 1 < record[BLOCKS] else b - 1)


@kernel
def delete_entry(h: Int64, bucket: Num, key: Num, i: Num) -> None:
    """Take out the entry of this order key and id, which must be there."""
    # it is no better than itself, so a block that begins with it is the one after what is found
    b = seek_block(h, bucket, key, i)
    if b + 1 < records(h)[bucket, BLOCKS]:
        at, _ = block_at(h, bucket, b + 1)
        b += held(h)[words(h)[at] & SLOT] == i
    at, count = block_at(h, bucket, b)
    delete(h, bucket, b, seek_entry(h, at, count, key, i))


@kernel
def worst(h: Int64, bucket: Num) -> Num:
    """Where in the arena the worst entry of a bucket lies."""
    at, count = block_at(h, bucket, records(h)[bucket, BLOCKS] - 1)
    return at + count - 1


@kernel
def delete_worst(h: Int64, bucket: Num) -> None:
    """Take out the worst entry of a bucket."""
    b = max(records(h)[bucket, BLOCKS] - 1, 0)
    delete(h, bucket, b, block_at(h, bucket, b)[1] - 1)


@kernel
def best(h: Int64, bucket: Num, slots: Int64) -> None:
    """Write the slots of the best entries, best first; there must be as many."""
    arena, blocks = words(h), max(records(h)[bucket, BLOCKS], 1)
    ahead, b = 0, 0
    while ahead < len(slots) and b < blocks:  # all of them wait for memory once
        at, count = block_at(h, bucket, b)
        for p in range(0, count, LINE):
            prefetch(arena, at + p)
        ahead, b = ahead + count, b + 1
    done, b = 0, 0
    while done < len(slots):
        at, count = block_at(h, bucket, b)
        for p in range(min(count, len(slots) - done)):
            slots[done + p] = arena[at + p] & SLOT
        done, b = done + count, b + 1


@kernel
def by_rank(h: Int64, bucket: Num, ranks: Int64) -> None:
    """Replace ranks in the order of a bucket (0: the best) by slots."""
    arena, blocks = words(h), max(records(h)[bucket, BLOCKS], 1)
    begins = np.empty(blocks + 1, np.int64)
    begins[0] = 0
    for b in range(blocks):
        begins[b + 1] = begins[b] + block_at(h, bucket, b)[1]
    for k in range(len(ranks)):
        b = ranks[k] * blocks // begins[blocks]  # near, as blocks are about equally full
        while ranks[k] < begins[b]:
            b -= 1
        while ranks[k] >= begins[b + 1]:
            b += 1
        ranks[k] = block_at(h, bucket, b)[0] + ranks[k] - begins[b]
        prefetch(arena, ranks[k])
    for k in range(len(ranks)):
        ranks[k] = arena[ranks[k]] & SLOT


@kernel
def in_order(h: Int64, bucket: Num) -> Num:
    """Whether the entries of a bucket descend, and its directory says what its blocks hold."""
    record, arena = records(h)[bucket], words(h)
    total, key, i = 0, np.int64(1) << 32, np.int64(0)
    for b in range(max(record[BLOCKS], 1)):
        at, count = block_at(h, bucket, b)
        if record[BLOCKS] and (count < 1 or count > WIDE):
            return False
        if record[BLOCKS] and arena[record[START] + 2 * b] != arena[at] >> 32:
            return False
        for p in range(at, at + count):
            if arena[p] & SLOT >= h[SIZE]:
                return False
            found, id_ = arena[p] >> 32, held(h)[arena[p] & SLOT]
            if found > key or (found == key and id_ >= i):
                return False
            key, i = found, id_
        total += count
    return total == record[COUNT]

"""Interval heaps: the best and the worst of a bucket both at hand, in one run of an arena.

Van Leeuwen and Wood (1993). Node i of a heap holds its lower end at position 2i and its upper end
at 2i+1; the interval of a node contains those of its children 2i+1 and 2i+2; a last node may hold
one entry. An entry is two int64: order key << 32 | slot, and the id, which settles ties: newer is
better. `positions` (empty when not wanted) keeps each slot's position for removal and re-keying.

Arguments shared by all kernels: `arena` (entries, 2), `o` the offset of the heap in it, `n` the
entries it has, (`a`, `i`) the two words of an entry.
"""

import numpy as np

from lser.replay.compiled import Int32, Num, kernel, prefetch
from lser.types import Int64

SLOT = 0xFFFFFFFF


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
def less(a: Num, i: Num, b: Num, j: Num) -> Num:
    """Whether entry (a, i) is worse than (b, j)."""
    x, y = a >> 32, b >> 32
    return (x < y) | ((x == y) & (i < j))  # without branches, which would be guessed wrong


@kernel
def place(arena: Int64, o: Num, positions: Int32, p: Num, a: Num, i: Num) -> None:
    """Write an entry at position p."""
    arena[o + p, 0] = a
    arena[o + p, 1] = i
    if positions.size:
        positions[a & SLOT] = p


@kernel
def up(arena: Int64, o: Num, positions: Int32, p: Num, end: Num, a: Num, i: Num) -> None:
    """Let an entry at position p rise among the lower (end 0) or upper (end 1) ends."""
    node = p >> 1
    while node > 0:
        parent = (node - 1) >> 1
        q = 2 * parent + end
        b, j = arena[o + q, 0], arena[o + q, 1]
        if (end == 0 and less(a, i, b, j)) or (end == 1 and less(b, j, a, i)):
            place(arena, o, positions, p, b, j)
            p, node = q, parent
        else:
            break
    place(arena, o, positions, p, a, i)


@kernel
def lower_child(arena: Int64, o: Num, n: Num, node: Num) -> Num:
    """The child with the worse lower end of a node that has one or two."""
    p = 4 * node + 2
    q = min(p + 2, n - 1)  # p or p + 1, neither of them worse than p, if there is no other child
    return 2 * node + 1 + less(arena[o + q, 0], arena[o + q, 1], arena[o + p, 0], arena[o + p, 1])


@kernel
def down_low(arena: Int64, o: Num, n: Num, positions: Int32, node: Num, a: Num, i: Num) -> None:
    """Let an entry sink from the lower end of `node`."""
    while True:
        p = 2 * node
        if p + 1 < n:
            b, j = arena[o + p + 1, 0], arena[o + p + 1, 1]
            if less(b, j, a, i):
                place(arena, o, positions, p + 1, a, i)
                a, i = b, j
        if 4 * node + 2 >= n:
            break
        child = lower_child(arena, o, n, node)
        q = 2 * child
        b, j = arena[o + q, 0], arena[o + q, 1]
        if not less(b, j, a, i):
            break
        place(arena, o, positions, p, b, j)
        node = child
    place(arena, o, positions, 2 * node, a, i)


@kernel
def top_of(n: Num, node: Num) -> Num:
    """The position of a node's upper end, which is its only entry in a last half node."""
    return min(2 * node + 1, n - 1)


@kernel
def down_high(arena: Int64, o: Num, n: Num, positions: Int32, node: Num, a: Num, i: Num) -> None:
    """Let an entry sink from the upper end of `node`, which has both ends."""
    p = 2 * node + 1
    while True:
        if p == 2 * node + 1:
            b, j = arena[o + p - 1, 0], arena[o + p - 1, 1]
            if less(a, i, b, j):
                place(arena, o, positions, p - 1, a, i)
                a, i = b, j
        child = 2 * node + 1
        if 2 * child >= n:
            break
        q = top_of(n, child)
        if 2 * (child + 1) < n:
            r = top_of(n, child + 1)
            if less(arena[o + q, 0], arena[o + q, 1], arena[o + r, 0], arena[o + r, 1]):
                q, child = r, child + 1
        b, j = arena[o + q, 0], arena[o + q, 1]
        if not less(a, i, b, j):
            break
        place(arena, o, positions, p, b, j)
        node, p = child, q
    place(arena, o, positions, p, a, i)


@kernel
def add(arena: Int64, o: Num, n: Num, positions: Int32, a: Num, i: Num) -> None:
    """Add an entry to a heap of n entries with room for one more."""
    if n & 1:  # completes the last node
        b, j = arena[o + n - 1, 0], arena[o + n - 1, 1]
        if less(a, i, b, j):
            place(arena, o, positions, n, b, j)
            up(arena, o, positions, n - 1, 0, a, i)
        else:
            up(arena, o, positions, n, 1, a, i)
        return
    if n == 0:
        place(arena, o, positions, 0, a, i)
        return
    parent = ((n >> 1) - 1) >> 1
    end = 0 if less(a, i, arena[o + 2 * parent, 0], arena[o + 2 * parent, 1]) else 1
    up(arena, o, positions, n, end, a, i)  # stays where it is unless outside the parent's interval


@kernel
def replace_worst(arena: Int64, o: Num, n: Num, positions: Int32, a: Num, i: Num) -> None:
    """Put an entry in the place of the worst."""
    down_low(arena, o, n, positions, 0, a, i)


@kernel
def fix(arena: Int64, o: Num, n: Num, positions: Int32, p: Num, a: Num, i: Num) -> None:
    """Put any entry at position p of a heap of n entries, in the place of what was there."""
    node = p >> 1
    parent = (node - 1) >> 1
    if p & 1:
        b, j = arena[o + p - 1, 0], arena[o + p - 1, 1]
        if less(a, i, b, j):
            up(arena, o, positions, p - 1, 0, a, i)
            down_high(arena, o, n, positions, node, b, j)
        elif node > 0 and less(arena[o + 2 * parent + 1, 0], arena[o + 2 * parent + 1, 1], a, i):
            up(arena, o, positions, p, 1, a, i)
        else:
            down_high(arena, o, n, positions, node, a, i)
        return
    if p + 1 < n:
        b, j = arena[o + p + 1, 0], arena[o + p + 1, 1]
        if less(b, j, a, i):
            up(arena, o, positions, p + 1, 1, a, i)
            down_low(arena, o, n, positions, node, b, j)
            return
    elif node > 0 and less(arena[o + 2 * parent + 1, 0], arena[o + 2 * parent + 1, 1], a, i):
        up(arena, o, positions, p, 1, a, i)
        return
    if node > 0 and less(a, i, arena[o + 2 * parent, 0], arena[o + 2 * parent, 1]):
        up(arena, o, positions, p, 0, a, i)
    else:
        down_low(arena, o, n, positions, node, a, i)


@kernel
def remove(arena: Int64, o: Num, n: Num, positions: Int32, p: Num) -> None:
    """Take out the entry at position p of a heap of n entries."""
    a, i = arena[o + n - 1, 0], arena[o + n - 1, 1]
    if p < n - 1:
        fix(arena, o, n - 1, positions, p, a, i)


@kernel
def _write(queue: Int64, at: Num, a: Num, i: Num, p: Num) -> None:
    queue[at, 0], queue[at, 1], queue[at, 2] = a, i, p


@kernel
def _offer(queue: Int64, size: Num, a: Num, i: Num, p: Num) -> Num:
    """Add a candidate to a binary heap with the best at 0."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        b, j = queue[parent, 0], queue[parent, 1]
        if not less(b, j, a, i):
            break
        _write(queue, at, b, j, queue[parent, 2])
        at = parent
    _write(queue, at, a, i, p)
    return size + 1


@kernel
def _replace(queue: Int64, size: Num, a: Num, i: Num, p: Num) -> None:
    """Put a candidate in the place of the best of a binary heap."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        other = min(child + 1, size - 1)
        if less(queue[child, 0], queue[child, 1], queue[other, 0], queue[other, 1]):
            child = other
        b, j = queue[child, 0], queue[child, 1]
        if not less(a, i, b, j):
            break
        _write(queue, at, b, j, queue[child, 2])
        at = child
    _write(queue, at, a, i, p)


@kernel
def _successors(n: Num, p: Num) -> tuple[Num, Num]:
    """The one or two positions that follow p in the walk of `best`; -1 for none."""
    node = p >> 1
    single = p == n - 1 and p == 2 * node
    if p & 1 or single:
        child = 2 * node + 1
        if 2 * child < n:
            return top_of(n, child), top_of(n, child + 1) if 2 * (child + 1) < n else -1
        if not single:
            return p - 1, -1
    # a lower end, or the one entry of a half node: on to the parent's lower end from the left
    return node - 1 if node & 1 else -1, -1


@kernel
def best(arena: Int64, o: Num, n: Num, count: Num, slots: Int64) -> None:
    """Write the slots of the `count` <= n best entries, best first, without moving any.

    Every entry but the best has one predecessor that is no worse: an upper end its parent's, a
    leaf's lower end the leaf's upper, an inner lower end its left child's. A candidate queue walks
    that tree, so the work is O(count log count) whatever n.
    """
    for p in range(0, min(n, 4 * count), 4):  # four entries in a cache line
        prefetch(arena, 2 * (o + p))
    queue = np.empty((count + 2, 3), np.int64)
    p = top_of(n, 0)
    size = _offer(queue, 0, arena[o + p, 0], arena[o + p, 1], p)
    for k in range(count):
        slots[k] = queue[0, 0] & SLOT
        p, q = _successors(n, queue[0, 2])
        prefetch(arena, 2 * (o + 2 * p + 2))  # the successors of p and q, if upper ends
        prefetch(arena, 2 * (o + 2 * q + 2))
        if p >= 0:
            _replace(queue, size, arena[o + p, 0], arena[o + p, 1], p)
        else:
            size -= 1
            _replace(queue, size, queue[size, 0], queue[size, 1], queue[size, 2])
        if q >= 0:
            size = _offer(queue, size, arena[o + q, 0], arena[o + q, 1], q)


@kernel
def violation(arena: Int64, o: Num, n: Num) -> Num:
    """The first position that breaks the order of an interval heap, or -1."""
    for p in range(1, n):
        node = p >> 1
        a, i = arena[o + p, 0], arena[o + p, 1]
        if p & 1 and not less(arena[o + p - 1, 0], arena[o + p - 1, 1], a, i):
            return p
        if node > 0:
            parent = 2 * ((node - 1) >> 1)
            if not less(arena[o + parent, 0], arena[o + parent, 1], a, i):
                return p
            if not less(a, i, arena[o + parent + 1, 0], arena[o + parent + 1, 1]):
                return p
    return -1

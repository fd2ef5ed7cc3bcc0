"""A sum tree: draw slots in proportion to their priorities, and change priorities, in O(log n).

Eight children per node, so a node's children are one cache line of float64 and a million slots
are seven levels deep. A parent is always recomputed as the sum of its children, never adjusted by
a difference, so rounding does not build up however long the tree lives.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from lser.checks import check_shape
from lser.compiled import kernel, prefetch
from lser.replay.generator import draw_numbers
from lser.types import Float32, Float64, Int64

WIDTH = 8


class SumTree:
    """Non-negative float64 priorities of `capacity` slots, all zero at first."""

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, got {capacity}")
        self.capacity = capacity
        sizes = [-(-capacity // WIDTH) * WIDTH]
        while sizes[-1] > WIDTH:
            sizes.append(-(-sizes[-1] // WIDTH // WIDTH) * WIDTH)
        # Levels lie one after the other, leaves first; the root's children come before it.
        self._starts = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64)
        self._nodes = np.zeros(sum(sizes) + 1)

    @property
    def priorities(self) -> Float64:
        """The priority of each slot, (capacity,); a read-only view."""
        view = self._nodes[: self.capacity]
        view.flags.writeable = False
        return view

    @property
    def total(self) -> float:
        """The sum of all priorities."""
        return self._nodes.item(-1)

    def set(self, slots: Int64, priorities: ArrayLike) -> None:
        """Set the priorities (n,) of slots (n,); of a slot named twice the last one stays."""
        self.setting(slots, priorities)()

    def setting(self, slots: Int64, priorities: ArrayLike) -> Callable[[], None]:
        """What `set` does, as a step: at once, and the same when done twice."""
        values = np.empty(len(slots))
        values[:] = priorities
        return partial(_set, self._nodes, self._starts, slots, values)

    def load(self, priorities: ArrayLike) -> None:
        """Set the priorities of all slots, (capacity,), from a file; ValueError for wrong ones."""
        values = np.asarray(priorities, np.float64)
        check_shape("priorities", values, (self.capacity,))
        if not np.isfinite(values).all() or (values < 0).any():
            raise ValueError("the saved priorities are not finite numbers of at least 0")
        self.set(np.arange(self.capacity), values)

    def find(self, points: Float64) -> Int64:
        """Find the slots (n,) under points (n,) of [0, 1) on the line of stacked priorities."""
        slots = np.empty(len(points), dtype=np.int64)
        _find(self._nodes, self._starts, points, slots)
        return slots

    def draw(self, uniforms: Float64, beta: float) -> tuple[Int64, Float32]:
        """Draw a slot from each of n equal shares of the total, given n uniforms of [0, 1).

        With them come the importance weights (N P)^-beta over the largest of the batch, in which
        N and the total cancel: they are (p / least p)^-beta.
        """
        slots, weights = np.empty(len(uniforms), np.int64), np.empty(len(uniforms), np.float32)
        _draw(self._nodes, self._starts, uniforms, beta, slots, weights)
        return slots, weights

    def draw_from(
        self, generator: int, size: int, beta: float, draws: Int64
    ) -> tuple[Int64, Float32]:
        """`draw` with uniforms of a generator, by its address; the draw is counted in `draws`."""
        slots, weights = np.empty(size, np.int64), np.empty(size, np.float32)
        _draw_from(self._nodes, self._starts, generator, beta, slots, weights, draws)
        return slots, weights


@kernel
def _set(nodes: Float64, starts: Int64, slots: Int64, values: Float64) -> None:
    levels = len(starts)
    for i in range(len(slots)):
        prefetch(nodes, slots[i])
        if levels > 1:
            prefetch(nodes, starts[1] + slots[i] // WIDTH)
    for i in range(len(slots)):
        nodes[slots[i]] = values[i]
    for i in range(len(slots)):
        family = slots[i] // WIDTH
        for level in range(1, levels):
            first = starts[level - 1] + family * WIDTH
            total = 0.0
            for child in range(first, first + WIDTH):
                total += nodes[child]
            nodes[starts[level] + family] = total
            family //= WIDTH
    total = 0.0
    for child in range(starts[-1], starts[-1] + WIDTH):
        total += nodes[child]
    nodes[-1] = total


@kernel
def _find(nodes: Float64, starts: Int64, points: Float64, slots: Int64) -> None:
    """All points go down a level together, so that they wait for memory together."""
    masses = points * nodes[-1]
    slots[:] = 0
    for level in range(len(starts) - 1, -1, -1):
        for i in range(len(points)):
            first = starts[level] + slots[i] * WIDTH
            mass, chosen, before = masses[i], first, 0.0
            for child in range(first, first + WIDTH):
                if nodes[child] > 0.0:
                    # Rounding may leave a little mass past the end: the last one above 0 has it.
                    chosen = child
                    mass -= before
                    before = nodes[child]
                    if mass < before:
                        break
            masses[i] = mass
            slots[i] = chosen - starts[level]
            if level > 0:
                prefetch(nodes, starts[level - 1] + slots[i] * WIDTH)


@kernel
def _draw(
    nodes: Float64,
    starts: Int64,
    uniforms: Float64,
    beta: float,
    slots: Int64,
    weights: Float32,
) -> None:
    size = len(uniforms)
    points = np.empty(size)
    for i in range(size):
        points[i] = (i + uniforms[i]) / size
    _find(nodes, starts, points, slots)
    least = np.inf
    for i in range(size):
        least = min(least, nodes[slots[i]])
    for i in range(size):
        weights[i] = (nodes[slots[i]] / least) ** -beta


@kernel
def _draw_from(
    nodes: Float64,
    starts: Int64,
    generator: int,
    beta: float,
    slots: Int64,
    weights: Float32,
    draws: Int64,
) -> None:
    uniforms = np.empty(len(slots))
    draw_numbers(generator, 1, slots[:0], uniforms, draws)
    _draw(nodes, starts, uniforms, beta, slots, weights)

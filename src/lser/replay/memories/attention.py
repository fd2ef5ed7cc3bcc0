"""How alike observations are to a query, and which of random candidates are most so (AER)."""

import numpy as np

from lser.compiled import Num, inner, kernel, unordered_kernel
from lser.random import below
from lser.replay.memories.sketch import UInt16, bound, prefetch_sketch
from lser.replay.rows import prefetch_row
from lser.types import Float32, Float64, Int64

_HALVINGS = 12  # of an interval of 3: a wider one costs a few rows more, nothing else


@inner
def features_of(
    count: Num, mean: Float64, squares: Float64, query: Float32
) -> tuple[Float64, Float64, Float64]:
    """What turns x into features (x - shift) * scale, and the query's direction in them.

    Without statistics (a count of 0) features are observations as they are.
    """
    shift, scale = np.zeros(len(query)), np.ones(len(query))
    direction, largest = np.empty(len(query)), 0.0
    for j in range(len(query)):
        if count > 0:
            shift[j] = mean[j]
            scale[j] = 1.0 / np.sqrt(squares[j] / count) if squares[j] > 0 else 0.0
        direction[j] = (query[j] - shift[j]) * scale[j]
        largest = max(largest, abs(direction[j]))
    if largest > 0:
        direction /= largest  # first, lest a square be too large
        direction /= np.sqrt(np.sum(direction * direction))
    return shift, scale, direction


@unordered_kernel
def cosine(row: Float32, shift: Float64, scale: Float64, direction: Float64) -> Num:
    """The cosine of an observation's features to a direction; 0 for one without features."""
    product, squares = 0.0, 0.0
    for j in range(len(shift)):
        feature = (row[j] - shift[j]) * scale[j]
        product += feature * direction[j]
        squares += feature * feature
    return product / np.sqrt(squares) if squares > 0 else 0.0


@inner
def threshold(values: Float32, count: Num) -> tuple[Num, Num]:
    """Two numbers, close to each other: `count` values or more reach the first, fewer the second.

    By halving, which has no branches to guess wrong: a tenth of the time of `np.partition`.
    """
    first, second = np.float32(-np.inf), np.float32(np.inf)
    bottom, top = np.float32(-1.5), np.float32(1.5)
    for _ in range(_HALVINGS):
        middle, reached = np.float32(0.5) * (bottom + top), np.int32(0)
        for i in range(len(values)):
            reached += np.int32(values[i] >= middle)
        if reached >= count:
            first = bottom = middle
        else:
            second = top = middle
    return first, second


@kernel
def attend(
    rows: Float32,
    sketches: UInt16,
    stored: Num,
    count: Int64,
    mean: Float64,
    squares: Float64,
    query: Float32,
    seed: Num,
    candidates: Num,
    slots: Int64,
) -> None:
    """Fill `slots` with the most similar of so many uniform draws, in the order drawn.

    Of equally similar ones the earlier are kept. There are more candidates than slots. Those whose
    sketches leave it open are judged by their rows: as many cosines as there are slots reach `out`,
    and no more can reach `sure`.
    """
    drawn, size = np.empty(candidates, np.int64), len(slots)
    state = np.full(1, seed, np.uint64)
    for i in range(candidates):
        drawn[i] = below(state, stored)
        prefetch_sketch(sketches, drawn[i])
    shift, scale, direction = features_of(count[0], mean, squares, query)
    low, high = np.empty(candidates, np.float32), np.empty(candidates, np.float32)
    bound(sketches, drawn, shift, scale, direction, low, high)
    out, sure = threshold(low, size)[0], threshold(high, size + 1)[1]
    cosines, open_ones = np.empty(candidates), np.empty(candidates, np.int64)
    left, wanted = 0, size
    for i in range(candidates):
        cosines[i] = -2.0
        if low[i] >= sure:
            prefetch_row(rows, drawn[i], rows.shape[1])
            cosines[i] = 2.0
            wanted -= 1
        elif high[i] >= out:
            prefetch_row(rows, drawn[i], len(query))
            open_ones[left] = i
            left += 1
    exact = np.empty(left)
    for k in range(left):
        found = cosine(rows[drawn[open_ones[k]]], shift, scale, direction)
        exact[k] = found if abs(found) <= 2.0 else 0.0  # features too large to be squared
        cosines[open_ones[k]] = exact[k]
    least = np.partition(exact, left - wanted)[left - wanted] if wanted > 0 else 1.5
    ties = wanted - np.sum(exact > least)
    kept = 0
    for i in range(candidates):
        tied = cosines[i] == least and ties > 0
        if cosines[i] > least or tied:
            slots[kept] = drawn[i]
            kept += 1
            ties -= tied

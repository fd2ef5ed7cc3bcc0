"""How alike observations are to a query, and which of random candidates are most so (AER)."""

import numpy as np
from numpy.typing import NDArray

from lser.compiled import Num, inner, kernel, unordered_kernel
from lser.random import below
from lser.replay.generator import next_word
from lser.replay.memories.sketch import UInt16, bound, prefetch_sketch
from lser.replay.rows import prefetch_row
from lser.types import Float32, Float64, Int64

_CLOSE = 12  # halvings of an interval of 3: a wider one costs a few rows more, nothing else
_EXACT = 62  # to below the last bit of a cosine


@inner
def features_of(
    count: Num, mean: Float64, squares: Float64, query: Float32
) -> tuple[Float64, Float64, Float64]:
    """What turns x into features (x - shift) * scale, and the query's direction in them.

    Without statistics (a count of 0) features are observations as they are.
    """
    shift, scale, direction = np.zeros(len(query)), np.ones(len(query)), np.empty(len(query))
    if count > 0:
        for j in range(len(query)):
            shift[j] = mean[j]
            scale[j] = 1.0 / np.sqrt(squares[j] / count) if squares[j] > 0 else 0.0
    largest = 0.0
    for j in range(len(query)):
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
def threshold(values: NDArray[np.floating], count: Num, halvings: Num) -> tuple[Num, Num]:
    """Two numbers, close or equal: `count` values or more reach the first, no more the second.

    By halving, which has no branches to guess wrong: a tenth of the time of `np.partition`. Values
    are at most 1.5 in size, or infinite.
    """
    kind = values.dtype.type
    first, second = kind(-np.inf), kind(np.inf)
    bottom, top = kind(-1.5), kind(1.5)
    for _ in range(halvings):
        middle, reached = kind(0.5) * (bottom + top), np.int32(0)
        for i in range(len(values)):
            reached += np.int32(values[i] >= middle)
        if reached >= count:
            first = bottom = middle
        if reached <= count:
            second = top = middle
        if reached == count:
            break
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
    generator: Num,
    draws: Int64,
    candidates: Num,
    slots: Int64,
) -> None:
    """Fill `slots` with the most similar of so many uniform draws, in the order drawn; count it.

    Of equally similar ones the earlier are kept. There are more candidates than slots. Those whose
    sketches leave it open are judged by their rows: as many cosines as there are slots reach `out`,
    and no more can reach `sure`.
    """
    drawn, size = np.empty(candidates, np.int64), len(slots)
    state = np.empty(1, np.uint64)
    state[0] = next_word(generator) >> np.uint64(1)
    draws[0] += 1
    for i in range(candidates):
        drawn[i] = below(state, stored)
        prefetch_sketch(sketches, drawn[i])
    shift, scale, direction = features_of(count[0], mean, squares, query)
    low, high = np.empty(candidates, np.float32), np.empty(candidates, np.float32)
    bound(sketches, drawn, shift, scale, direction, low, high)
    out, sure = threshold(low, size, _CLOSE)[0], threshold(high, size, _CLOSE)[1]
    left = 0
    for i in range(candidates):  # always moved, sometimes counted: no branch to guess wrong
        drawn[left], low[left] = drawn[i], low[i]
        left += high[i] >= out
    cosines, exact = np.full(left, np.inf), np.empty(left)
    unsure, doubts = np.empty(left, np.int64), 0
    for k in range(left):
        unsure[doubts] = k
        doubts += low[k] < sure
    for d in range(doubts):
        prefetch_row(rows, drawn[unsure[d]], len(query))
    for d in range(doubts):
        found = cosine(rows[drawn[unsure[d]]], shift, scale, direction)
        exact[d] = found if abs(found) <= 1.5 else 0.0  # features too large to be squared
        cosines[unsure[d]] = exact[d]
    wanted = size - (left - doubts)
    least, above = threshold(exact[:doubts], wanted, _EXACT)
    ties = wanted - np.sum(exact[:doubts] >= above)
    kept = 0
    for k in range(left):
        tied = least <= cosines[k] < above and ties > 0
        drawn[kept] = drawn[k]
        kept += cosines[k] >= above or tied
        ties -= tied
    slots[:] = drawn[:size]

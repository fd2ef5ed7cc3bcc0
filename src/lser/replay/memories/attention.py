"""How alike observations are to a query, and which of random candidates are most so (AER)."""

import numpy as np

from lser.compiled import Num, UInt64, inner, kernel, unordered_kernel
from lser.random import below
from lser.replay.rows import prefetch_row
from lser.types import Float32, Float64, Int64


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


@kernel
def attend(
    rows: Float32,
    stored: Num,
    count: Int64,
    mean: Float64,
    squares: Float64,
    query: Float32,
    state: UInt64,
    candidates: Num,
    slots: Int64,
) -> None:
    """Fill `slots` with the most similar of so many uniform draws, in the order drawn.

    Of equally similar ones the earlier are kept.
    """
    drawn, cosines = np.empty(candidates, np.int64), np.empty(candidates)
    for i in range(candidates):
        drawn[i] = below(state, stored)
        prefetch_row(rows, drawn[i], len(query))
    shift, scale, direction = features_of(count[0], mean, squares, query)
    for i in range(candidates):
        found = cosine(rows[drawn[i]], shift, scale, direction)
        cosines[i] = found if abs(found) <= 2.0 else 0.0  # features too large to be squared
    least = np.partition(cosines, candidates - len(slots))[candidates - len(slots)]
    ties = len(slots) - np.sum(cosines > least)
    kept = 0
    for i in range(candidates):
        tied = cosines[i] == least and ties > 0
        if cosines[i] > least or tied:
            slots[kept] = drawn[i]
            kept += 1
            ties -= tied

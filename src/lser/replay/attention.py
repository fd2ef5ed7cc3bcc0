"""Of random candidates those most alike to a query, in one call: draw, bound, decide and gather.

Waiting for memory is what this costs, so candidates are judged by their sketches. The observations
are read of those chosen, and of the few that the sketches cannot tell from them.
"""

import numpy as np
from numpy.typing import NDArray

from lser.replay import sketch as sketches
from lser.replay.compiled import Num, kernel, prefetch, unordered_kernel
from lser.replay.draw import below
from lser.replay.packing import gather, near, near_start
from lser.replay.sketch import UInt16
from lser.types import Bool, Float32, Int64

Float64 = NDArray[np.float64]
_CLOSE = 12  # halvings for a threshold: a wide interval costs a few rows, nothing else
_EXACT = 62  # halvings to below the last bit of a cosine


@kernel
def _frame(count: Num, mean: Float64, squares: Float64, query: Float32) -> Float64:
    """What turns x into features (x - shift) * scale, and the query's unit vector, (3, O).

    Without statistics (a count of 0) features are observations as they are.
    """
    frame = np.empty((3, len(query)))
    length = 0.0
    for j in range(len(query)):
        frame[0, j], frame[1, j] = 0.0, 1.0
        if count > 0:
            varies = squares[j] > 0
            frame[0, j] = mean[j]
            frame[1, j] = np.sqrt(count / squares[j]) if varies else 0.0
        frame[2, j] = (query[j] - frame[0, j]) * frame[1, j]
        length = max(length, abs(frame[2, j]))
    if length > 0:
        frame[2] /= length  # first, lest a square be too large
        frame[2] /= np.sqrt(np.sum(frame[2] * frame[2]))
    return frame


@unordered_kernel
def _cosine(row: Float32, frame: Float64) -> Num:
    """The cosine of an observation to the query; 0 for one without a direction."""
    product = 0.0
    squares = 0.0
    for j in range(frame.shape[1]):
        feature = (row[j] - frame[0, j]) * frame[1, j]
        product += feature * frame[2, j]
        squares += feature * feature
    return product / np.sqrt(squares) if squares > 0 else 0.0


@kernel
def _at_least(values: Num, threshold: Num) -> Num:
    count = np.int32(0)
    for i in range(len(values)):
        count += np.int32(values[i] >= threshold)
    return count


@kernel
def _threshold(values: Num, size: Num, halvings: Num) -> Num:
    """Some (a, b) with `size` values or more at or above a, fewer at or above b, as close as said.

    Values are at most 1.5 in size, or infinite. A search by halves has no branches to guess wrong.
    """
    a, b = -np.inf, np.inf
    low, high = -1.5, 1.5
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        if _at_least(values, values.dtype.type(middle)) >= size:
            a = low = middle
        else:
            b = high = middle
    return a, b


@kernel
def _decide(kept: Float32, slots: Int64, frame: Float64, wanted: Num, keep: Bool) -> None:
    """Set `keep` for the `wanted` slots of largest cosine, ties to the earlier."""
    cosines = np.empty(len(slots))
    for k in range(len(slots)):
        cosines[k] = _cosine(kept[slots[k]], frame)
    a, b = _threshold(cosines, wanted, _EXACT)
    ties = wanted - _at_least(cosines, b)
    for k in range(len(slots)):
        tied = a <= cosines[k] < b
        keep[k] = cosines[k] >= b or (tied and ties > 0)
        ties -= tied


@kernel
def _best(
    kept: Float32, held: Int64, slots: Int64, frame: Float64, low: Float32, high: Float32, size: Num
) -> Int64:
    """The `size` candidates of largest cosine, in their order, ties to the earlier.

    At least `size` values of `low` are at `out` or above, so as many cosines are: a `high` below
    it is not chosen. At most `size` values of `high` are at `sure` or above: a `low` there is.
    """
    out, _ = _threshold(low, size, _CLOSE)
    _, sure = _threshold(high, size + 1, _CLOSE)
    room = np.empty((3, len(slots) + 1), np.int64)
    left, unsure, doubtful = room[0], room[1], room[2]
    count, doubts = 0, 0
    for i in range(len(slots)):  # written always and counted sometimes: no branch to guess wrong
        left[count] = i
        count += high[i] >= out
    for k in range(count):
        slot = slots[left[k]]
        if low[left[k]] >= sure:
            near(kept, slot)
            prefetch(held, slot)
        else:
            near_start(kept, slot, frame.shape[1])
            unsure[doubts], doubtful[doubts] = k, slot
            doubts += 1
    keep = np.ones(count, np.bool_)
    if doubts > 0:
        verdict = np.empty(doubts, np.bool_)
        _decide(kept, doubtful[:doubts], frame, size - (count - doubts), verdict)
        for k in range(doubts):
            keep[unsure[k]] = verdict[k]
    chosen = np.empty(size + 1, np.int64)
    at = 0
    for k in range(count):
        chosen[at] = slots[left[k]]
        at += keep[k]
    return chosen[:size]


@kernel
def attend(
    kept: Float32,
    held: Int64,
    sketch: UInt16,
    counts: Int64,
    mean: Float64,
    squares: Float64,
    query: Float32,
    seed: Num,
    stored: Num,
    candidates: Num,
    rows: Float32,
    flags: Bool,
    ids: Int64,
) -> None:
    """Fill rows, flags and ids, as `gather` does, with the best of `candidates` uniform draws."""
    state = np.empty(1, np.uint64)
    state[0] = seed
    slots = np.empty(candidates, np.int64)
    for i in range(candidates):  # the caches hold all of their sketches
        slots[i] = below(state, stored)
        sketches.near(sketch, slots[i])
    frame = _frame(counts[0], mean, squares, query)
    narrow = np.zeros((3, sketch.shape[1]), np.float32)
    for j in range(len(query)):
        narrow[0, j] = frame[1, j]
        narrow[1, j] = frame[0, j] * frame[1, j]
        narrow[2, j] = frame[2, j]
    low, high = np.empty(candidates, np.float32), np.empty(candidates, np.float32)
    sketches.bounds(sketch, slots, narrow[0], narrow[1], narrow[2], low, high)
    gather(kept, held, _best(kept, held, slots, frame, low, high, len(ids)), rows, flags, ids)

"""The items of a slate: the k highest scores, best first, ties to the lower index."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lser.compiled import kernel
from lser.types import Int64


@kernel
def offer(best: NDArray[Any], slate: Int64, place: int, score: float, item: int) -> None:
    """Insert `item` at `place` of a slate ordered by `best` scores, or before it if it is better.

    Items offered in index order stay before later ones of the same score; what stood at `place`
    is dropped.
    """
    while place > 0 and best[place - 1] < score:
        best[place] = best[place - 1]
        slate[place] = slate[place - 1]
        place -= 1
    best[place] = score
    slate[place] = item


@kernel
def top_k(scores: NDArray[Any], k: int) -> NDArray[np.intp]:
    """The columns (n, k) of the `k` highest of each row of `scores` (n, m), k <= m."""
    n, m = scores.shape
    slates = np.empty((n, k), np.intp)
    best = np.empty(k, scores.dtype)
    for row in range(n):
        best[:] = -np.inf
        slates[row] = 0
        for item in range(m):
            if scores[row, item] > best[k - 1]:
                offer(best, slates[row], k - 1, scores[row, item], item)
    return slates

"""An inverted file: items lie in cells around centres, and a search looks into the nearest cells.

Numbers are rounded to one byte and lie column by column within a cell, so that a search reads
little and adds up many items at once; what it found is then ordered by the whole numbers.
"""

from typing import Any

import numpy as np

from lser.compiled import inner, kernel
from lser.online.items import Found
from lser.online.page_kernels import best_first
from lser.top_k import offer
from lser.types import Float32, Int64

_STEP = 4  # columns added up at once; the codes are padded to a multiple
_ROUNDS = 8  # of k-means
_SAMPLE = 64  # items for each cell that the centres are learned from
_AT_ONCE = 1 << 22  # products held while items are put into cells


class Cells:
    """Rows of a catalogue in as many cells as their number's square root; never changes."""

    def __init__(self, vectors: Float32, rows: Int64, *, probes: int) -> None:
        """Index vectors (n, d) of `rows` (n,); a search looks into `probes` cells."""
        order = np.random.default_rng(0).permutation(len(rows))
        vectors, rows = vectors[order], rows[order]
        count = max(1, int(np.sqrt(len(rows))))
        centres = _centres(vectors[: _SAMPLE * count], count)
        own = _nearest(vectors, centres)
        order = np.argsort(own, kind="stable")
        self.rows = np.ascontiguousarray(rows[order])
        self._starts = np.concatenate(([0], np.cumsum(np.bincount(own, minlength=count))))
        self._centres = np.ascontiguousarray(centres.T)
        self._scale = (np.maximum(np.abs(vectors).max(axis=0), 1e-30) / 127).astype(np.float32)
        self._codes = self._coded(vectors[order])
        self._probes = min(probes, count)

    def _coded(self, vectors: Float32) -> "np.ndarray[tuple[int], np.dtype[np.int8]]":
        """Cell after cell, each (d, items) with d padded."""
        padding = -vectors.shape[1] % _STEP
        codes = np.pad(np.rint(vectors / self._scale).astype(np.int8), ((0, 0), (0, padding)))
        parts = np.split(codes, self._starts[1:-1])
        return np.concatenate([part.T.ravel() for part in parts])

    def search(self, direction: Float32, count: int, vectors: Float32) -> Found:
        """About the `count` rows of highest inner product, by the catalogue's `vectors`.

        Fewer where the cells hold fewer.
        """
        found = _search(
            self._centres, self._starts, self._codes, self._scale, self.rows,
            vectors, direction, self._probes, count,
        )  # fmt: skip
        return Found(*found)


def _centres(vectors: Float32, count: int) -> Float32:
    """Unit vectors around which vectors lie (spherical k-means)."""
    centres = _unit(vectors[:count])
    for _ in range(_ROUNDS):
        own = _nearest(vectors, centres)
        order = np.argsort(own, kind="stable")
        full, starts = np.unique(own[order], return_index=True)
        centres[full] = _unit(np.add.reduceat(vectors[order], starts, axis=0))
    return centres


def _nearest(vectors: Float32, centres: Float32) -> Int64:
    """The centre of highest inner product for each vector."""
    step = max(1, _AT_ONCE // len(centres))
    parts = [vectors[at : at + step] for at in range(0, len(vectors), step)]
    return np.concatenate([(part @ centres.T).argmax(axis=1) for part in parts])


def _unit(vectors: Float32) -> Float32:
    length = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    unit: Float32 = vectors / np.maximum(length, np.float32(1e-12))
    return unit


@kernel
def _search(
    centres: Any, starts: Any, codes: Any, scale: Any, rows: Any,
    vectors: Any, direction: Any, probes: int, count: int,
) -> Any:  # fmt: skip
    """The rows of `Cells.search`, best first, and their scores."""
    columns, cells = centres.shape
    width = -(-columns // _STEP) * _STEP
    weight = np.zeros(width, np.float32)
    near = np.zeros(cells, np.float32)
    for column in range(columns):
        weight[column] = direction[column] * scale[column]
        for cell in range(cells):
            near[cell] += direction[column] * centres[column, cell]
    chosen, reach = np.full(probes, -1, np.int64), np.full(probes, -np.inf, np.float32)
    for cell in range(cells):
        if near[cell] > reach[probes - 1]:
            offer(reach, chosen, probes - 1, near[cell], cell)
    found, best = np.full(count, -1, np.int64), np.full(count, -np.inf, np.float32)
    score = np.empty(0, np.float32)
    for cell in chosen[chosen >= 0]:  # the nearest first, so that few of the others are better
        first, last = starts[cell], starts[cell + 1]
        size = last - first
        if size > len(score):
            score = np.empty(2 * size, np.float32)
        _add_up(codes[first * width : last * width].reshape(width, size), weight, score)
        for place in range(size):
            if score[place] > best[count - 1]:
                offer(best, found, count - 1, score[place], rows[first + place])
    return best_first(vectors, found[found >= 0], direction)


@inner
def _add_up(codes: Any, weight: Any, score: Any) -> None:
    """Weighted sums of the columns of a cell."""
    width, size = codes.shape
    score[:size] = 0
    for column in range(0, width, _STEP):
        a, b, c, d = weight[column], weight[column + 1], weight[column + 2], weight[column + 3]
        first, second = codes[column], codes[column + 1]
        third, fourth = codes[column + 2], codes[column + 3]
        for place in range(size):
            score[place] += (a * np.float32(first[place]) + b * np.float32(second[place])) + (
                c * np.float32(third[place]) + d * np.float32(fourth[place])
            )

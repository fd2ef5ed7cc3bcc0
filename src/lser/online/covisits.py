"""Item vectors from co-clicks, for catalogues that come without any.

Items clicked by the same visitor within a few pages count as seen together. Positive pointwise
mutual information of the counts is factored into `dim` dimensions; new vectors are turned onto
the ones before (orthogonal Procrustes), so that what a policy has learned stays meaningful.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson

from lser.online.items import CHUNK, Items, put_body
from lser.online.pages import seed_of
from lser.types import Bool, Float32, Int64

FIRST = 300  # pairs before the first vectors
GROWTH = 1.25  # new vectors when the pairs have grown by this factor
MEMORY = 8  # latest clicks of a visitor that a new one is paired with
VISITORS = 20_000
PAIRS = 2_000_000  # counts kept; beyond, all are halved and the smallest dropped


def start_vectors(ids: Sequence[str], dim: int) -> Float32:
    """Unit vectors that are a function of the ids, for items nobody has clicked yet."""
    drawn = [np.random.default_rng(seed_of("vector", id)).standard_normal(dim) for id in ids]
    vectors = np.array(drawn, np.float32).reshape(len(ids), dim)
    vectors /= np.sqrt((vectors**2).sum(axis=1, keepdims=True))
    return vectors


class Learned(NamedTuple):
    """New vectors of some rows."""

    rows: Int64
    vectors: Float32

    def bodies(self, items: Items) -> Iterator[bytes]:
        """Events that put them into the catalogue."""
        for start in range(0, len(self.rows), CHUNK):
            part = slice(start, start + CHUNK)
            ids = [items.ids[row] for row in self.rows[part]]
            yield put_body(ids, self.vectors[part])


class Covisits:
    """Counts of pairs, and the vectors they give."""

    def __init__(self, dim: int, seed: int) -> None:
        """Learn vectors of `dim` numbers."""
        self.dim, self.seed = dim, seed
        self.refreshes = 0
        self._pairs: dict[tuple[int, int], float] = {}
        self._last: OrderedDict[str, list[int]] = OrderedDict()
        self._seen = 0
        self._next: float = FIRST

    @property
    def due(self) -> bool:
        """Whether enough is new."""
        return self._seen >= self._next

    def see(self, visitor: str, rows: Int64) -> None:
        """Count the clicks of a visitor's page."""
        if not len(rows):
            return
        before = self._last.pop(visitor, [])
        for row in rows.tolist():
            for other in before:
                if other != row:
                    pair = (min(row, other), max(row, other))
                    self._pairs[pair] = self._pairs.get(pair, 0.0) + 1.0
                    self._seen += 1
            before = [*before, row][-MEMORY:]
        self._last[visitor] = before
        if len(self._last) > VISITORS:
            self._last.popitem(last=False)
        if len(self._pairs) > PAIRS:
            self._pairs = {pair: n / 2 for pair, n in self._pairs.items() if n >= 2}

    def vectors(self, before: Float32, live: Bool) -> Learned:
        """New vectors for the live items that were ever clicked together."""
        self.refreshes += 1
        self._next = max(self._seen * GROWTH, self._seen + FIRST)
        pairs = np.array(list(self._pairs), np.int64).reshape(-1, 2)
        count = np.fromiter(self._pairs.values(), np.float64, len(self._pairs))
        left, right = np.concatenate((pairs, pairs[:, ::-1])).T
        count = np.concatenate((count, count))
        size = len(live)
        margin = np.bincount(left, count, size)
        information = np.log(count * count.sum() / (margin[left] * margin[right]))
        weight = np.maximum(information, 0.0)
        factor = _eigenvectors(left, right, weight, size, self.dim, self.seed)
        rows = np.flatnonzero((margin > 0) & live & (np.abs(factor).sum(axis=1) > 0))
        found = factor[rows]
        found /= np.sqrt((found**2).sum(axis=1, keepdims=True))
        u, _, v = np.linalg.svd(found.T @ before[rows].astype(np.float64))
        return Learned(rows, (found @ (u @ v)).astype(np.float32))

    def state(self) -> dict[str, Any]:
        """The counts, as plain values."""
        return {
            "pairs": np.array(list(self._pairs), np.int64).reshape(-1, 2),
            "counts": np.fromiter(self._pairs.values(), np.float64, len(self._pairs)),
            "last": orjson.dumps(list(self._last.items())).decode(),
            "seen": self._seen,
            "next": float(self._next),
            "refreshes": self.refreshes,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state()`."""
        pairs = map(tuple, state["pairs"].tolist())
        self._pairs = dict(zip(pairs, state["counts"].tolist(), strict=True))
        self._last = OrderedDict((visitor, rows) for visitor, rows in orjson.loads(state["last"]))
        self._seen, self._next = state["seen"], state["next"]
        self.refreshes = state["refreshes"]


def _eigenvectors(
    left: Int64, right: Int64, weight: "np.ndarray[Any, Any]", size: int, dim: int, seed: int
) -> "np.ndarray[Any, Any]":
    """Leading eigenvectors of a sparse symmetric matrix, times the root of their eigenvalues."""
    basis = np.random.default_rng(seed).standard_normal((size, min(size, dim + 8)))
    for _ in range(6):  # subspace iteration
        basis, _ = np.linalg.qr(_times(left, right, weight, basis))
    small = basis.T @ _times(left, right, weight, basis)
    values, turned = np.linalg.eigh((small + small.T) / 2)
    top = np.argsort(-values)[:dim]
    out = np.zeros((size, dim))
    out[:, : len(top)] = (basis @ turned[:, top]) * np.sqrt(np.maximum(values[top], 0.0))
    return out


def _times(
    left: Int64, right: Int64, weight: "np.ndarray[Any, Any]", basis: "np.ndarray[Any, Any]"
) -> "np.ndarray[Any, Any]":
    columns = [
        np.bincount(left, weight * basis[right, column], len(basis))
        for column in range(basis.shape[1])
    ]
    return np.stack(columns, axis=1)

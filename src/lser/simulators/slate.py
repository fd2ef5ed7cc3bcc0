"""Score vectors into slates: the k best distinct items, ties to the lower index."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

SELECT_FROM = 64  # candidates; below, a full sort costs no more than selecting first (measured)


def top_k(scores: NDArray[np.floating[Any]], k: int) -> NDArray[np.intp]:
    """Indices (n, k) of each row's `k` highest scores, best first, ties to the lower index."""
    m = scores.shape[1]
    if not 1 <= k <= m:
        raise ValueError(f"k must be in 1..{m}, got {k}")
    if k == 1:
        return np.asarray(scores.argmax(axis=1))[:, None]
    if m < SELECT_FROM or 2 * k > m:
        return np.argsort(-scores, axis=1, kind="stable")[:, :k]
    # the k-th best score splits a row: what is above it is in, of its equals the first ones are
    chosen = np.argpartition(scores, m - k, axis=1)[:, m - k :]
    best = np.take_along_axis(scores, chosen, axis=1)
    least = best.min(axis=1, keepdims=True)
    tied = np.flatnonzero((scores == least).sum(axis=1) > (best == least).sum(axis=1))
    if tied.size:
        above = scores[tied] > least[tied]
        equal = scores[tied] == least[tied]
        room = k - above.sum(axis=1, keepdims=True)
        above |= equal & (np.cumsum(equal, axis=1) <= room)
        chosen[tied] = np.nonzero(above)[1].reshape(-1, k)
    chosen.sort(axis=1)
    order = np.argsort(-np.take_along_axis(scores, chosen, axis=1), axis=1, kind="stable")
    return np.take_along_axis(chosen, order, axis=1)


def score(
    weights: NDArray[np.floating[Any]], items: NDArray[np.floating[Any]]
) -> NDArray[np.floating[Any]]:
    """Inner products (n, m) of weights (n, d) with shared items (m, d) or each user's (n, m, d)."""
    shared = items.ndim == 2
    expected = items.shape[-1:] if shared else (items.shape[0], items.shape[-1])
    if items.ndim not in (2, 3) or weights.ndim != 2 or weights.shape[-len(expected) :] != expected:
        raise ValueError(
            f"weights (n, d) and items (m, d) or (n, m, d) do not fit: "
            f"got {weights.shape} and {items.shape}"
        )
    if shared:
        return np.asarray(weights @ items.T)
    return np.asarray(items @ weights[:, :, None])[:, :, 0]


def slate(
    weights: NDArray[np.floating[Any]], items: NDArray[np.floating[Any]], k: int
) -> NDArray[np.intp]:
    """The slates (n, k) that weight vectors over item features choose."""
    return top_k(score(weights, items), k)

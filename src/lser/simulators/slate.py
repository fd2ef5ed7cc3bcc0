"""Score vectors into slates: the k best distinct items, ties to the lower index."""

import numpy as np
from numpy.typing import NDArray


def top_k(scores: NDArray[np.floating], k: int) -> NDArray[np.intp]:
    """Indices (n, k) of each row's `k` highest scores, best first, ties to the lower index."""
    if not 1 <= k <= scores.shape[1]:
        raise ValueError(f"k must be in 1..{scores.shape[1]}, got {k}")
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]

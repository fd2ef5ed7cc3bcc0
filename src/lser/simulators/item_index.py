"""Which k items score highest for a weight vector: exact for small catalogues, faiss for large."""

from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from lser.types import Float32

Ids = NDArray[np.intp]
Kind = Literal["auto", "exact", "faiss"]

# The inverted file overtakes the scan between this and twice as many: benchmarks/bazaar_index.py.
EXACT_UP_TO = 100_000
_SCORES_AT_ONCE = 1 << 22  # floats held while scanning, so memory does not grow with users x items


class ItemIndex(Protocol):
    """Finds the items with the highest inner products."""

    def search(self, weights: Float32, k: int) -> Ids:
        """Item indices (n, k) for weight vectors (n, d), best first."""
        ...


class ExactIndex:
    """A scan over all items; ties go to the lower index."""

    def __init__(self, features: Float32) -> None:
        from lser.top_k import top_k  # Numba is loaded when a catalogue is searched

        self._top_k = top_k
        self._transposed = np.ascontiguousarray(features.T)  # (d, M)

    def search(self, weights: Float32, k: int) -> Ids:
        """Item indices (n, k) for weight vectors (n, d), best first."""
        items = self._transposed.shape[1]
        rows = max(1, _SCORES_AT_ONCE // items)
        found = np.empty((len(weights), k), np.intp)
        for start in range(0, len(weights), rows):
            block = slice(start, start + rows)
            found[block] = self._top_k(weights[block] @ self._transposed, k)
        return found


class FaissIndex:
    """An inverted file from faiss: looks only at the cells nearest to the weight vector."""

    def __init__(self, features: Float32, *, probes: int = 64) -> None:
        """Look at `probes` cells."""
        try:
            import faiss
        except ImportError as error:
            raise ImportError(
                f"a catalogue of {len(features)} items needs a vector index: "
                "pip install faiss-cpu, or choose index='exact'"
            ) from error
        items, d = features.shape
        cells = max(1, int(np.sqrt(items)))
        near, inner = faiss.IndexFlatIP(d), faiss.METRIC_INNER_PRODUCT
        self._index: Any = faiss.IndexIVFFlat(near, d, cells, inner)
        self._index.cp.niter = 5
        self._index.train(features[: 64 * cells])  # items are in random order
        self._index.add(features)
        self._index.nprobe = min(probes, cells)

    def search(self, weights: Float32, k: int) -> Ids:
        """Item indices (n, k) for weight vectors (n, d), best first."""
        found: Ids = self._index.search(np.ascontiguousarray(weights), k)[1]
        if found[:, -1].min() < 0:  # the probed cells held fewer than k items
            raise RuntimeError(f"the vector index found fewer than {k} items; use index='exact'")
        return found


def build_index(features: Float32, kind: Kind) -> ItemIndex:
    """The index for item `features` (M, d); "auto" scans up to `EXACT_UP_TO` items."""
    if kind == "exact" or (kind == "auto" and len(features) <= EXACT_UP_TO):
        return ExactIndex(features)
    return FaissIndex(features)

"""The items nearest to a direction: a scan for small catalogues, an inverted file for large.

The inverted file is built of the catalogue at one moment. Rows changed since are passed over in
its answers and scanned beside it, until `rebuild` takes them in.
"""

import numpy as np

from lser.online.cells import Cells
from lser.online.items import Found, Items
from lser.types import Bool, Float32, Int64

SCAN_UP_TO = 20_000  # rows; above, the inverted file is faster
PROBES = 16
OVERSAMPLE = 4  # times as many answers where some may be passed over


class Nearest:
    """Searches a catalogue by inner product, exactly or through an inverted file."""

    def __init__(self, items: Items) -> None:
        """Search `items`; a large catalogue is indexed by `rebuild`."""
        self._items = items
        self._cells: Cells | None = None
        self._changed: set[int] = set()  # rows put or removed since they were indexed
        self._meanwhile: set[int] | None = None  # since a rebuild began that is under way

    def note(self, rows: Int64) -> None:
        """Remember that rows were put or removed."""
        with self._items.lock:
            if self._cells is not None:
                self._changed.update(rows.tolist())
            if self._meanwhile is not None:
                self._meanwhile.update(rows.tolist())

    @property
    def due(self) -> bool:
        """Whether so much has changed that a rebuild pays."""
        if len(self._items) <= SCAN_UP_TO:
            return False
        return self._cells is None or len(self._changed) > max(500, len(self._cells.rows) // 50)

    def rebuild(self) -> None:
        """Index the catalogue as it is; searches go on meanwhile."""
        with self._items.lock:
            rows = np.flatnonzero(self._items.live)
            everything = self._items.vectors
            vectors = everything[rows]
            self._meanwhile = set()
        cells = Cells(vectors, rows, probes=PROBES)
        cells.search(vectors[0], 1, everything)  # compiled here: no visitor waits for it
        with self._items.lock:
            self._cells, self._changed, self._meanwhile = cells, self._meanwhile, None

    def search(self, direction: Float32, count: int, mask: Bool | None = None) -> Found:
        """The `count` eligible rows of highest inner product, fewer where there are fewer."""
        items = self._items
        with items.lock:
            if mask is not None:
                mask = _fitted(mask, items.rows) & items.live
            if self._cells is None or items.rows <= SCAN_UP_TO:
                return self._scan(direction, count, mask)
            if mask is not None and np.count_nonzero(mask) <= SCAN_UP_TO:
                return self._scan_rows(direction, count, np.flatnonzero(mask))
            found = self._probe(direction, count, mask)
            return found if found is not None else self._scan(direction, count, mask)

    def top(self, scores: Float32, count: int, mask: Bool | None = None) -> Found:
        """The eligible rows of highest score by row; rows beyond `scores` have its median."""
        items = self._items
        with items.lock:
            allowed = items.live if mask is None else _fitted(mask, items.rows) & items.live
            usual = np.float32(np.median(scores)) if len(scores) else np.float32(0)
            values = np.full(items.rows, usual, np.float32)
            known = min(len(scores), items.rows)
            values[:known] = scores[:known]
            values[~allowed] = -np.inf
            count = min(count, int(np.count_nonzero(allowed)))
            return _best(np.arange(len(values)), values, count)

    def _scan(self, direction: Float32, count: int, mask: Bool | None) -> Found:
        scores = self._items.vectors @ direction
        allowed = self._items.live if mask is None else mask
        scores[~allowed] = -np.inf
        return _best(np.arange(len(scores)), scores, min(count, int(np.count_nonzero(allowed))))

    def _scan_rows(self, direction: Float32, count: int, rows: Int64) -> Found:
        return _best(rows, self._items.vectors[rows] @ direction, min(count, len(rows)))

    def _probe(self, direction: Float32, count: int, mask: Bool | None) -> Found | None:
        """The answer by the inverted file; None where it found too few."""
        assert self._cells is not None
        items = self._items
        plain = mask is None and not self._changed
        wanted = min(count if plain else OVERSAMPLE * count, len(self._cells.rows))
        found = self._cells.search(direction, wanted, items.vectors)
        rows = found.rows
        if plain:
            return found if len(rows) == wanted else None
        keep = items.live[rows] if mask is None else mask[rows]
        if self._changed:
            changed = np.fromiter(self._changed, np.int64, len(self._changed))
            keep &= ~np.isin(rows, changed)
            alive = items.live if mask is None else mask
            rows = np.concatenate((rows[keep], changed[alive[changed]]))
        else:
            rows = rows[keep]
        if len(rows) < count:
            return None
        return self._scan_rows(direction, count, rows)


def _best(rows: Int64, scores: Float32, count: int) -> Found:
    """The `count` highest, ties to the lower row."""
    if count < len(scores):
        part = np.argpartition(scores, len(scores) - count)[len(scores) - count :]
        rows, scores = rows[part], scores[part]
    order = np.lexsort((rows, -scores))[:count]
    return Found(rows[order], scores[order])


def _fitted(mask: Bool, rows: int) -> Bool:
    """A mask made before rows were added: they are not in it."""
    if len(mask) == rows:
        return mask
    longer = np.zeros(rows, np.bool_)
    longer[: len(mask)] = mask
    return longer

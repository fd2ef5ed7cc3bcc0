"""The catalogue: ids, vectors and attributes of the items, changed while it is searched.

Rows are given in the order of arrival and never reused, so that a row in a memory or in a
snapshot keeps its meaning. `changes` of the log are folded in by `apply`.
"""

import binascii
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from lser.types import Bool, Float32, Int64

Value = str | int | float | bool
Filter = Mapping[str, Value | Sequence[Value]]
CHUNK = 1_000  # items in one event


class Found(NamedTuple):
    """The best rows for a direction, best first."""

    rows: Int64
    scores: Float32


class Items:
    """A catalogue of items with vectors of one length."""

    def __init__(self, dim: int) -> None:
        """Start empty, for vectors of `dim` numbers."""
        if dim < 1:
            raise ValueError(f"dim must be at least 1, got {dim}")
        self.dim = dim
        self.ids: list[str] = []
        self.row: dict[str, int] = {}
        self.version = 0  # counts changes
        self.lock = threading.RLock()
        self._vectors = np.zeros((64, dim), np.float32)
        self._live = np.zeros(64, np.bool_)
        self._codes: dict[str, NDArray[np.int32]] = {}  # column -> code of each row, -1 for none
        self._values: dict[str, dict[Value, int]] = {}

    def __len__(self) -> int:
        """Items that can be shown."""
        return len(self.row)

    @property
    def rows(self) -> int:
        """Rows ever given, those of removed items included."""
        return len(self.ids)

    @property
    def vectors(self) -> Float32:
        """The vectors of all rows, (rows, dim); a view."""
        return self._vectors[: len(self.ids)]

    @property
    def live(self) -> Bool:
        """Which rows can be shown; a view."""
        return self._live[: len(self.ids)]

    def put(
        self,
        ids: Sequence[str],
        vectors: Float32,
        attributes: Sequence[Mapping[str, Value] | None] | None = None,
    ) -> Int64:
        """Add items, or change those that are there; returns their rows."""
        with self.lock:
            rows = np.array([self._row_of(id) for id in ids], np.int64)
            self._vectors[rows] = vectors
            self._live[rows] = True
            for row, values in zip(rows, attributes or (), strict=bool(attributes)):
                if values is not None:
                    self._describe(int(row), values)
            self.version += 1
            return rows

    def remove(self, ids: Iterable[str]) -> Int64:
        """Take items away; those that are not there are passed over. Returns the rows freed."""
        with self.lock:
            rows = np.array([self.row.pop(id) for id in dict.fromkeys(ids) if id in self.row], int)
            self._live[rows] = False
            self.version += 1
            return rows

    def apply(self, change: Mapping[str, Any]) -> Int64:
        """Fold in a change as the bodies of events describe it; returns the rows."""
        if "remove" in change:
            return self.remove(change["remove"])
        if "rows" in change:
            return self._restore(change)
        flat = np.frombuffer(binascii.a2b_base64(change["vectors"]), np.float32)
        vectors = flat.reshape(len(change["ids"]), self.dim)
        return self.put(change["ids"], vectors, change.get("attributes"))

    def bodies(self) -> Iterator[bytes]:
        """The catalogue as it stands, row by row, as the bodies of as few events as possible."""
        for start in range(0, max(self.rows, 1), CHUNK):
            part = range(start, min(start + CHUNK, self.rows))
            alive = [row for row in part if self._live[row]]
            yield orjson.dumps(
                {
                    "start": start,
                    "rows": [self.ids[row] if self._live[row] else None for row in part],
                    "vectors": packed(self._vectors[alive]),
                    "attributes": [self.attributes(row) or None for row in alive],
                }
            )

    def _restore(self, change: Mapping[str, Any]) -> Int64:
        """Take in a part of `bodies`; the first one begins anew."""
        with self.lock:
            if change["start"] == 0:
                self.ids, self.row = [], {}
                self._live[:] = False
                self._codes, self._values = {}, {}
            start, ids = len(self.ids), change["rows"]
            self.put([f"\0{start + place}" if id is None else id for place, id in enumerate(ids)],
                     np.zeros((len(ids), self.dim), np.float32))  # fmt: skip
            self.remove([f"\0{start + place}" for place, id in enumerate(ids) if id is None])
            alive = [id for id in ids if id is not None]
            flat = np.frombuffer(binascii.a2b_base64(change["vectors"]), np.float32)
            return self.put(alive, flat.reshape(len(alive), self.dim), change["attributes"])

    def attributes(self, row: int) -> dict[str, Value]:
        """What a row's item is described by."""
        found = {}
        for column, codes in self._codes.items():
            if row < len(codes) and codes[row] >= 0:
                found[column] = list(self._values[column])[codes[row]]
        return found

    def eligible(
        self,
        *,
        among: Sequence[str] | None = None,
        where: Filter | None = None,
        exclude: Sequence[str] = (),
    ) -> Bool | None:
        """Which rows may be shown, or None for all live ones; unknown ids are passed over."""
        if among is None and not where and not exclude:
            return None
        with self.lock:
            mask: Bool
            if among is None:
                mask = self.live.copy()
            else:
                mask = np.zeros(len(self.ids), np.bool_)
                mask[[self.row[id] for id in among if id in self.row]] = True
            for column, wanted in (where or {}).items():
                mask &= self._matches(column, wanted)
            mask[[self.row[id] for id in exclude if id in self.row]] = False
            return mask

    def _matches(self, column: str, wanted: Value | Sequence[Value]) -> Bool:
        values = [wanted] if isinstance(wanted, str | int | float) else list(wanted)
        known = self._values.get(column, {})
        codes = [known[value] for value in values if value in known]
        if not codes:
            return np.zeros(len(self.ids), np.bool_)
        return np.isin(self._codes[column][: len(self.ids)], codes)

    def _row_of(self, id: str) -> int:
        row = self.row.get(id)
        if row is None:
            row = self.row[id] = len(self.ids)
            self.ids.append(id)
            if row >= len(self._live):
                more = len(self._live)
                self._vectors = np.concatenate((self._vectors, np.zeros_like(self._vectors)))
                self._live = np.concatenate((self._live, np.zeros(more, np.bool_)))
                for column, codes in self._codes.items():
                    none = np.full(more, -1, np.int32)
                    self._codes[column] = np.concatenate((codes, none))
        return row

    def _describe(self, row: int, values: Mapping[str, Value]) -> None:
        for column, value in values.items():
            if column not in self._codes:
                self._codes[column] = np.full(len(self._live), -1, np.int32)
                self._values[column] = {}
            known = self._values[column]
            self._codes[column][row] = known.setdefault(value, len(known))


def put_body(
    ids: Sequence[str],
    vectors: Float32,
    attributes: Sequence[Mapping[str, Value] | None] | None = None,
) -> bytes:
    """The body of an event that adds or changes items."""
    body: dict[str, Any] = {"ids": list(ids), "vectors": packed(vectors)}
    if attributes is not None:
        body["attributes"] = list(attributes)
    return orjson.dumps(body)


def remove_body(ids: Sequence[str]) -> bytes:
    """The body of an event that removes items."""
    return orjson.dumps({"remove": list(ids)})


def packed(array: NDArray[Any]) -> str:
    """Numbers as base64 of little-endian float32, a fifth of their length in digits."""
    return binascii.b2a_base64(np.ascontiguousarray(array, "<f4").tobytes(), newline=False).decode()


def unpacked(text: str) -> Float32:
    """The numbers of `packed`, flat; a copy, for Numba is slow to take in read-only arrays."""
    return np.frombuffer(binascii.a2b_base64(text), np.float32).copy()


def check_vectors(vectors: Any, count: int, dim: int | None) -> Float32:
    """Vectors as finite float32 (count, dim); ValueError says what is wrong with them."""
    try:
        array = np.array(vectors, np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError(f"vectors must be numbers, {count} rows of one length: {error}") from None
    if array.ndim != 2 or len(array) != count or array.shape[1] < 1:
        raise ValueError(f"vectors must have shape ({count}, dim), got {array.shape}")
    if dim is not None and array.shape[1] != dim:
        raise ValueError(f"vectors must have {dim} numbers each, got {array.shape[1]}")
    if not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array).all(axis=1))[0, 0])
        raise ValueError(f"vectors[{row}] holds a number that is not finite")
    return array

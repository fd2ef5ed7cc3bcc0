"""Items from what people have: an array, a mapping, a DataFrame, a CSV or a Parquet file."""

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from lser.online.items import Value, check_vectors
from lser.types import Float32

_ID_COLUMNS = ("id", "item", "item_id", "product", "product_id", "sku")
_VECTOR_COLUMN = "vector"
_NUMBERED = re.compile(r"^(?:v|x|e|f|dim|emb|vector|embedding)[_.]?(\d+)$", re.IGNORECASE)


class Table(NamedTuple):
    """Items as columns; `vectors` None where the source has none."""

    ids: list[str]
    vectors: Float32 | None  # (M, d)
    attributes: list[dict[str, Value]] | None


def read_items(source: Any) -> Table:
    """Items of an array (M, d), (ids, vectors), {id: vector}, a DataFrame, a CSV or Parquet path.

    A table needs a column of ids (`id`, `item`, `sku`, ... or the first one). Columns v0, v1, ...
    (also x, e, f, dim, emb, vector, embedding) or one column `vector` of lists are the vector; the
    others are attributes to filter by.
    """
    if isinstance(source, Table):
        return source
    if isinstance(source, str | Path):
        return _from_columns(read_columns(Path(source)))
    if isinstance(source, Mapping):
        ids = [str(id) for id in source]
        return _checked(ids, check_vectors(list(source.values()), len(ids), None), None)
    if hasattr(source, "columns"):  # a DataFrame of pandas or polars
        return _from_columns({str(name): list(source[name]) for name in source.columns})
    if isinstance(source, tuple) and len(source) == 2:
        ids = [str(id) for id in source[0]]
        vectors = None if source[1] is None else check_vectors(source[1], len(ids), None)
        return _checked(ids, vectors, None)
    if isinstance(source, Sequence) and source and isinstance(source[0], str):
        return _checked([str(id) for id in source], None, None)
    array = np.asarray(source)
    if array.ndim != 2:
        raise ValueError(f"items must be a table or an array (M, d), got {type(source).__name__}")
    ids = [str(number) for number in range(len(array))]
    return _checked(ids, check_vectors(array, len(array), None), None)


def read_columns(path: Path) -> dict[str, list[Any]]:
    """The columns of a CSV or Parquet file."""
    if path.suffix.lower() in (".parquet", ".pq"):
        try:
            import pyarrow.parquet
        except ImportError:
            raise ValueError(f"reading {path} takes pyarrow: pip install pyarrow") from None
        if not path.is_file():
            raise ValueError(f"{path} does not exist")
        try:
            columns: dict[str, list[Any]] = pyarrow.parquet.read_table(path).to_pydict()
        except (ValueError, OSError) as error:
            raise ValueError(f"{path} is no Parquet file: {error}") from None
        return columns
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            rows = list(csv.reader(file))
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is no CSV file: {error}") from None
    if not rows or not rows[0]:
        raise ValueError(f"{path} has no header")
    header, body = rows[0], [row for row in rows[1:] if row]
    for line, row in enumerate(body, start=2):
        if len(row) != len(header):
            raise ValueError(f"{path}, row {line}: {len(row)} fields, the header has {len(header)}")
    return {name: [row[place] for row in body] for place, name in enumerate(header)}


def _from_columns(columns: Mapping[str, list[Any]]) -> Table:
    if not columns:
        raise ValueError("items: the table has no columns")
    names = {name.lower(): name for name in columns}
    key = next((names[name] for name in _ID_COLUMNS if name in names), next(iter(columns)))
    ids = [str(value) for value in columns[key]]
    numbered = sorted((int(m[1]), name) for name in columns if (m := _NUMBERED.match(name)))
    rest = [name for name in columns if name != key and not _NUMBERED.match(name)]
    vectors = None
    if numbered:
        stacked = np.array([columns[name] for _, name in numbered], object).T
        vectors = check_vectors(stacked, len(ids), None)
    elif _VECTOR_COLUMN in rest:
        rest.remove(_VECTOR_COLUMN)
        vectors = check_vectors(list(map(_parsed, columns[_VECTOR_COLUMN])), len(ids), None)
    attributes = [
        {name: _plain(columns[name][row]) for name in rest if columns[name][row] is not None}
        for row in range(len(ids))
    ]
    return _checked(ids, vectors, attributes if rest else None)


def _parsed(value: Any) -> Any:
    """A vector out of a text: JSON, or numbers between spaces."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    return orjson.loads(text) if text.startswith("[") else text.split()


def _plain(value: Any) -> Value:
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, str | int | float | bool) else str(value)


def _checked(
    ids: list[str], vectors: Float32 | None, attributes: list[dict[str, Value]] | None
) -> Table:
    seen: set[str] = set()
    for id in ids:
        check_id("item id", id)
        if id in seen:
            raise ValueError(f"item id {id!r} appears twice")
        seen.add(id)
    return Table(ids, vectors, attributes)


def check_id(name: str, id: Any, longest: int = 256) -> str:
    """An id as people may choose it: a short text without control characters."""
    if not isinstance(id, str) or not 1 <= len(id) <= longest or not id.isprintable():
        raise ValueError(f"{name} must be a text of 1 to {longest} printable characters")
    return id

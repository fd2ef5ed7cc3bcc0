"""How recorded numbers are written, NumPy archives and JSON, and the statistics of sessions."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def save_arrays(path: Path, arrays: dict[str, Any]) -> Path:
    """Write `arrays` as a compressed archive."""
    np.savez_compressed(path, allow_pickle=False, **arrays)
    return path


def save_json(path: Path, values: dict[str, Any]) -> Path:
    """Write `values` as JSON of one line."""
    path.write_text(json.dumps(values, separators=(",", ":")) + "\n")
    return path


def mean_and_error(values: Array) -> dict[str, float]:
    """The mean over sessions and its standard error."""
    root = np.sqrt(len(values))
    return {"mean": float(values.mean()), "se": float(values.std(ddof=1) / root)}


def ratio(top: Array, bottom: Array) -> dict[str, float]:
    """The ratio of sums and its standard error over sessions (delta method)."""
    value = top.sum() / bottom.sum()
    spread = (top - value * bottom).std(ddof=1) / np.sqrt(len(top)) / bottom.mean()
    return {"value": float(value), "se": float(spread)}

"""Checks on what the baselines are told: feedback and knobs."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lser.types import Int64

Float64 = NDArray[np.float64]


def check_feedback(ids: ArrayLike, td_errors: ArrayLike) -> tuple[Int64, Float64]:
    """Ids and finite TD errors of equal length, (n,) each, or ValueError."""
    names, errors = np.asarray(ids), np.asarray(td_errors, dtype=np.float64)
    if names.ndim != 1 or (names.size and not np.issubdtype(names.dtype, np.integer)):
        raise ValueError(f"ids must be integers (n,), got shape {names.shape} of {names.dtype}")
    if errors.shape != names.shape:
        raise ValueError(f"td_errors has shape {errors.shape}, expected {names.shape} as ids")
    if not np.isfinite(errors).all():
        raise ValueError(f"td_errors must be finite, got {errors[~np.isfinite(errors)][0]}")
    return names.astype(np.int64), errors


def check_number(name: str, value: float, *, low: float = -math.inf, above: bool = False) -> float:
    """A finite number of at least `low` (more than `low` with `above`), or ValueError."""
    if not math.isfinite(value) or value < low or (above and value == low):
        raise ValueError(f"{name} must be finite and {'>' if above else '>='} {low}, got {value}")
    return float(value)

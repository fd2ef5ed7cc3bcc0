"""The bounds of an action, from two vectors or from a Gymnasium Box."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from lser.types import Float32


class Box(Protocol):
    """The part of a Gymnasium Box that an agent reads."""

    low: Any
    high: Any


def action_bounds(low: ArrayLike | Box, high: ArrayLike | None) -> tuple[Float32, Float32]:
    """The action bounds (A,), from two arrays or from a Box."""
    if high is None:
        box: Any = low
        if not (hasattr(box, "low") and hasattr(box, "high")):
            raise ValueError(
                "agents act in a Box: give its two bounds or a Box with low and high; "
                f"our simulators give one with actions='continuous', got {low!r}"
            )
        low, high = box.low, box.high
    try:
        lower, upper = np.array(low, np.float32), np.array(high, np.float32)
    except (TypeError, ValueError):
        raise ValueError(
            f"action_low and action_high must be vectors of numbers, got {low!r} and {high!r}"
        ) from None
    if lower.ndim != 1 or lower.shape != upper.shape or not len(lower):
        raise ValueError(
            f"action_low and action_high must be two vectors of one length, "
            f"got shapes {lower.shape} and {upper.shape}"
        )
    if not (np.isfinite(lower).all() and np.isfinite(upper).all() and (lower < upper).all()):
        raise ValueError(f"action bounds must be finite and low < high, got {lower} and {upper}")
    return lower, upper

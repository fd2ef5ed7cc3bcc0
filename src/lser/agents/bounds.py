"""The bounds of an action, from two vectors or from a Gymnasium Box."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from lser.checks import plain_floats
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
                f"our simulators give one with actions='continuous', got action_low={low!r} and "
                "action_high=None"
            )
        low, high = box.low, box.high
    bounds: Any = (low, high)
    try:
        lower, upper = (plain_floats(bound).copy() for bound in bounds)
    except (TypeError, ValueError, ArithmeticError):
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


def checked_observation(observation: ArrayLike, wide: int) -> Float32:
    """Observations (N, `wide`) as they are given, or ValueError: a number that is none spreads."""
    array = np.asarray(observation)
    if array.ndim != 2 or array.shape[1] != wide:
        raise ValueError(f"observation must have shape (N, {wide}), got {array.shape}")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"observation must hold numbers, got {array.dtype}")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"observation{list(where)} = {array[where]} is not finite")
    return array

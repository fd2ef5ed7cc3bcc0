"""Checks on arguments, one set for all layers: the right value, or a ValueError that says why."""

import dataclasses
import math
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lser.types import Bool, Float32, Float64, Int64

Choice = TypeVar("Choice")
_FLOAT32, _BOOL = np.dtype(np.float32), np.dtype(np.bool_)


def check_count(name: str, value: object, *, low: int = 1, high: int | None = None) -> int:
    """An integer from `low` to `high`, or ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name} must be an integer, got {value!r}")
    if value < low or (high is not None and value > high):
        span = f">= {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} must be {span}, got {_short(value)}")
    return int(value)


def check_size(name: str, value: object, *, most: int = 2**20) -> int:
    """An integer from 1 to what arrays can be made of, or ValueError."""
    size = check_count(name, value)
    if size > most:
        raise ValueError(f"{name} must be at most {most:,}, got {_short(size)}")
    return size


def check_fraction(name: str, value: object) -> float:
    """A number in [0, 1], or ValueError."""
    number = _as_float(name, value)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must be in [0, 1], got {_short(value)}")
    return number


def check_number(
    name: str,
    value: object,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    above: bool = False,
) -> float:
    """A finite number from `low` (more than `low` with `above`) to `high`, or ValueError."""
    number = _as_float(name, value)
    if not math.isfinite(number) or not low <= number <= high or (above and number == low):
        limit = f" and {'>' if above else '>='} {low:g}" if low > -math.inf else ""
        limit += f" and <= {high:g}" if high < math.inf else ""
        raise ValueError(f"{name} must be finite{limit}, got {_short(value)}")
    return number


def _as_float(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ValueError(f"{name} must be a number, got {value!r}")
    try:
        return float(value)
    except OverflowError:  # a whole number beyond all floats
        return math.inf if value > 0 else -math.inf


def _short(value: object) -> str:
    """A number as it was given, cut where it has hundreds of digits."""
    try:
        text = str(value)
    except ValueError:  # thousands: Python does not write them out
        return "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:20]}... ({len(text)} digits)"


def check_choice(name: str, value: object, choices: tuple[Choice, ...]) -> Choice:
    """One of `choices`, or ValueError."""
    if isinstance(value, str | int | np.integer) and not isinstance(value, bool):
        for choice in choices:
            if value == choice:
                return choice
    raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_fields(params: Any, *, largest: float = 1e9) -> None:
    """Refuse fields of a dataclass that are not of their types; floats up to `largest` in size.

    Only plain types are looked at: bool, int, float, str and Literal, each also with None. NumPy's
    numbers become Python's, so that what was accepted can be saved too.
    """
    for field in dataclasses.fields(params):
        value = plain_number(getattr(params, field.name))
        if value is not getattr(params, field.name):
            object.__setattr__(params, field.name, value)
        kinds = [kind for kind in _union(field.type) if kind is not type(None)]
        if len(kinds) == 1 and not (value is None and type(None) in _union(field.type)):
            _check_field(field.name, kinds[0], value, largest)


def plain_number(value: Any) -> Any:
    """Python's number for one of NumPy's; everything else as it is."""
    if isinstance(value, np.bool_ | np.integer):
        return value.item()
    return float(value) if isinstance(value, np.floating) else value


def _union(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (UnionType, Union) else (kind,)


def _check_field(name: str, kind: Any, value: object, largest: float) -> None:
    if kind is bool:
        if not isinstance(value, bool):
            raise ValueError(f"{name} must be True or False, got {value!r}")
    elif kind is int:
        check_count(name, value, low=-(2**63), high=2**63 - 1)
    elif kind is float:
        check_number(name, value, low=-largest, high=largest)
    elif kind is str:
        if not isinstance(value, str):
            raise ValueError(f"{name} must be text, got {value!r}")
    elif get_origin(kind) is Literal:
        check_choice(name, value, get_args(kind))


def as_array(value: ArrayLike) -> NDArray[Any]:
    """`value` as an array; ValueError where entries are masked, or where it cannot be one."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError("some of its entries are masked")
    try:
        return np.asarray(value)
    except RuntimeError as error:  # a tensor that requires its gradient
        raise ValueError(str(error)) from None


def check_feedback(ids: ArrayLike, td_errors: ArrayLike) -> tuple[Int64, Float64]:
    """Ids and finite TD errors of equal length, (n,) each, or ValueError."""
    names = _named("ids", ids)
    try:
        errors: Float64 = np.array(_named("td_errors", td_errors), dtype=np.float64, order="C")
    except TypeError as error:
        raise ValueError(f"td_errors is not an array of numbers: {error}") from None
    if names.ndim != 1 or (names.size and not np.issubdtype(names.dtype, np.integer)):
        raise ValueError(f"ids must be integers (n,), got shape {names.shape} of {names.dtype}")
    if errors.shape != names.shape:
        raise ValueError(f"td_errors has shape {errors.shape}, expected {names.shape} as ids")
    squares = np.vdot(errors, errors)  # four times faster than looking at each
    if not math.isfinite(squares) and not np.isfinite(errors).all():
        raise ValueError(f"td_errors must be finite, got {errors[~np.isfinite(errors)][0]}")
    return names.astype(np.int64), errors


def _named(name: str, value: ArrayLike) -> NDArray[Any]:
    try:
        return as_array(value)
    except ValueError as error:
        raise ValueError(f"{name} is not an array: {error}") from None


def plain_floats(value: ArrayLike) -> Float32:
    """`value` as a float32 array that a kernel takes as it is; nothing about it is checked."""
    if type(value) is np.ndarray and value.dtype is _FLOAT32 and value.flags.carray:
        return value
    array = as_array(value)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"expected real numbers, got {array.dtype}")
    with np.errstate(over="ignore"):
        return np.array(array, np.float32, order="C")


def plain_flags(value: ArrayLike) -> Bool:
    """`value` as a boolean array that a kernel takes as it is; ValueError if it is not boolean."""
    if type(value) is np.ndarray and value.dtype is _BOOL and value.flags.carray:
        return value
    array = np.array(as_array(value), order="C")
    if array.dtype is not _BOOL:
        raise ValueError(f"expected booleans, got {array.dtype}")
    return array


def as_floats(name: str, value: ArrayLike, shape: tuple[int | None, ...]) -> Float32:
    """`value` as finite float32 of `shape`, where None is any length."""
    try:
        array = plain_floats(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not an array of numbers: {error}") from None
    if array.shape != shape:
        check_shape(name, array, shape)
    if math.isfinite(np.vdot(array, array)):  # four times faster than looking at each
        return array
    finite = np.isfinite(array)
    if not finite.all():
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ValueError(
            f"{name}{list(where)} = {np.asarray(value)[where]} is not finite in float32"
        )
    return array


def as_flags(name: str, value: ArrayLike, count: int | None) -> Bool:
    """`value` as `count` booleans; numbers must be 0 or 1."""
    array = _named(name, value)
    check_shape(name, array, (count,))
    if array.dtype == np.bool_:
        return array
    wrong = (array != 0) & (array != 1)
    if np.any(wrong):
        raise ValueError(f"{name} must hold booleans, got {array[wrong][0]!r}")
    return array.astype(np.bool_)


def check_shape(name: str, array: NDArray[np.generic], shape: tuple[int | None, ...]) -> None:
    """Refuse an array whose shape is not `shape`, where None is any length."""
    if len(array.shape) == len(shape):
        for have, want in zip(array.shape, shape, strict=True):
            if have != want and want is not None:
                break
        else:
            return
    expected = ", ".join("N" if n is None else str(n) for n in shape)
    alone = array.ndim == len(shape) - 1 and array.shape == shape[1:]
    hint = f"; a single one goes in as a block of one, {name}[None]" if alone else ""
    raise ValueError(f"{name} has shape {array.shape}, expected ({expected}){hint}")

"""The protocol every memory keeps, and the checks on arguments that all of them share."""

import math
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lser.files import State as State  # memories find it here
from lser.types import Batch, Bool, Float32, Int64

Scalar = bool | int | float | str | None
Choice = TypeVar("Choice", bound=str)
_FLOAT32, _BOOL = np.dtype(np.float32), np.dtype(np.bool_)


@runtime_checkable
class Replay(Protocol):
    """A replay memory.

    ``query`` and ``update`` are part of the protocol for everybody: locality and attention need
    the first, priorities the second, the rest ignore them, so a training loop treats all alike.
    """

    @property
    def capacity(self) -> int:
        """The most transitions it holds."""
        ...

    def __len__(self) -> int: ...

    def extend(
        self,
        observation: ArrayLike,
        action: ArrayLike,
        reward: ArrayLike,
        next_observation: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike,
        streams: ArrayLike | None = None,
    ) -> Int64:
        """Add a block of N transitions; returns their ids, -1 where one was refused.

        Row i continues the session of user stream i, or of stream ``streams[i]`` where given.
        """
        ...

    def sample(self, batch_size: int, query: ArrayLike | None = None) -> Batch:
        """Draw exactly `batch_size` transitions; `query` is the current observation, (O,)."""
        ...

    def update(self, ids: ArrayLike, td_errors: ArrayLike) -> None:
        """Report signed TD errors of sampled transitions; ids no longer held are skipped."""
        ...

    def stop_exploring(self) -> None:
        """Make every further draw reward-driven where the memory has such a choice."""
        ...

    def stats(self) -> dict[str, float]:
        """Plain numbers about the memory's contents and draws so far; cheap."""
        ...

    def state(self) -> State:
        """Everything needed to continue exactly where it stands, the rng included."""
        ...

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild a memory from `state()`."""
        ...

    def save(self, path: str | Path) -> None:
        """Write one file that `lser.load_replay` reads back."""
        ...


def check_count(name: str, value: object, *, low: int = 1, high: int | None = None) -> int:
    """An integer from `low` to `high`, or ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name} must be an integer, got {value!r}")
    if value < low or (high is not None and value > high):
        span = f">= {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} must be {span}, got {value}")
    return int(value)


def check_fraction(name: str, value: object) -> float:
    """A number in [0, 1], or ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ValueError(f"{name} must be a number, got {value!r}")
    if not 0 <= float(value) <= 1:
        raise ValueError(f"{name} must be in [0, 1], got {value}")
    return float(value)


def check_choice(name: str, value: object, choices: tuple[Choice, ...]) -> Choice:
    """One of `choices`, or ValueError."""
    for choice in choices:
        if value == choice:
            return choice
    raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_sample(batch_size: object, size: int) -> int:
    """The batch size asked of a memory holding `size` transitions, or ValueError."""
    if size == 0:
        raise ValueError(f"cannot sample batch_size={batch_size}: the memory is empty")
    return check_count("batch_size", batch_size)


def plain_floats(value: ArrayLike) -> Float32:
    """`value` as a float32 array that a kernel takes as it is; nothing about it is checked."""
    if type(value) is np.ndarray and value.dtype is _FLOAT32 and value.flags.carray:
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"expected real numbers, got {array.dtype}")
    with np.errstate(over="ignore"):
        return np.array(array, np.float32, order="C")


def all_plain(s: Any, a: Any, r: Any, t: Any, ends: Any, cut: Any) -> bool:
    """Whether a block is float32 and boolean arrays as kernels take them; shapes are not checked.

    One expression, because this is a good part of the cost of storing a single transition.
    """
    try:
        return (
            s.dtype is t.dtype is a.dtype is r.dtype is _FLOAT32
            and ends.dtype is cut.dtype is _BOOL
            and s.flags.carray
            and a.flags.carray
            and r.flags.carray
            and t.flags.carray
            and ends.flags.carray
            and cut.flags.carray
        )
    except AttributeError:
        return False


def plain_flags(value: ArrayLike) -> Bool:
    """`value` as a boolean array that a kernel takes as it is; ValueError if it is not boolean."""
    if type(value) is np.ndarray and value.dtype is _BOOL and value.flags.carray:
        return value
    array = np.array(value, order="C")
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


def as_flags(name: str, value: ArrayLike, count: int) -> Bool:
    """`value` as `count` booleans; numbers must be 0 or 1."""
    array = np.asarray(value)
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
    raise ValueError(f"{name} has shape {array.shape}, expected ({expected})")

"""How observations of any usual space lie in the flat rows of a memory, and come back."""

from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import DTypeLike, NDArray

from lser.types import Float32

Array = NDArray[Any]
Observation = Array | dict[str, Array]  # (n, ...), or one such array per key


class _Part(NamedTuple):
    """One array of an observation and its columns in a row."""

    columns: slice
    shape: tuple[int, ...]
    dtype: DTypeLike
    counts: tuple[int, ...]  # categories of each component, one-hot in the row; () for numbers
    start: int  # the first category


class Columns:
    """How an observation lies in a row: its keys side by side, categories one-hot."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        self.named = isinstance(space, spaces.Dict)
        parts = space.spaces if isinstance(space, spaces.Dict) else {"": space}
        self.parts: dict[str, _Part] = {}
        self.width = 0
        for key, part in parts.items():
            self.parts[key] = _part(key, part, self.width)
            self.width = self.parts[key].columns.stop

    def flatten(self, obs: Observation, n: int) -> Float32:
        """Rows (n, width) that share no memory with `obs`."""
        rows = np.zeros((n, self.width), np.float32)
        for key, part in self.parts.items():
            values = np.asarray(obs[key] if isinstance(obs, dict) else obs).reshape(n, -1)
            if part.counts:
                first = part.columns.start + np.cumsum([0, *part.counts[:-1]])
                rows[np.arange(n)[:, None], first + values.astype(np.int64) - part.start] = 1
            else:
                rows[:, part.columns] = values
        return rows

    def restore(self, rows: Float32) -> Observation:
        """The observations that `flatten` made into `rows`."""
        found: dict[str, Array] = {}
        for key, part in self.parts.items():
            values: Array = rows[:, part.columns]
            if part.counts:
                hot = np.split(values, np.cumsum(part.counts)[:-1], axis=1)
                values = np.stack([block.argmax(axis=1) for block in hot], axis=1) + part.start
            shaped = values.reshape(len(rows), *part.shape)
            found[key] = shaped.astype(part.dtype, copy=False)
        return found if self.named else found[""]


def _part(key: str, space: spaces.Space[Any], at: int) -> _Part:
    match space:
        case spaces.Discrete():
            count, start = int(space.n), int(space.start)
            return _Part(slice(at, at + count), (1,), space.dtype, (count,), start)
        case spaces.MultiDiscrete() if space.nvec.ndim == 1 and not np.any(space.start):
            counts = tuple(int(n) for n in space.nvec)
            return _Part(slice(at, at + sum(counts)), space.shape, space.dtype, counts, 0)
        case spaces.Box() | spaces.MultiBinary():
            assert space.shape is not None
            width = int(np.prod(space.shape))
            return _Part(slice(at, at + width), space.shape, space.dtype, (), 0)
    where = f"observation_space[{key!r}]" if key else "observation_space"
    raise ValueError(
        f"{where} must be a Box, Discrete, MultiDiscrete or MultiBinary, got {space}; wrap the "
        "environment in gymnasium.wrappers.FlattenObservation"
    )

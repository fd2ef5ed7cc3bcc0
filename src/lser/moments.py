"""Running mean and deviation of each feature, one transition at a time (Welford's rule).

One at a time, so that a block of N leaves the same numbers as N single rows.
"""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from lser.checks import check_shape
from lser.compiled import kernel
from lser.types import Float32, Float64, Int64


class Moments:
    """The statistics of all rows seen, of `dim` features each."""

    def __init__(self, dim: int) -> None:
        self._count = np.zeros(1, dtype=np.int64)
        self._mean = np.zeros(dim)
        self._squares = np.zeros(dim)  # sums of squared differences from the mean

    def add(self, rows: Float32) -> None:
        """Take in rows (N, dim); columns past `dim` are left alone."""
        add_rows(self._count, self._mean, self._squares, rows)

    def after(self, rows: Float32) -> Self:
        """What `add` would make of these statistics, which stay as they are."""
        moments = type(self).__new__(type(self))
        moments._count, moments._mean = self._count.copy(), self._mean.copy()
        moments._squares = self._squares.copy()
        moments.add(rows)
        return moments

    @property
    def mean(self) -> Float64:
        """The mean of each feature, (dim,)."""
        return self._mean

    @property
    def scale(self) -> Float64:
        """One over the deviation of each feature, (dim,); 0 where a feature never varied."""
        varies = self._squares > 0
        variance = np.where(varies, self._squares, 1.0) / max(int(self._count[0]), 1)
        return np.where(varies, 1.0 / np.sqrt(variance), 0.0)

    @property
    def parts(self) -> tuple[Int64, Float64, Float64]:
        """For kernels: how many rows (1,), their mean and sums of squared differences, (dim,)."""
        return self._count, self._mean, self._squares

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The statistics as named arrays, for a memory's `state()`."""
        return {
            "moments_count": self._count.copy(),
            "moments_mean": self._mean.copy(),
            "moments_squares": self._squares.copy(),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[np.generic]], dim: int) -> Self:
        """Rebuild from `arrays()`; entries of other names are left alone."""
        moments = cls(dim)
        check_shape("moments_count", arrays["moments_count"], (1,))
        for name in ("moments_mean", "moments_squares"):
            check_shape(name, arrays[name], (dim,))
            if not np.isfinite(arrays[name].astype(np.float64)).all():
                raise ValueError(f"{name} holds numbers that are not finite")
        if (
            int(arrays["moments_count"][0]) < 0
            or (arrays["moments_squares"].astype(np.float64) < 0).any()
        ):
            raise ValueError("the saved moments are not those of any rows")
        moments._count = arrays["moments_count"].astype(np.int64)
        moments._mean = arrays["moments_mean"].astype(np.float64)
        moments._squares = arrays["moments_squares"].astype(np.float64)
        return moments


@kernel
def add_rows(count: Int64, mean: Float64, squares: Float64, rows: Float32) -> None:
    """Take rows (N, O and more) into `Moments.parts`."""
    for i in range(len(rows)):
        count[0] += 1
        for j in range(len(mean)):
            difference = rows[i, j] - mean[j]
            mean[j] += difference / count[0]
            squares[j] += difference * (rows[i, j] - mean[j])

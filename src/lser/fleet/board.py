"""The arrays that a fleet's processes share: what seats see, choose, replay and are told."""

import math
from contextlib import suppress
from multiprocessing.shared_memory import SharedMemory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lser.types import Float32, Float64, Int64

_PAGE = 4096  # bytes: buffers that a device copies from must not share one


class Shape(NamedTuple):
    """The sizes of a board."""

    seats: int
    users: int
    observations: int
    actions: int
    rows: int  # of a batch
    normals: int  # arrays of draws that acting needs
    floats: int  # of all batches of one update
    turns: int  # updates of one vector step, at most

    def arrays(self) -> dict[str, tuple[tuple[int, ...], Any]]:
        """Shape and type of every array."""
        seats, users = self.seats, self.users
        return {
            "observations": ((seats, users, self.observations), np.float32),
            "normals": ((self.normals, seats, self.actions, users), np.float32),
            "actions": ((seats, users, self.actions), np.float32),
            "errors": ((seats, self.rows), np.float32),
            "values": ((seats, 8), np.float64),
            "due": ((seats,), np.int64),
            "running": ((seats,), np.int64),
            "steps": ((seats,), np.int64),
            "sessions": ((seats,), np.int64),
            "batches": ((2 * self.turns, _whole_pages(4 * self.floats) // 4), np.float32),
        }

    @property
    def bytes(self) -> int:
        """What all of them need."""
        return sum(_whole_pages(_bytes(*array)) for array in self.arrays().values())


def _bytes(shape: tuple[int, ...], kind: Any) -> int:
    return math.prod(shape) * int(np.dtype(kind).itemsize)


def _whole_pages(size: int) -> int:
    return max(1, -(-size // _PAGE)) * _PAGE


class Board:
    """Arrays over one block of memory, in this process alone or shared under a name."""

    observations: Float32  # (G, N, O) what seats act on next
    normals: Float32  # (k, G, A, N) draws of stochastic policies
    actions: Float32  # (G, N, A) before noise
    errors: Float32  # (G, b) TD errors of the last update
    values: Float64  # (G, 8) the numbers of `Values`, NaN where it was not time to look
    due: Int64  # (G,) updates of this vector step
    running: Int64  # (G,) 0 or 1
    steps: Int64  # (G,)
    sessions: Int64  # (G,)
    batches: Float32  # (2 K, floats) for the updates of two vector steps

    def __init__(self, shape: Shape, *, shared: bool = False, name: str | None = None) -> None:
        """Make a board, or with `name` find that which another process shares."""
        self.shape = shape
        self._memory: SharedMemory | None = None
        if shared or name is not None:
            self._memory = SharedMemory(name, create=name is None, size=shape.bytes)
        block: Any = self._memory.buf if self._memory else _page_aligned(shape.bytes)
        self._owner = name is None
        start = 0
        for field, (sizes, kind) in shape.arrays().items():
            array: NDArray[Any] = np.ndarray(sizes, kind, block, start)
            setattr(self, field, array)
            start += _whole_pages(_bytes(sizes, kind))

    @property
    def name(self) -> str | None:
        """How another process finds it."""
        return self._memory.name if self._memory else None

    def buffer(self, step: int, turn: int) -> int:
        """Where the batches of an update lie: two vector steps take turns."""
        return step % 2 * self.shape.turns + turn

    def close(self) -> None:
        """Let go of the memory, and give it back if it was made here."""
        for field in self.shape.arrays():
            delattr(self, field)
        if self._memory is not None:
            with suppress(BufferError):  # a view lives on; the memory goes with the process
                self._memory.close()
            if self._owner:
                self._memory.unlink()


def _page_aligned(size: int) -> Any:
    block = np.zeros(size + _PAGE, np.uint8)
    start = -block.ctypes.data % _PAGE
    return block[start : start + size].data

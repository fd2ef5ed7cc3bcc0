"""The protocol every memory keeps."""

from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from numpy.typing import ArrayLike

from lser.files import State
from lser.types import Batch, Int64


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

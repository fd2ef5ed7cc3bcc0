"""The plain memory: a ring of the newest transitions, drawn uniformly with replacement."""

from numpy.typing import ArrayLike

from lser.replay.memories.params import UniformParams
from lser.replay.memory import Memory
from lser.types import Float32, Int64


class UniformReplay(Memory):
    """Keeps the newest `capacity` transitions and draws each with the same probability."""

    KIND = "uniform"
    Params = UniformParams

    def draw(self, size: int, query: ArrayLike | None) -> tuple[Int64, Float32 | None]:
        """Independent uniform draws; `query` is not used."""
        return self.rng.integers(len(self), size=size), None

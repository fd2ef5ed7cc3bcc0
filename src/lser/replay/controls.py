"""Encoders that know nothing, for controls: what is left of LSER without locality."""

from typing import Self

import numpy as np

from lser.replay.base import State, check_count
from lser.replay.compiled import UInt32
from lser.replay.persistence import rng_from_state, rng_state
from lser.types import Float32


class ConstantCode:
    """One bucket for everything: reward order without locality (the control `reward-top`)."""

    KIND = "constant"
    frozen = True
    blind = False

    def encode_rows(self, rows: Float32) -> UInt32:
        """Zeros, (N,)."""
        return np.zeros(len(rows), np.uint32)

    def observe(self, observations: Float32) -> bool:
        """Nothing to learn."""
        return False

    def state(self) -> State:
        """Nothing but its kind."""
        return State({"kind": self.KIND}, {})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild an encoder from `state()`."""
        return cls()


class RandomCode:
    """Codes drawn at random: buckets without locality (the control `random-code`).

    Being blind, it leaves a query to a bucket drawn uniformly from the occupied ones.
    """

    KIND = "random"
    frozen = True
    blind = True

    def __init__(self, *, bits: int = 10, seed: int = 0) -> None:
        self.bits = check_count("bits", bits, high=32)
        self._rng = np.random.default_rng((check_count("seed", seed, low=0), 2))

    def encode_rows(self, rows: Float32) -> UInt32:
        """Fresh random codes, (N,), whatever the observations."""
        return self._rng.integers(2**self.bits, size=len(rows), dtype=np.uint32)

    def observe(self, observations: Float32) -> bool:
        """Nothing to learn."""
        return False

    def state(self) -> State:
        """The generator."""
        return State({"kind": self.KIND, "bits": self.bits, "rng": rng_state(self._rng)}, {})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild an encoder from `state()`."""
        encoder = cls(bits=check_count("bits", state.config["bits"]))
        encoder._rng = rng_from_state(state.config["rng"])
        return encoder

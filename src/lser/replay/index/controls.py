"""Encoders that know nothing of the observation: what is left of LSER without locality."""

from collections.abc import Callable
from functools import partial
from typing import Self

import numpy as np

from lser.checks import check_count
from lser.compiled import UInt32
from lser.files import State, rng_from_state, rng_state
from lser.replay.index.encoders import SimHash
from lser.types import Float32

RECENT = 4_096  # codes to draw from


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

    def rewind(self) -> Callable[[], None]:
        """What takes the generator back to where it stands."""
        return partial(setattr, self._rng.bit_generator, "state", self._rng.bit_generator.state)

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


class ShuffledCode:
    """The SimHash of a random one of the newest 4,096 observations (the control `shuffled-code`).

    Buckets then have the sizes that they have with SimHash, and a query meets them as often, but
    what is in them has nothing to do with the query: reward order in part, and no locality.
    """

    KIND = "shuffled"
    blind = True  # codes say nothing about the observation

    def __init__(self, hashed: SimHash, *, seed: int = 0) -> None:
        self.hashed, self.frozen = hashed, hashed.frozen
        self._rng = np.random.default_rng((check_count("seed", seed, low=0), 4))
        self._recent: UInt32 = np.empty(0, np.uint32)

    def encode_rows(self, rows: Float32) -> UInt32:
        """Codes (N,), each of an observation drawn at random from its own and those before."""
        known = np.concatenate((self._recent, self.hashed.encode_rows(rows)))
        ends = np.arange(len(self._recent), len(known)) + 1
        starts = np.maximum(ends - RECENT, 0)
        at = starts + (self._rng.random(len(rows)) * (ends - starts)).astype(np.int64)
        self._recent = known[-RECENT:]
        drawn: UInt32 = known[at]
        return drawn

    def rewind(self) -> Callable[[], None]:
        """What takes the generator and the newest codes back to where they stand."""
        generator, recent = self._rng.bit_generator.state, self._recent

        def back() -> None:
            self._rng.bit_generator.state = generator
            self._recent = recent

        return back

    def observe(self, observations: Float32) -> bool:
        """Let the hash learn what to centre on; then all codes are drawn anew."""
        changed = self.hashed.observe(observations)
        self.frozen = self.hashed.frozen
        if changed:
            self._recent = np.empty(0, np.uint32)
        return changed

    def state(self) -> State:
        """The hash, the newest codes and the generator."""
        hashed = self.hashed.state()
        config: dict[str, object] = {
            "kind": self.KIND,
            "hashed": hashed.config,
            "rng": rng_state(self._rng),
        }
        return State(config, {**hashed.arrays, "encoder_recent": self._recent})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild an encoder from `state()`."""
        encoder = cls(SimHash.from_state(State(state.part("hashed").config, state.arrays)))
        encoder._rng = rng_from_state(state.config["rng"])
        encoder._recent = np.array(state.arrays["encoder_recent"], np.uint32)
        return encoder

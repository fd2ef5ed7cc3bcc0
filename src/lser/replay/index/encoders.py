"""Encoders: observation -> code, the 32-bit name of its bucket."""

from typing import Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from lser.checks import (
    check_choice,
    check_count,
    check_number,
    check_shape,
    check_size,
    plain_floats,
)
from lser.compiled import UInt32
from lser.files import State
from lser.replay.index.hashing import TOGETHER, project_all, sign_codes
from lser.replay.memories.params import FEATURES, Features
from lser.types import Float32, Float64, Int64


class Encoder(Protocol):
    """Gives every observation a code."""

    KIND: str

    @property
    def frozen(self) -> bool:
        """Whether codes of stored observations will not change: there is nothing to observe."""
        ...

    blind: bool  # codes say nothing about the observation: a query takes any occupied bucket

    def encode_rows(self, rows: Float32) -> UInt32:
        """The codes (N,) of packed rows, whose first O columns are the observation."""
        ...

    def observe(self, observations: Float32) -> bool:
        """Learn from stored observations; True when that changed the codes of earlier ones."""
        ...

    def state(self) -> State:
        """Everything needed to give the same codes again."""
        ...


class Learned(NamedTuple):
    """The statistics of a `SimHash`: what it hashes with, and what it has seen."""

    shift: Float64  # (O,)
    scale: Float64  # (O,)
    mean: Float64  # (O,)
    spread: Float64  # (O,) sum of squared deviations
    seen: int
    frozen: bool


class SimHash:
    """Signs of projections on Gaussian hyperplanes through the origin (Charikar 2002).

    ``features="centred"`` or ``"standardised"`` moves the origin to the mean (and divides by the
    standard deviation) of the first `warmup` stored observations. Until then the features are raw;
    at that point the statistics freeze for good and the memory files what it holds anew.
    """

    KIND = "simhash"
    blind = False

    def __init__(
        self,
        observation_dim: int,
        *,
        bits: int = 10,
        seed: int = 0,
        features: Features = "raw",
        warmup: int = 10_000,
    ) -> None:
        self.observation_dim = check_size("observation_dim", observation_dim)
        self.bits = check_count("bits", bits, high=32)
        self.features = check_choice("features", features, FEATURES)
        self.warmup = check_count("warmup", warmup)
        # apart from the stream of default_rng(seed), from which a memory draws its batches
        rng = np.random.default_rng((check_count("seed", seed, low=0), 1))
        self._planes = _padded(rng.standard_normal((self.bits, self.observation_dim)))
        nothing = np.zeros(self.observation_dim)
        one = np.ones(self.observation_dim)
        self._learned = Learned(nothing, one, nothing, nothing, 0, self.features == "raw")

    @property
    def frozen(self) -> bool:
        """Whether the statistics are settled, and with them the codes."""
        return self._learned.frozen

    @property
    def hyperplanes(self) -> Float64:
        """The normals of the hyperplanes, (bits, O)."""
        return self._planes[: self.bits].copy()

    def encode(self, observations: ArrayLike) -> UInt32:
        """The codes (N,) of observations (N, O)."""
        return self.encode_rows(_matrix(observations, self.observation_dim))

    def encode_rows(self, rows: Float32) -> UInt32:
        """The codes (N,) of packed rows, whose first O columns are the observation."""
        codes = np.empty(len(rows), np.uint32)
        sign_codes(rows, self._learned.shift, self._learned.scale, self._planes, codes)
        return codes

    def observe(self, observations: ArrayLike) -> bool:
        """Add to the statistics until the warm-up is over; True at that moment."""
        if self.frozen:
            return False
        self.take(self.learning(observations))
        return self.frozen

    def learning(self, observations: ArrayLike) -> "Learned":
        """What `observe` would make of the statistics, which stay as they are."""
        x = _matrix(observations, self.observation_dim)[:, : self.observation_dim].astype(
            np.float64
        )
        was = self._learned
        if len(x) == 0:
            return was
        total = was.seen + len(x)
        mean = x.mean(axis=0)
        gap = mean - was.mean
        spread = was.spread + ((x - mean) ** 2).sum(axis=0) + gap**2 * (was.seen * len(x) / total)
        centre = was.mean + gap * (len(x) / total)
        shift, scale, frozen = was.shift, was.scale, total >= self.warmup
        if frozen:
            shift = centre
            if self.features == "standardised":
                deviation = np.sqrt(spread / total)
                scale = 1 / np.where(deviation > 0, deviation, 1)
        return Learned(shift, scale, centre, spread, total, frozen)

    def take(self, learned: "Learned") -> None:
        """Go on with these statistics."""
        self._learned = learned

    @property
    def projection(self) -> tuple[Float64, Float64, Float64]:
        """What kernels project with: planes (K, O), shift and scale (O,)."""
        return self._planes, self._learned.shift, self._learned.scale

    def state(self) -> State:
        """The hyperplanes and the statistics."""
        config: dict[str, object] = {
            "kind": self.KIND,
            "observation_dim": self.observation_dim,
            "bits": self.bits,
            "features": self.features,
            "warmup": self.warmup,
            "seen": self._learned.seen,
            "frozen": self.frozen,
        }
        statistics = np.stack(self._learned[:4])
        planes = self._planes[: self.bits]
        return State(config, {"encoder_planes": planes, "encoder_statistics": statistics})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild an encoder from `state()`."""
        c = state.config
        encoder = cls(
            check_count("observation_dim", c["observation_dim"]),
            bits=check_count("bits", c["bits"]),
            features=c["features"],  # type: ignore[arg-type]  # the constructor checks it
            warmup=check_count("warmup", c["warmup"]),
        )
        encoder._planes = _saved_planes(state, encoder.bits, encoder.observation_dim)
        statistics = _same(state, "encoder_statistics", (4, encoder.observation_dim))
        if not np.isfinite(statistics).all() or not np.isfinite(encoder._planes).all():
            raise ValueError("the saved encoder holds numbers that are not finite")
        shift, scale, mean, spread = (row.copy() for row in statistics)
        seen, frozen = check_count("seen", c["seen"], low=0), bool(c["frozen"])
        encoder._learned = Learned(shift, scale, mean, spread, seen, frozen)
        return encoder


class E2LSH:
    """Cells of a randomly shifted grid on random lines: floor((a.s + b) / width) per line.

    Datar et al. (2004); `norm` 2 draws the lines' directions from Gaussians, 1 from Cauchys. A
    code holds 32 // functions bits of each cell number in Gray code, so that neighbouring cells
    differ in one bit and the Jaccard fallback keeps its meaning; cells 2**(32 // functions) apart
    on a line share their bits.
    """

    KIND = "e2lsh"
    frozen = True
    blind = False

    def __init__(
        self,
        observation_dim: int,
        *,
        functions: int = 4,
        width: float = 4.0,
        norm: Literal[1, 2] = 2,
        seed: int = 0,
    ) -> None:
        self.observation_dim = check_size("observation_dim", observation_dim)
        self.functions = check_count("functions", functions, high=32)
        self.width = check_number("width", width, low=1e-30)
        self.norm = check_count("norm", norm, high=2)
        rng = np.random.default_rng((check_count("seed", seed, low=0), 1))
        draw = rng.standard_normal if self.norm == 2 else rng.standard_cauchy
        self._planes = _padded(draw((self.functions, self.observation_dim)))
        self._offsets: Float64 = rng.uniform(0, self.width, self.functions)

    def cells(self, observations: ArrayLike) -> Int64:
        """The cell numbers, (N, functions)."""
        return self._cells(_matrix(observations, self.observation_dim))

    def _cells(self, rows: Float32) -> Int64:
        sums = np.empty((len(rows), len(self._planes)))
        still, one = np.zeros(self.observation_dim), np.ones(self.observation_dim)
        project_all(rows, still, one, self._planes, sums)
        cells = np.floor((sums[:, : self.functions] + self._offsets) / self.width)
        return cells.clip(-(2.0**62), 2.0**62).astype(np.int64)

    def encode(self, observations: ArrayLike) -> UInt32:
        """The codes (N,) of observations (N, O)."""
        return self.encode_rows(_matrix(observations, self.observation_dim))

    def encode_rows(self, rows: Float32) -> UInt32:
        """The codes (N,) of packed rows, whose first O columns are the observation."""
        share = 32 // self.functions
        cells = self._cells(rows)
        gray = (cells ^ (cells >> 1)) & ((1 << share) - 1)
        shifts = share * np.arange(self.functions)
        codes: UInt32 = np.bitwise_or.reduce(gray << shifts, axis=1).astype(np.uint32)
        return codes

    def observe(self, observations: Float32) -> bool:
        """Nothing to learn."""
        return False

    def state(self) -> State:
        """The lines and their shifts."""
        config: dict[str, object] = {
            "kind": self.KIND,
            "observation_dim": self.observation_dim,
            "functions": self.functions,
            "width": self.width,
            "norm": self.norm,
        }
        planes = self._planes[: self.functions]
        return State(config, {"encoder_planes": planes, "encoder_offsets": self._offsets})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild an encoder from `state()`."""
        c = state.config
        encoder = cls(
            check_count("observation_dim", c["observation_dim"]),
            functions=check_count("functions", c["functions"]),
            width=c["width"],  # type: ignore[arg-type]  # the constructor checks it
            norm=c["norm"],  # type: ignore[arg-type]  # as above
        )
        encoder._planes = _saved_planes(state, encoder.functions, encoder.observation_dim)
        encoder._offsets = _same(state, "encoder_offsets", encoder._offsets.shape)
        return encoder


def _padded(planes: Float64) -> Float64:
    """Planes (K, O) with zeros up to the next multiple of five."""
    padded = np.zeros((-(-len(planes) // TOGETHER) * TOGETHER, planes.shape[1]))
    padded[: len(planes)] = planes
    return padded


def _saved_planes(state: State, count: int, dim: int) -> Float64:
    """The planes of a state, padded; older files have some of the zeros too."""
    planes = np.asarray(state.arrays["encoder_planes"], np.float64)
    check_shape("encoder_planes", planes[:count], (count, dim))
    return _padded(planes[:count])


def _same(state: State, name: str, shape: tuple[int, ...]) -> Float64:
    array = np.asarray(state.arrays[name], np.float64)
    check_shape(name, array, shape)
    return array


def _matrix(observations: ArrayLike, width: int) -> Float32:
    x = plain_floats(observations)
    check_shape("observations", x, (None, width))
    return x

"""Estimates with intervals over seeds: what a handful of runs can and cannot say.

The seed is the unit of replication. The interquartile mean, the stratified bootstrap, the
probability of improvement follow Agarwal et al. (2021), "Deep
Reinforcement Learning at the Edge of the Statistical Precipice". Percentile bootstrap intervals
are too narrow with few seeds, so the t-interval stands beside them. SciPy is imported where it is
used: it takes longer than the rest of the package.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float64 = NDArray[np.float64]
Statistic = Callable[[list[Float64]], Float64]

REPETITIONS = 2000
CONFIDENCE = 0.95


class Interval(NamedTuple):
    """An estimate with the ends of its interval; NaN ends where the data cannot give any."""

    estimate: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether zero lies outside the interval (never when the ends are unknown)."""
        return bool(self.low > 0 or self.high < 0)


def iqm(scores: ArrayLike, axis: int = -1) -> Float64:
    """The interquartile mean: the mean without the lowest and the highest quarter of ``scores``."""
    from scipy.stats import trim_mean

    values = np.asarray(scores, dtype=np.float64)
    if values.shape[axis] == 0:
        raise ValueError("scores is empty")
    return np.asarray(trim_mean(values, 0.25, axis=axis))


def pooled_iqm(strata: list[Float64]) -> Float64:
    """The interquartile mean over the last axis of all strata together."""
    return iqm(np.concatenate(strata, axis=-1))


def bootstrap(
    strata: Sequence[ArrayLike],
    rng: np.random.Generator,
    *,
    statistic: Statistic = pooled_iqm,
    repetitions: int = REPETITIONS,
    confidence: float = CONFIDENCE,
) -> Interval:
    """The percentile interval of ``statistic`` when seeds are redrawn within each stratum.

    Args:
        strata: the scores of each stratum (a simulator), one number per seed.
        rng: draws the seeds.
        statistic: maps arrays (..., seeds), one per stratum, to values (...).
        repetitions: how many redrawn samples.
        confidence: the share of the samples the interval covers.
    """
    arrays = [np.asarray(scores, dtype=np.float64) for scores in strata]
    if not arrays or any(scores.ndim != 1 or scores.size == 0 for scores in arrays):
        raise ValueError("strata must be non-empty arrays of one score per seed")
    estimate = float(statistic(arrays))
    if all(scores.size == 1 for scores in arrays):
        return Interval(estimate, float("nan"), float("nan"))
    drawn = [
        scores[rng.integers(scores.size, size=(repetitions, scores.size))] for scores in arrays
    ]
    return Interval(estimate, *_percentiles(statistic(drawn), confidence))


def bootstrap_curves(
    curves: ArrayLike,
    rng: np.random.Generator,
    *,
    repetitions: int = REPETITIONS,
    confidence: float = CONFIDENCE,
) -> tuple[Float64, Float64, Float64]:
    """The interquartile mean of curves (seeds, points) and the ends of its pointwise intervals."""
    values = np.asarray(curves, dtype=np.float64)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"curves must have shape (seeds, points), not {values.shape}")
    centre = iqm(values, axis=0)
    seeds = len(values)
    if seeds == 1:
        return centre, np.full_like(centre, np.nan), np.full_like(centre, np.nan)
    # Whole runs are redrawn: the points of one run stay together.
    drawn = iqm(values[rng.integers(seeds, size=(repetitions, seeds))], axis=1)
    tail = (1 - confidence) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    return centre, low, high


def mean_t(scores: ArrayLike, *, confidence: float = CONFIDENCE) -> Interval:
    """The mean with Student's t-interval."""
    from scipy.stats import t

    values = np.asarray(scores, dtype=np.float64)
    estimate = float(values.mean())
    if values.size < 2:
        return Interval(estimate, float("nan"), float("nan"))
    quantile = float(t.ppf((1 + confidence) / 2, values.size - 1))
    half = quantile * float(values.std(ddof=1)) / np.sqrt(values.size)
    return Interval(estimate, float(estimate - half), float(estimate + half))


def paired_p(differences: ArrayLike) -> float:
    """The two-sided p-value of Student's t-test that the mean difference is zero."""
    from scipy.stats import t

    values = np.asarray(differences, dtype=np.float64)
    if values.size < 2:
        return float("nan")
    error = float(values.std(ddof=1)) / np.sqrt(values.size)
    if error == 0.0:
        return 1.0 if values.mean() == 0 else 0.0
    return float(2 * t.sf(abs(float(values.mean())) / error, values.size - 1))


def welch(scores: ArrayLike, reference: ArrayLike, *, confidence: float = CONFIDENCE) -> Interval:
    """The difference of two means with Welch's interval, which does not pair the runs."""
    from scipy.stats import t

    first, second = np.asarray(scores, np.float64), np.asarray(reference, np.float64)
    estimate = float(first.mean() - second.mean())
    if min(first.size, second.size) < 2:
        return Interval(estimate, float("nan"), float("nan"))
    a, b = (float(values.var(ddof=1)) / values.size for values in (first, second))
    if a + b == 0.0:
        return Interval(estimate, estimate, estimate)
    freedom = (a + b) ** 2 / (a**2 / (first.size - 1) + b**2 / (second.size - 1))
    half = float(t.ppf((1 + confidence) / 2, freedom)) * np.sqrt(a + b)
    return Interval(estimate, float(estimate - half), float(estimate + half))


def exact_p(counts: Sequence[Sequence[int]]) -> float:
    """Fisher's exact two-sided p-value that two groups have one share; [[yes, no], [yes, no]]."""
    from scipy.stats import fisher_exact

    return float(fisher_exact(counts)[1])


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values for a family of tests; NaN stays NaN and is no test."""
    known = sorted((p, position) for position, p in enumerate(p_values) if p == p)
    adjusted, highest = [float("nan")] * len(p_values), 0.0
    for rank, (p, position) in enumerate(known):
        highest = max(highest, min(1.0, (len(known) - rank) * p))
        adjusted[position] = highest
    return adjusted


def improvement(scores: list[Float64]) -> Float64:
    """The chance that a run of the first beats one of the second, ties half: U / (n m).

    Takes two arrays (..., n) and (..., m) and keeps the leading axes.
    """
    first, second = scores
    above = first[..., :, None] > second[..., None, :]
    equal = first[..., :, None] == second[..., None, :]
    return np.asarray((above + 0.5 * equal).mean(axis=(-2, -1)))


def probability_of_improvement(
    pairs: Sequence[tuple[ArrayLike, ArrayLike]],
    rng: np.random.Generator,
    *,
    repetitions: int = REPETITIONS,
    confidence: float = CONFIDENCE,
) -> Interval:
    """The probability of improvement averaged over strata, each (scores, reference scores)."""

    def average(flat: list[Float64]) -> Float64:
        halves = zip(flat[::2], flat[1::2], strict=True)
        return np.asarray(np.mean([improvement([x, y]) for x, y in halves], axis=0))

    flat = [scores for pair in pairs for scores in pair]
    return bootstrap(flat, rng, statistic=average, repetitions=repetitions, confidence=confidence)


def paired_difference(scores: dict[int, float], reference: dict[int, float]) -> Float64:
    """Score minus reference of every seed both have, in the order of the seeds."""
    return np.array([scores[seed] - reference[seed] for seed in sorted(scores.keys() & reference)])


def clopper_pearson(successes: int, runs: int, *, confidence: float = CONFIDENCE) -> Interval:
    """The share of successes with its exact binomial interval."""
    from scipy.stats import binomtest

    if runs < 1 or not 0 <= successes <= runs:
        raise ValueError(f"successes={successes} must lie in 0..runs={runs}, and runs be positive")
    ends = binomtest(successes, runs).proportion_ci(confidence, method="exact")
    return Interval(successes / runs, float(ends.low), float(ends.high))


def first_at_or_above(
    sessions: ArrayLike, scores: ArrayLike, threshold: float
) -> tuple[float, bool]:
    """Where a curve first reaches ``threshold``, or its end and False when it never does."""
    at = np.asarray(sessions, dtype=np.float64)
    reached = np.flatnonzero(np.asarray(scores, dtype=np.float64) >= threshold)
    return (float(at[reached[0]]), True) if reached.size else (float(at[-1]), False)


def censored_median(times: ArrayLike, reached: ArrayLike) -> float:
    """The Kaplan-Meier median of times of which some are only known to be longer; inf if open."""
    from scipy.stats import CensoredData, ecdf

    late = ~np.asarray(reached, dtype=bool)
    surviving = ecdf(CensoredData.right_censored(np.asarray(times, dtype=np.float64), late)).sf
    half = surviving.quantiles[surviving.probabilities <= 0.5 + 1e-12]
    return float(half[0]) if half.size else float("inf")


def area_under_curve(sessions: ArrayLike, scores: ArrayLike) -> float:
    """The average height of a curve over its sessions (trapezoids divided by the span)."""
    at, values = np.asarray(sessions, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if at.size == 0 or at.shape != values.shape:
        raise ValueError(f"sessions {at.shape} and scores {values.shape} must match, not be empty")
    if at.size == 1 or at[-1] == at[0]:
        return float(values[-1])
    return float(np.trapezoid(values, at) / (at[-1] - at[0]))


def _percentiles(samples: Float64, confidence: float) -> tuple[float, float]:
    tail = (1 - confidence) / 2
    low, high = np.quantile(samples, [tail, 1 - tail])
    return float(low), float(high)

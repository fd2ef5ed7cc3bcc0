"""What each arm of a panel scored, and what can be said of it against another."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lser.report.cells import Arm, Panel, rng_for
from lser.report.stats import (
    Float64,
    Interval,
    bootstrap,
    censored_median,
    clopper_pearson,
    first_at_or_above,
    has_scipy,
    mean_t,
    paired_difference,
    probability_of_improvement,
)

THRESHOLDS = (0.5, 0.9, 0.95)
FEW_SEEDS = 10  # below this a percentile bootstrap is visibly too narrow


class Versus(NamedTuple):
    """An arm against another: the mean of the paired differences and the chance to beat it."""

    arm: str
    reference: str
    pairs: int
    difference: Interval
    improvement: Interval

    @property
    def verdict(self) -> str:
        """``above`` or ``below`` only where the interval of the difference excludes zero."""
        if self.pairs < 2:
            return "unknown"
        if not self.difference.excludes_zero:
            return "open"
        return "above" if self.difference.estimate > 0 else "below"


@dataclass(frozen=True)
class Estimate:
    """The scores of one arm: interquartile mean, mean and average over training."""

    arm: Arm
    iqm: Interval
    mean: Interval
    area: Interval | None
    versus: Versus | None


class Reached(NamedTuple):
    """How many runs reached a threshold, and after how many sessions (inf: not half of them)."""

    threshold: float
    share: Interval
    runs: int
    median_sessions: float


def mean_interval(values: Float64, rng: np.random.Generator) -> Interval:
    """The mean with its t-interval, or where SciPy is missing with a bootstrap interval."""
    if has_scipy():
        return mean_t(values)
    return bootstrap([values], rng, statistic=lambda strata: np.asarray(strata[0].mean(axis=-1)))


def versus(arm: Arm, reference: Arm, *, seed: int, key: str) -> Versus:
    """Compares ``arm`` with ``reference`` over the seeds that both have."""
    names = (key, arm.name, reference.name)
    differences = paired_difference(arm.scores, reference.scores)
    unknown = Interval(float("nan"), float("nan"), float("nan"))
    return Versus(
        arm=arm.name,
        reference=reference.name,
        pairs=len(differences),
        difference=(
            mean_interval(differences, rng_for(seed, "difference", *names))
            if len(differences)
            else unknown
        ),
        improvement=probability_of_improvement(
            [(arm.values, reference.values)], rng_for(seed, "improvement", *names)
        ),
    )


def estimates(panel: Panel, *, seed: int) -> list[Estimate]:
    """The estimates of every arm of ``panel``, in its order."""
    reference = panel.reference
    found = []
    for arm in panel.arms:
        key = (panel.name, arm.name)
        areas = np.array(list(arm.areas.values()))
        found.append(
            Estimate(
                arm=arm,
                iqm=bootstrap([arm.values], rng_for(seed, "iqm", *key)),
                mean=mean_interval(arm.values, rng_for(seed, "mean", *key)),
                area=mean_interval(areas, rng_for(seed, "area", *key)) if areas.size else None,
                versus=(
                    versus(arm, reference, seed=seed, key=panel.name)
                    if reference is not None and reference is not arm
                    else None
                ),
            )
        )
    return found


def reached(arm: Arm, threshold: float) -> Reached:
    """The share of runs whose curve ever was at ``threshold`` or above, and when."""
    times = [
        first_at_or_above(
            [line["sessions"] for line in run.curve],
            [line["metric"] for line in run.curve],
            threshold,
        )
        for run in arm.runs
        if run.curve
    ]
    hits = [hit for _, hit in times]
    return Reached(
        threshold=threshold,
        share=clopper_pearson(sum(hits), len(hits)),
        runs=len(hits),
        median_sessions=censored_median([at for at, _ in times], hits),
    )


def overall_improvement(panels: list[Panel], name: str, *, seed: int) -> Interval | None:
    """The chance that ``name`` beats the reference, averaged over the panels that have both."""
    pairs = [
        (arm.values, panel.reference.values)
        for panel in panels
        if panel.reference is not None
        and (arm := panel.arm(name)) is not None
        and arm is not panel.reference
    ]
    if not pairs:
        return None
    return probability_of_improvement(pairs, rng_for(seed, "overall", name))

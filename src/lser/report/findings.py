"""What each arm of a panel scored and what can be said of it against another, computed once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lser.report.panels import Arm, Panel, Study, columns, rng_for
from lser.report.stats import (
    Interval,
    bootstrap,
    censored_median,
    clopper_pearson,
    first_at_or_above,
    mean_t,
    paired_difference,
    probability_of_improvement,
)

THRESHOLDS = (0.5, 0.9, 0.95)
FEW_SEEDS = 10  # below this a percentile bootstrap is visibly too narrow
PARTS = ("env", "replay", "learn", "evaluate")  # of a run's wall time


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


@dataclass(frozen=True, eq=False)
class Finding:
    """A panel with what was found in it; every estimate is made once, when it is first asked."""

    panel: Panel
    seed: int = 0
    """Of the bootstrap."""
    _pairs: dict[tuple[str, str], Versus] = field(default_factory=dict)

    @cached_property
    def estimates(self) -> tuple[Estimate, ...]:
        """The estimates of every arm, in the panel's order."""
        return tuple(self._estimate(arm) for arm in self.panel.arms)

    def versus(self, arm: Arm, reference: Arm) -> Versus:
        """Compares ``arm`` with ``reference`` over the seeds that both have."""
        key = (arm.name, reference.name)
        if key not in self._pairs:
            self._pairs[key] = versus(arm, reference, seed=self.seed, key=self.panel.name)
        return self._pairs[key]

    def against(self, name: str, other: str) -> Versus | None:
        """Compares two arms by their names, where both were run."""
        arm, reference = self.panel.arm(name), self.panel.arm(other)
        return None if arm is None or reference is None else self.versus(arm, reference)

    @cached_property
    def times(self) -> dict[str, dict[str, float]]:
        """The mean time of each part over the runs of every arm that recorded any.

        Runs of a fleet share their time with others and are left out.
        """
        found = {arm.name: _mean_times(arm) for arm in self.panel.arms}
        return {name: mean for name, mean in found.items() if mean}

    def _estimate(self, arm: Arm) -> Estimate:
        reference, areas = self.panel.reference, np.array(list(arm.areas.values()))
        other = reference is not None and reference is not arm
        return Estimate(
            arm=arm,
            iqm=bootstrap([arm.values], rng_for(self.seed, "iqm", self.panel.name, arm.name)),
            mean=mean_t(arm.values),
            area=mean_t(areas) if areas.size else None,
            versus=self.versus(arm, reference) if other and reference is not None else None,
        )


@dataclass(frozen=True, eq=False)
class StudyFindings:
    """A study with what was found in each of its panels."""

    study: Study
    panels: tuple[Finding, ...]
    seed: int = 0

    def overall_improvement(self, name: str) -> Interval | None:
        """The chance that ``name`` beats the reference, averaged over panels that have both."""
        pairs = [
            (arm.values, panel.reference.values)
            for panel in self.study.panels
            if panel.reference is not None
            and (arm := panel.arm(name)) is not None
            and arm is not panel.reference
        ]
        if not pairs:
            return None
        return probability_of_improvement(pairs, rng_for(self.seed, "overall", name))


def find_out(studies: Sequence[Study], *, seed: int = 0) -> list[StudyFindings]:
    """What was found in every study; nothing is computed before it is asked for."""
    return [
        StudyFindings(study, tuple(Finding(panel, seed) for panel in study.panels), seed)
        for study in studies
    ]


def versus(arm: Arm, reference: Arm, *, seed: int, key: str) -> Versus:
    """Compares ``arm`` with ``reference``; ``key`` names the generator of the bootstrap."""
    differences = paired_difference(arm.scores, reference.scores)
    unknown = Interval(float("nan"), float("nan"), float("nan"))
    return Versus(
        arm=arm.name,
        reference=reference.name,
        pairs=len(differences),
        difference=mean_t(differences) if len(differences) else unknown,
        improvement=probability_of_improvement(
            [(arm.values, reference.values)],
            rng_for(seed, "improvement", key, arm.name, reference.name),
        ),
    )


def reached(arm: Arm, threshold: float) -> Reached:
    """The share of runs whose curve ever was at ``threshold`` or above, and when."""
    times = [first_at_or_above(*columns(run), threshold) for run in arm.runs if run.curve]
    hits = [hit for _, hit in times]
    return Reached(
        threshold=threshold,
        share=clopper_pearson(sum(hits), len(hits)),
        runs=len(hits),
        median_sessions=censored_median([at for at, _ in times], hits),
    )


def _mean_times(arm: Arm) -> dict[str, float]:
    runs = [run for run in arm.runs if not run.shared]
    found = [run.final["times"] for run in runs if run.final and run.final.get("times")]
    if not found or any(not entry.get("wall", 0) > 0 for entry in found):
        return {}
    return {
        part: sum(float(entry.get(part, 0.0)) for entry in found) / len(found)
        for part in (*PARTS, "wall", "cpu")
    }

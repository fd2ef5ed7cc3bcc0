"""What is read off the runs of one arm: when it got there, whether it stayed, what it cost."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lser.experiments.records import Record
from lser.experiments.studies import ScoreScale
from lser.report.panels import Arm, columns
from lser.report.stats import Interval, censored_median, clopper_pearson, first_at_or_above

FALL = 0.1  # of the way from random to best: a run that ends further below its peak has fallen
OWN = "value_own_mean"  # of a point of a curve: what a critic expects of its own actions
PARTS = ("env", "replay", "learn", "evaluate")  # of a run's wall time


class Reached(NamedTuple):
    """How many runs reached a threshold, and after how many sessions (inf: not half of them)."""

    threshold: float
    share: Interval
    runs: int
    median_sessions: float


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


def fallen(arm: Arm, scale: ScoreScale | None) -> Interval | None:
    """The share of runs that end clearly below their own best evaluation, on a known scale."""
    if scale is None or not arm.areas:
        return None
    falls = [fell(run.curve, run.final or {}, scale) for run in arm.runs if run.curve]
    return clopper_pearson(sum(falls), len(falls))


def fell(curve: Sequence[Mapping[str, float]], end: Mapping[str, Any], scale: ScoreScale) -> bool:
    """Whether a run ends clearly below the best point of its curve.

    That is by more than `FALL` of the way from random to best, and by more than two standard errors
    of the two evaluations.
    """
    peak = max(curve, key=lambda line: line["metric"])
    noise = 2 * math.hypot(float(peak.get("metric_se", 0)), float(end.get("metric_se", 0)))
    unit = scale.best.score - scale.random.score
    return bool(peak["metric"] - end["metric"] > max(FALL * unit, noise))


def over_the_bound(run: Record, *keys: str) -> list[tuple[float, float]]:
    """The sessions, and the largest of some of a critic's values over the most rewards allow."""
    looked = [line for line in run.curve if line.get("value_bound_high", 0.0) > 0]
    return [
        (float(line["sessions"]), max(line[key] for key in keys) / line["value_bound_high"])
        for line in looked
        if all(key in line for key in keys)
    ]


def untrained(run: Record) -> Mapping[str, float] | None:
    """The evaluation of a run's policy before its first update."""
    first = min(run.curve, key=lambda line: line["sessions"], default=None)
    whole = first is not None and first.get("updates") == 0 and first.get("length", 0) > 0
    return first if whole and "reward" in (first or {}) else None


def mean_times(arm: Arm) -> dict[str, float]:
    """The mean seconds of each part of a run and its updates; nothing where none was recorded.

    Runs of a fleet share their time with others and are left out.
    """
    finals = [run.final for run in arm.runs if not run.shared and run.final]
    found = [
        {**final["times"], "updates": final.get("updates") or 0}
        for final in finals
        if final.get("times")
    ]
    if not found or any(not entry.get("wall", 0) > 0 for entry in found):
        return {}
    return {
        part: sum(float(entry.get(part, 0.0)) for entry in found) / len(found)
        for part in (*PARTS, "wall", "cpu", "updates")
    }

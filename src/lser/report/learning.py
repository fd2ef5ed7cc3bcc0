"""The table of what runs told while they learned: what they earned, and what their critics said."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lser.experiments.records import Record
from lser.report.findings import Finding
from lser.report.measures import OWN, over_the_bound
from lser.report.panels import Arm
from lser.report.style import name_of, number
from lser.report.table import Table

Line = Mapping[str, Any]  # a point of a curve
REPLAYED = "value_replayed_mean"  # keys of a point
LARGEST = ("value_own_largest", "value_replayed_largest")


def while_learning(found: Finding) -> Table | None:
    """What every arm earned and what its critics said; None where no run kept it."""
    panel = found.panel
    columns: dict[str, Callable[[Arm], str]] = {
        f"{name_of(panel.metric)} while learning": _last("learning_metric"),
        "regret": _last("regret"),
        "value over bound, end": _middle(lambda run: _over(run, OWN)[-1:]),
        "at most": _middle(lambda run: _over(run, OWN)),
        "of what is replayed": _middle(lambda run: _over(run, REPLAYED)[-1:]),
        "largest": _middle(lambda run: _over(run, *LARGEST)),
        "spread of values": _middle(lambda run: _said(run, "value_spread")[-1:]),
        "batches of one reward": _share("one_reward"),
        "actions at their bounds": _share("saturated"),
    }
    rows = [
        (name_of(row.arm.name), *(cell(row.arm) for cell in columns.values()))
        for row in found.estimates
    ]
    kept = [at for at in range(len(columns) + 1) if any(row[at] != "–" for row in rows)]
    if len(kept) < 2:
        return None
    names = ("arm", *columns)
    return Table(
        f"{panel.name}-learning",
        f"{panel.title}: what was earned while learning, exploration included, and the regret "
        "against the best policy known (means of runs). Of the critic, medians of runs: its mean "
        "value of its own actions over the most that rewards allow, at the end and at the most, "
        "that of what it replays at the end, the largest value of all, and how values differ over "
        "random actions. Means over training: batches in which all "
        "rewards are one, and components of actions at their bounds.",
        tuple(names[at] for at in kept),
        tuple(tuple(row[at] for at in kept) for row in rows),
    )


def _said(run: Record, key: str) -> list[float]:
    return [float(line[key]) for line in run.curve if key in line]


def _over(run: Record, *keys: str) -> list[float]:
    return [share for _, share in over_the_bound(run, *keys)]


def _last(key: str) -> Callable[[Arm], str]:
    def cell(arm: Arm) -> str:
        ends = [found[-1] for run in arm.runs if (found := _said(run, key))]
        return number(float(np.mean(ends))) if ends else "–"

    return cell


def _middle(points: Callable[[Record], list[float]]) -> Callable[[Arm], str]:
    def cell(arm: Arm) -> str:
        most = [max(found) for run in arm.runs if (found := points(run))]
        return number(float(np.median(most)), digits=2) if most else "–"

    return cell


def _share(key: str) -> Callable[[Arm], str]:
    def cell(arm: Arm) -> str:
        means = [float(np.mean(found)) for run in arm.runs if (found := _said(run, key))]
        return f"{np.mean(means):.0%}" if means else "–"

    return cell

"""What locality is worth on Bazaar, and where: the figures of D in plan.md, from the records.

``python results/locality.py`` prints them all; `locality_page.py` has the words and the map.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from committed import RESULTS

from lser.experiments import records
from lser.report.panels import columns
from lser.report.stats import Interval, holm, mean_t, paired_difference, paired_p
from lser.report.style import interval

DEPENDENCES, SPARSITIES, DISCOUNTS = (0.0, 0.5, 1.0), (0.005, 0.02), (0.0, 0.99)
CONTROLS = ("uniform", "reward-top", "shuffled-code")
OTHERS = (
    *("lser", "lser 6 bits raw", "lser 10 bits raw", "lser 14 bits raw"),
    *("uniform", "reward-top"),
    *("lser with the cure", "uniform with the cure", "reward-top with the cure"),
)
LONG, SHORT = 6_000, 2_000  # sessions
LEVEL = 0.05
FILE = RESULTS / "locality.jsonl.gz"
Scores = Mapping[int, float]  # by seed


class Cell(NamedTuple):
    """Where on the map."""

    sparsity: float
    dependence: float
    discount: float

    @property
    def words(self) -> str:
        """The cell in words."""
        return f"sparsity {self.sparsity:g}, discount {self.discount:g}"


class Gap(NamedTuple):
    """LSER minus a control, in shares of the possible."""

    mean: Interval
    p: float
    seeds: int


PRIMARY = tuple(Cell(0.005, dependence, 0.0) for dependence in DEPENDENCES)
CELLS = tuple(
    Cell(sparsity, dependence, discount)
    for sparsity in SPARSITIES
    for discount in DISCOUNTS
    for dependence in DEPENDENCES
)


@cache
def _worlds() -> dict[tuple[float, float, int], dict[str, float]]:
    rows: list[dict[str, float]] = json.loads((RESULTS / "worlds.json").read_text())
    return {
        (row["sparsity"], row["state_dependence"], int(row["world_seed"])): row
        for row in rows
        if "patience" not in row and "drift" not in row
    }


def world_of(sparsity: float, dependence: float, world: int) -> dict[str, float]:
    """What known policies score in a world."""
    return _worlds()[sparsity, dependence, world]


@cache
def linear_bandit(sparsity: float, dependence: float, world: int) -> float:
    """What the linear bandit scores in a world after 2,000 sessions."""
    rows = json.loads((RESULTS / "references.json").read_text())
    name = f"bazaar, sparsity {sparsity:g}, state dependence {dependence:g}, world {world}"
    [found] = [row["metric"] for row in rows if row["platform"] == name]
    return float(found)


Runs = dict[tuple[Cell, str], dict[int, records.Record]]  # of a cell and arm, by seed


@cache
def runs_of(file: Path) -> Runs:
    """The records of every cell and arm, by seed."""
    found: Runs = {}
    for run in records.find(file):
        simulator, agent = run.experiment["simulator"], run.experiment["agent"]
        dials = simulator["sparsity"], simulator["state_dependence"], agent["discount"]
        found.setdefault((Cell(*dials), run.label), {})[run.seed] = run
    return found


def _runs() -> Runs:
    """D's: of 6,000 sessions or of 2,000, never both."""
    return runs_of(FILE)


def share(run: records.Record, ctr: float) -> float:
    """A CTR between random actions (0) and the oracle (1) of the run's own world."""
    simulator = run.experiment["simulator"]
    dials = simulator["sparsity"], simulator["state_dependence"], simulator["world_seed"]
    world = world_of(*dials)
    return (ctr - world["random"]) / (world["oracle"] - world["random"])


def at(run: records.Record, sessions: int) -> float:
    """The CTR at the end, or of the points at `sessions` and 500 before it."""
    if run.final is not None and run.experiment["sessions"] == sessions and sessions == LONG:
        return float(run.final["metric"])
    reached, scores = columns(run)
    near = (reached > max(0, sessions - 600)) & (reached < sessions + 100)
    return float(scores[near].mean())


def shares(cell: Cell, arm: str, sessions: int) -> Scores:
    """The share of the possible of every seed."""
    return {s: share(run, at(run, sessions)) for s, run in _runs()[cell, arm].items()}


def gap(ours: Scores, theirs: Scores) -> Gap:
    """The paired difference."""
    differences = paired_difference(dict(ours), dict(theirs))
    return Gap(mean_t(differences), paired_p(differences), len(differences))


@cache
def slope(control: str, sessions: int = LONG) -> Gap:
    """How LSER's lead over a control grows from state dependence 0 to 1, per seed."""
    ours = [shares(cell, "lser", sessions) for cell in PRIMARY]
    theirs = [shares(cell, control, sessions) for cell in PRIMARY]
    seeds = sorted(set.intersection(*(set(scores) for scores in (*ours, *theirs))))
    slopes = [
        np.polyfit(DEPENDENCES, [a[s] - b[s] for a, b in zip(ours, theirs, strict=True)], 1)[0]
        for s in seeds
    ]
    return Gap(mean_t(slopes), paired_p(slopes), len(seeds))


@cache
def chart() -> dict[Cell, dict[str, Gap]]:
    """LSER against every control in every cell, at 2,000 sessions."""
    return {
        cell: {
            control: gap(shares(cell, "lser", SHORT), shares(cell, control, SHORT))
            for control in CONTROLS
        }
        for cell in CELLS
    }


def verdicts() -> dict[Cell, str]:
    """Whether locality pays in a cell, costs, or is open, by Holm over the whole map."""
    found = chart()
    adjusted = iter(holm([g.p for gaps in found.values() for g in gaps.values()]))
    told = {}
    for cell, gaps in found.items():
        sides = [np.sign(g.mean.estimate) * (next(adjusted) <= LEVEL) for g in gaps.values()]
        told[cell] = "costs" if -1 in sides else "pays" if sides == [1, 1, 1] else "open"
    return told


def signed(value: Interval) -> str:
    """An interval with signs."""
    return interval(value, sign=True, digits=3)


def map_table() -> str:
    """Every cell of the map."""
    lines = [
        "| sparsity | discount | state dependence | LSER | uniform | reward-top | shuffled-code | "
        "minus uniform | minus reward-top | minus shuffled-code | seeds | locality |",
        "|" + "---|" * 12,
    ]
    told = verdicts()
    for cell, gaps in chart().items():
        means = [
            f"{np.mean(list(shares(cell, arm, SHORT).values())):.2f}" for arm in ("lser", *CONTROLS)
        ]
        row = [
            *(f"{cell.sparsity:g}", f"{cell.discount:g}", f"{cell.dependence:g}", *means),
            *(signed(gaps[c].mean) for c in CONTROLS),
            *(str(gaps["uniform"].seeds), f"**{told[cell]}**"),
        ]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def long_table() -> str:
    """The primary cells at the three lengths that were planned."""
    lines = [
        "| state dependence | sessions | LSER | minus uniform | minus reward-top "
        "| minus shuffled-code |",
        "|---|---|---|---|---|---|",
    ]
    for cell in PRIMARY:
        for sessions in (500, SHORT, LONG):
            ours = shares(cell, "lser", sessions)
            gaps = [signed(gap(ours, shares(cell, c, sessions)).mean) for c in CONTROLS]
            mean = f"{np.mean(list(ours.values())):.3f}"
            row = (f"{cell.dependence:g}", f"{sessions:,}", mean, *gaps)
            lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def arms_table() -> str:
    """Bits, features and the cure in the primary cells at 2,000 sessions, seeds 100 to 109."""
    heads = " | ".join(f"state dependence {d:g}" for d in DEPENDENCES)
    lines = [f"| arm | {heads} |", "|---|---|---|---|"]
    for arm in OTHERS:
        cells = []
        for cell in PRIMARY:
            scores = shares(cell, arm, SHORT)
            some = [value for seed, value in scores.items() if seed < 110]
            cells.append(interval(mean_t(some), digits=3))
        lines.append(f"| {arm} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def secondary() -> list[tuple[str, Gap, float]]:
    """LSER against each control at state dependence 1 and 6,000 sessions, with Holm's p."""
    cell = PRIMARY[-1]
    gaps = [gap(shares(cell, "lser", LONG), shares(cell, c, LONG)) for c in CONTROLS]
    return list(zip(CONTROLS, gaps, holm([g.p for g in gaps]), strict=True))


def main() -> None:
    """Print every figure."""
    for control in CONTROLS:
        for sessions in (SHORT, LONG):
            found = slope(control, sessions)
            print(f"slope against {control}, {sessions:,}: {signed(found.mean)}, p = {found.p:.2g}")
    for control, found, p in secondary():
        print(f"lser minus {control} at 1: {signed(found.mean)}, p = {found.p:.2g}, Holm {p:.2g}")
    print(long_table(), map_table(), arms_table(), sep="\n\n")


if __name__ == "__main__":
    main()

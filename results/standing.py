"""Runs read where all that are compared stand: at their end, or where time cut one of them off."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from committed import SEED
from delayed import Gap, gap, verdict

from lser.experiments.records import Record
from lser.report.stats import Interval, holm, probability_of_improvement, welch
from lser.report.style import interval, listing, name_of, number

Name = Callable[[str], str]  # of an arm, as a reader knows it
Scores = dict[Any, float]  # by what pairs runs: a seed, or a world and a seed


def complete(run: Record) -> bool:
    """Whether a run has had all its sessions and a score at the end."""
    return run.final is not None and run.final["sessions"] >= run.experiment["sessions"]


def points(run: Record) -> dict[int, dict[str, float]]:
    """The curve by the number of a point, each as it was met first."""
    every = run.experiment["evaluate_every"]
    return {int(line["sessions"] // every): line for line in reversed(run.curve)}


def alive(runs: Iterable[Record]) -> list[Record]:
    """Those that did not fail."""
    return [run for run in runs if run.status not in ("failed", "damaged") and run.curve]


def ran(runs: Iterable[Record]) -> str:
    """How many runs were made with which command and on what, and how many did not end."""
    found = list(runs)
    made = Counter((r.meta["command"], r.meta.get("engine") or "single processes") for r in found)
    parts = [f"{n} runs by `{command}` ({on})" for (command, on), n in made.most_common()]
    failed = len(found) - len(alive(found))
    short = sum(not complete(run) for run in alive(found))
    lost = [f"{n} {what}" for n, what in ((failed, "failed"), (short, "cut off by time")) if n]
    return f"{'; '.join(parts)}; {listing(lost) or 'none failed'}."


def chance(p: float) -> str:
    """A p-value in words."""
    return "p < 0.001" if p < 0.001 else f"p = {number(p)}"


@dataclass(frozen=True)
class Arms:
    """Runs by arm and by what pairs them."""

    runs: Mapping[str, Mapping[Any, Record]]

    def __contains__(self, arm: str) -> bool:
        return len(self.runs.get(arm, {})) > 1

    def whole(self, *arms: str) -> bool:
        """Whether every run of these arms is complete, and all are of one length."""
        runs = [run for arm in arms for run in self.runs[arm].values()]
        lengths = {run.experiment["sessions"] for run in runs}
        return len(lengths) == 1 and all(map(complete, runs))

    def last(self, *arms: str) -> int:
        """The last point that all runs of these arms have."""
        held = [set(points(run)) for arm in arms for run in self.runs[arm].values()]
        return max(set.intersection(*held))

    def sessions(self, *arms: str) -> int:
        """How long these arms are when they are compared."""
        run = next(iter(self.runs[arms[0]].values()))
        if self.whole(*arms):
            return int(run.experiment["sessions"])
        return self.last(*arms) * int(run.experiment["evaluate_every"])

    def scores(self, arm: str, key: str, *others: str) -> Scores:
        """A score of every run of `arm`, where it and the `others` stand."""
        if self.whole(arm, *others):
            return {at: float((run.final or {})[key]) for at, run in self.runs[arm].items()}
        point = self.last(arm, *others)
        return {at: float(points(run)[point][key]) for at, run in self.runs[arm].items()}

    def mean(self, arm: str, key: str) -> float:
        """The mean score of an arm where it stands."""
        return float(np.mean(list(self.scores(arm, key).values())))

    def gap(self, arm: str, other: str, key: str) -> Gap:
        """The paired difference of two arms where both stand."""
        return gap(self.scores(arm, key, other), self.scores(other, key, arm))

    def improvement(self, arm: str, other: str, key: str) -> Interval:
        """The probability that a run of one arm stands above one of another, where both stand."""
        pair = [self.scores(arm, key, other), self.scores(other, key, arm)]
        ours, theirs = (np.array(list(scores.values())) for scores in pair)
        return probability_of_improvement([(ours, theirs)], np.random.default_rng(SEED))

    def welch(self, arm: str, other: str, key: str) -> Interval:
        """The difference of two arms where both stand, not paired."""
        pair = self.scores(arm, key, other), self.scores(other, key, arm)
        return welch(*(list(scores.values()) for scores in pair))

    def told(self, ours: str, found: Mapping[str, tuple[Gap, float]], name: Name = name_of) -> str:
        """One arm minus others in words; a comparison that was cut off says where."""
        parts = []
        for arm, (one, p) in found.items():
            short = "" if self.whole(ours, arm) else f", at {self.sessions(ours, arm):,}"
            said = f"{verdict(one.mean, p)}, {chance(p)}{short}"
            parts.append(f"{name(arm)} {interval(one.mean, sign=True)} ({said})")
        return "; ".join(parts)

    def cut(self, name: Name = name_of) -> str:
        """The arms that time cut off, in words; nothing if none was."""
        arms = [arm for arm in self.runs if not self.whole(arm)]
        if not arms:
            return ""
        told = next(iter(self.runs[arms[0]].values())).experiment
        verbs = ("was", "is", "it") if len(arms) == 1 else ("were", "are", "they")
        return (
            f"{listing([name(arm) for arm in arms])} {verbs[0]} cut off by time and {verbs[1]} "
            f"compared where {verbs[2]} stood, by evaluations of {told['evaluate_sessions']:,} "
            f"sessions a run, not {told['final_sessions']:,}. "
        )


def with_holm(found: Mapping[str, Gap]) -> dict[str, tuple[Gap, float]]:
    """Every difference with its p after Holm's correction over them."""
    corrected = holm([one.p for one in found.values()])
    return {arm: (one, p) for (arm, one), p in zip(found.items(), corrected, strict=True)}


def grouped(sides: Mapping[str, str], name: Name = name_of) -> dict[str, list[str]]:
    """The memories on each side, or with each answer, by their names."""
    found: dict[str, list[str]] = {}
    for arm, side in sides.items():
        found.setdefault(side, []).append(name(arm))
    return found


def stands(sides: Mapping[str, list[str]]) -> str:
    """Where LSER stands, by the memories on each side of it."""
    words = {"above": "above", "below": "below", "not separated": "not separated from"}
    return ", ".join(f"{words[side]} {listing(sides[side])}" for side in words if side in sides)


def who_wins(found: Mapping[str, tuple[Gap, float]]) -> str:
    """Whether LSER wins, by its differences from all others with Holm's p."""
    sides = grouped({arm: verdict(one.mean, p) for arm, (one, p) in found.items()})
    below, level = sides.get("below", []), sides.get("not separated", [])
    if below:
        return f"LSER does not win: it ends below {listing(below)}"
    return f"it is open: LSER is not separated from {listing(level)}" if level else "LSER wins"

"""Runs of a planned study on VirtualTaobao, whole or cut off, and the scores that plan.md names."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from committed import SEED
from delayed import Gap, Scores, gap, verdict
from scipy.stats import spearmanr
from standing import chance, with_holm

from lser.experiments import records
from lser.experiments.studies import ScoreScale, scale_of
from lser.report.measures import fell
from lser.report.stats import (
    Interval,
    area_under_curve,
    censored_median,
    probability_of_improvement,
)
from lser.report.style import interval, listing, name_of, number

# whether LSER ends above uniform, by the verdict on their difference
OUTCOMES = {
    "above": "**holds**: LSER ends above uniform",
    "below": "**does not hold**: LSER ends below uniform",
    "not separated": "**is open**: LSER and uniform are not separated",
}

LAST = 10  # points of a curve that critics are read at

Runs = Mapping[str, Mapping[int, records.Record]]  # by arm, by seed


class Belief(NamedTuple):
    """What the critics of an arm believe of their own actions, beside what these earn."""

    excess: float
    """Values as a share of their bound minus rewards as a share of the largest, median run."""
    follows: float
    """Spearman's correlation of the two over runs."""


@dataclass(frozen=True)
class Scored:
    """The runs of a study by arm and seed; all are read at the end, or where all of them stand."""

    runs: Runs
    failed: int = 0
    """Runs that failed, which have no score."""

    @cached_property
    def everything(self) -> list[records.Record]:
        """Every run."""
        return [run for arm in self.runs.values() for run in arm.values()]

    @cached_property
    def points(self) -> int | None:
        """How many points of the curve all runs have, where one has no score at its end."""
        if all(run.final is not None for run in self.everything):
            return None
        return min(len(run.curve) for run in self.everything)

    @cached_property
    def scale(self) -> ScoreScale:
        """Random actions, the best constant and the best policy known."""
        known = scale_of(self.everything[0].experiment, "ctr")
        assert known is not None
        return known

    def whole(self) -> str:
        """How many runs are complete, and where the others stood."""
        stopped = [run for run in self.everything if run.status != "done"]
        count = len(self.everything)
        failed = f", {self.failed} more failed" if self.failed else ""
        if not stopped:
            return f"all {count} runs complete{failed}"
        stood = [self.end(run)["sessions"] for run in stopped]
        return (
            f"{count - len(stopped)} of {count} runs complete, the others cut off and scored at "
            f"{min(stood):,.0f} to {max(stood):,.0f} sessions{failed}"
        )

    def curve(self, run: records.Record) -> list[dict[str, float]]:
        """The curve as far as it is read."""
        return run.curve[: self.points]

    def end(self, run: records.Record) -> Mapping[str, Any]:
        """The evaluation that a run is scored by."""
        if self.points is not None:
            return run.curve[self.points - 1]
        assert run.final is not None
        return run.final

    def of(self, arm: str, key: str = "metric") -> Scores:
        """The scores of an arm: its CTR, or its reward per step."""
        return {seed: float(self.end(run)[key]) for seed, run in self.runs.get(arm, {}).items()}

    def mean(self, arm: str, key: str = "metric") -> float:
        """Their mean."""
        return float(np.mean(list(self.of(arm, key).values())))

    def share(self, arm: str) -> float:
        """Their mean as a share of the possible."""
        return self.scale.share(self.mean(arm))

    def fallen(self, arm: str) -> dict[int, bool]:
        """Whether a run ends clearly below its best point."""
        return {
            seed: fell(self.curve(run), self.end(run), self.scale)
            for seed, run in self.runs[arm].items()
        }

    def fell(self, arms: Iterable[str]) -> list[str]:
        """How many runs of each arm do, in words."""
        found = {arm: self.fallen(arm) for arm in arms}
        return [f"{name_of(arm)} {sum(f.values())} of {len(f)}" for arm, f in found.items()]

    def improvement(self, arm: str, other: str) -> Interval:
        """The probability that a run of one arm ends above one of another."""
        pair = [np.array(list(self.of(one).values())) for one in (arm, other)]
        return probability_of_improvement([(pair[0], pair[1])], np.random.default_rng(SEED))

    def depth(self, arm: str) -> Scores:
        """The best point of a run minus its end, in shares of the possible."""
        unit = self.scale.best.score - self.scale.random.score
        return {
            seed: (max(p["metric"] for p in self.curve(run)) - self.end(run)["metric"]) / unit
            for seed, run in self.runs[arm].items()
        }

    def areas(self, arm: str) -> Scores:
        """The average height of every curve of an arm."""
        curves = {seed: self.curve(run) for seed, run in self.runs[arm].items()}
        return {
            seed: area_under_curve([p["sessions"] for p in c], [p["metric"] for p in c])
            for seed, c in curves.items()
        }

    def area(self, arm: str) -> float:
        """Their mean."""
        return float(np.mean(list(self.areas(arm).values())))

    def reached(self, arm: str, share: float) -> str:
        """The median sessions to a share of the possible, and how many runs get there."""
        goal = self.scale.random.score + share * (self.scale.best.score - self.scale.random.score)
        at, hits = [], []
        for run in self.runs[arm].values():
            there = [p["sessions"] for p in self.curve(run) if p["metric"] >= goal]
            at.append(there[0] if there else self.curve(run)[-1]["sessions"])
            hits.append(bool(there))
        middle = censored_median(at, hits) if any(hits) else float("inf")
        shown = "never" if middle == float("inf") else f"{middle:,.0f}"
        return f"{shown} ({sum(hits)} of {len(hits)})"

    def values(self, arm: str) -> tuple[float, float]:
        """Critics' values of their own actions over the bound, median run: at the end, at most.

        The bound of the records is that of rewards, the largest over 1 - γ.
        """
        over = [
            [point["value_own_mean"] / point["value_bound_high"] for point in curve]
            for curve in self._valued(arm)
        ]
        if not over:
            return float("nan"), float("nan")
        return float(np.median([v[-1] for v in over])), float(np.median([max(v) for v in over]))

    def one_reward(self, arm: str) -> float:
        """The share of batches with one single reward, mean over the points with batches before."""
        points = [point for curve in self._valued(arm) for point in curve]
        found = [point["one_reward"] for point in points if "one_reward" in point]
        return float(np.mean(found)) if found else float("nan")

    def spread(self, arm: str) -> float:
        """The deviation of values over random actions at the end, median run."""
        ends = [curve[-1].get("value_spread", np.nan) for curve in self._valued(arm)]
        return float(np.median(ends)) if ends else float("nan")

    def belief(self, arm: str) -> Belief:
        """Over the last `LAST` points. A critic that is right has an excess of 0 and follows."""
        found = []
        for run in self.runs[arm].values():
            points = [p for p in run.curve if "value_own_mean" in p][-LAST:]
            valued = [p["value_own_mean"] / p["value_bound_high"] for p in points]
            # the bound is that of rewards for ever, so that this is the largest reward of a step
            largest = points[0]["value_bound_high"] * (1 - run.experiment["agent"]["discount"])
            earned = np.mean([p["reward_per_step"] for p in points]) / largest
            found.append((np.mean(valued), earned))
        values, rewards = np.array(found).T
        constant = not (np.ptp(values) and np.ptp(rewards))
        follows = np.nan if constant else spearmanr(values, rewards).statistic
        return Belief(float(np.median(values - rewards)), float(follows))

    def _valued(self, arm: str) -> list[list[dict[str, float]]]:
        """The points at which a critic was looked at, of each run that has some."""
        curves = [self.curve(run) for run in self.runs[arm].values()]
        looked = [[point for point in curve if "value_own_mean" in point] for curve in curves]
        return [curve for curve in looked if curve]

    def against(self, arm: str, others: tuple[str, ...]) -> dict[str, tuple[Gap, float]]:
        """One arm minus each of the others, with Holm's p over them."""
        return with_holm({one: gap(self.of(arm), self.of(one)) for one in others})


def scored(runs: Runs) -> Scored:
    """The runs that did not fail."""
    kept = {
        arm: {seed: run for seed, run in of.items() if run.status in ("done", "stopped")}
        for arm, of in runs.items()
    }
    failed = sum(len(of) - len(kept[arm]) for arm, of in runs.items())
    return Scored({arm: of for arm, of in kept.items() if of}, failed)


def told(found: Mapping[str, tuple[Gap, float]]) -> str:
    """Comparisons in words."""
    return "; ".join(
        f"{name_of(arm)} {interval(one.mean, sign=True)} ({verdict(one.mean, p)}, {chance(p)})"
        for arm, (one, p) in found.items()
    )


def levels(arms: Mapping[str, float], digits: int = 3) -> str:
    """Arms with a number each, in a sentence."""
    return listing([f"{name_of(arm)} {number(x, digits=digits)}" for arm, x in arms.items()])


def row(*cells: str) -> str:
    """A line of a table."""
    return "| " + " | ".join(cells) + " |"


def gather(study: str, file: Path, *folders: Path) -> None:
    """Pack every run of a study under `folders` that has ended, one way or another."""
    found = [run for folder in folders for run in records.find(folder) if run.study == study]
    ended = [run for run in found if run.status in ("done", "stopped", "failed")]
    if not ended:
        raise ValueError(f"no run of {study} has ended under {', '.join(map(str, folders))}")
    records.pack(ended, file)


def pack_or_print(words: list[str], study: str, file: Path, block: Callable[[], str]) -> None:
    """What a script of one study does: ``pack FOLDER ...``, or print every figure."""
    if words:
        gather(study, file, *map(Path, words[1:]))
    else:
        print(block())

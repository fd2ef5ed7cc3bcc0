"""What each arm of a panel scored and what can be said of it against another, computed once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lser.report.measures import fallen, mean_times, untrained
from lser.report.panels import Arm, Panel, Study, rng_for
from lser.report.stats import (
    Interval,
    bootstrap,
    holm,
    mean_t,
    paired_difference,
    paired_p,
    probability_of_improvement,
    welch,
)

FEW_SEEDS = 10  # below this a percentile bootstrap is visibly too narrow
LEVEL = 0.05  # of a test


class Versus(NamedTuple):
    """An arm against another: the mean of the paired differences and the chance to beat it."""

    arm: str
    reference: str
    pairs: int
    difference: Interval
    improvement: Interval
    p: float
    """Of the paired t-test, not corrected."""
    unpaired: Interval

    @property
    def verdict(self) -> str:
        """``above`` or ``below`` only where the interval of the difference excludes zero."""
        if self.pairs < 2:
            return "unknown"
        if not self.difference.excludes_zero:
            return "open"
        return "above" if self.difference.estimate > 0 else "below"

    def reading(self, p: float) -> str:
        """The verdict; ``above?`` where `p`, Holm's in a table of many, does not keep it."""
        kept = p <= LEVEL or self.verdict in ("open", "unknown")
        return self.verdict if kept else f"{self.verdict}?"


@dataclass(frozen=True)
class Estimate:
    """The scores of one arm: interquartile mean, mean and average over training."""

    arm: Arm
    iqm: Interval
    mean: Interval
    area: Interval | None
    versus: Versus | None


class Measures(NamedTuple):
    """What else counts of an arm: steadiness, and the objective it was trained on."""

    arm: Arm
    worst: float
    fallen: Interval | None
    """The share of runs that end more than `FALL` of the possible below their best evaluation."""
    reward: Interval | None
    """Per step, at the end."""
    reward_versus: Versus | None
    area_versus: Versus | None


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

    @cached_property
    def measures(self) -> tuple[Measures, ...]:
        """The further measures of every arm, in the panel's order."""
        return tuple(self._measures(arm) for arm in self.panel.arms)

    @cached_property
    def adjusted(self) -> dict[str, float]:
        """The p-value of every arm against the reference, by Holm's method over the panel."""
        return _adjusted(row.versus for row in self.estimates)

    @cached_property
    def adjusted_areas(self) -> dict[str, float]:
        """The same of the averages over training."""
        return _adjusted(one.area_versus for one in self.measures)

    @cached_property
    def adjusted_rewards(self) -> dict[str, float]:
        """The same of the rewards per step."""
        return _adjusted(one.reward_versus for one in self.measures)

    def reading(self, pair: Versus) -> str:
        """A verdict against the reference: ``above?`` where Holm's correction does not keep it."""
        return pair.reading(self.adjusted.get(pair.arm, pair.p))

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

    def measured(self, name: str) -> Measures | None:
        """The further measures of the arm called ``name``."""
        return next((found for found in self.measures if found.arm.name == name), None)

    @cached_property
    def learned(self) -> dict[str, Interval]:
        """By how much each arm ends above its own policy before any training."""
        return self._gains("scores", lambda line: float(line["metric"]))

    @cached_property
    def learned_reward(self) -> dict[str, Interval]:
        """The same on the reward per step."""
        return self._gains("rewards", lambda line: line["reward"] / line["length"])

    def _gains(
        self, ends: str, start: Callable[[Mapping[str, float]], float]
    ) -> dict[str, Interval]:
        found: dict[str, list[float]] = {}
        for arm in self.panel.arms:
            values: dict[int, float] = getattr(arm, ends)
            for run in (run for run in arm.runs if run.seed in values):
                first = untrained(run)
                if first is not None:
                    found.setdefault(arm.name, []).append(values[run.seed] - start(first))
        return {name: mean_t(gains) for name, gains in found.items()}

    @cached_property
    def times(self) -> dict[str, dict[str, float]]:
        """The mean time of each part over the runs of every arm that recorded any.

        Runs of a fleet share their time with others and are left out.
        """
        found = {arm.name: mean_times(arm) for arm in self.panel.arms}
        return {name: mean for name, mean in found.items() if mean}

    def _estimate(self, arm: Arm) -> Estimate:
        reference, areas = self._other(arm), np.array(list(arm.areas.values()))
        return Estimate(
            arm=arm,
            iqm=bootstrap([arm.values], rng_for(self.seed, "iqm", self.panel.name, arm.name)),
            mean=mean_t(arm.values),
            area=mean_t(areas) if areas.size else None,
            versus=None if reference is None else self.versus(arm, reference),
        )

    def _measures(self, arm: Arm) -> Measures:
        rewards, other = list(arm.rewards.values()), self._other(arm)
        return Measures(
            arm=arm,
            worst=float(arm.values.min()),
            fallen=fallen(arm, self.panel.scale),
            reward=mean_t(rewards) if rewards else None,
            reward_versus=self._between(arm, other, "rewards") if other else None,
            area_versus=self._between(arm, other, "areas") if other else None,
        )

    def _other(self, arm: Arm) -> Arm | None:
        reference = self.panel.reference
        return None if reference is arm else reference

    def _between(self, arm: Arm, other: Arm, values: str) -> Versus | None:
        ours, theirs = getattr(arm, values), getattr(other, values)
        if not ours or not theirs:
            return None
        return between((arm.name, ours), (other.name, theirs))


def _adjusted(pairs: Iterable[Versus | None]) -> dict[str, float]:
    """Holm's p of every pair, by its arm."""
    known = [pair for pair in pairs if pair is not None]
    corrected = holm([pair.p for pair in known])
    return {pair.arm: p for pair, p in zip(known, corrected, strict=True)}


class Cell(NamedTuple):
    """A cell of a map: one memory against another there."""

    found: Finding
    pair: Versus
    p: float
    """After Holm's correction over the cells of the map."""

    @property
    def reading(self) -> str:
        """The verdict, with a question mark where the correction does not keep it."""
        return self.pair.reading(self.p)


def map_cells(panels: Iterable[Finding], name: str, other: str) -> list[Cell]:
    """The cells of a map that have both memories."""
    met = [(one, pair) for one in panels if (pair := one.against(name, other)) is not None]
    corrected = holm([pair.p for _, pair in met])
    return [Cell(one, pair, p) for (one, pair), p in zip(met, corrected, strict=True)]


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

    def slope(self, name: str, other: str) -> Interval | None:
        """How the relative lead of an arm over another changes along the second axis of a map.

        Per seed: the lead, as a share of the other's score, averaged over the first axis and
        regressed on the second; then the mean over seeds.
        """
        leads: dict[int, dict[float, list[float]]] = {}
        for panel in self.study.panels:
            arm, rival = panel.arm(name), panel.arm(other)
            if arm is None or rival is None or len(panel.coordinates) != 2:
                continue
            for seed in arm.scores.keys() & rival.scores.keys():
                lead = arm.scores[seed] / rival.scores[seed] - 1
                leads.setdefault(seed, {}).setdefault(panel.coordinates[1], []).append(lead)
        slopes = [
            np.polyfit(sorted(by), [np.mean(by[at]) for at in sorted(by)], 1)[0]
            for _, by in sorted(leads.items())
            if len(by) > 1
        ]
        return mean_t(slopes) if slopes else None


def find_out(studies: Sequence[Study], *, seed: int = 0) -> list[StudyFindings]:
    """What was found in every study; nothing is computed before it is asked for."""
    return [
        StudyFindings(study, tuple(Finding(panel, seed) for panel in study.panels), seed)
        for study in studies
    ]


def versus(arm: Arm, reference: Arm, *, seed: int, key: str) -> Versus:
    """Compares the final scores of two arms; ``key`` names the generator of the bootstrap."""
    rng = rng_for(seed, "improvement", key, arm.name, reference.name)
    return between((arm.name, arm.scores), (reference.name, reference.scores), rng)


def between(
    first: tuple[str, Mapping[int, float]],
    second: tuple[str, Mapping[int, float]],
    rng: np.random.Generator | None = None,
) -> Versus:
    """Compares two arms, each a name and a number for every seed.

    Without ``rng`` the chance to beat the other is left out.
    """
    (name, ours), (other, theirs) = first, second
    differences = paired_difference(dict(ours), dict(theirs))
    unknown = Interval(float("nan"), float("nan"), float("nan"))
    values = (np.array(list(ours.values())), np.array(list(theirs.values())))
    return Versus(
        arm=name,
        reference=other,
        pairs=len(differences),
        difference=mean_t(differences) if len(differences) else unknown,
        improvement=probability_of_improvement([values], rng) if rng else unknown,
        p=paired_p(differences),
        unpaired=welch(*values),
    )

"""What is compared: studies hold panels, panels hold arms, arms hold the runs of their seeds.

`sorting.studies` makes them of records.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lser.experiments.records import Record
from lser.experiments.studies import REWARD, ScoreScale, StudySpec, mean_scale, scale_of
from lser.report.naming import clean
from lser.report.stats import Float64, area_under_curve
from lser.report.style import name_of


@dataclass(frozen=True, eq=False)
class Arm:
    """The runs of one cell, one per seed, in the order of their seeds."""

    name: str
    memory: str
    runs: tuple[Record, ...]

    @cached_property
    def scores(self) -> dict[int, float]:
        """The final score of every seed."""
        return {run.seed: float((run.final or {})["metric"]) for run in self.runs}

    @property
    def values(self) -> Float64:
        """The final scores as an array (seeds,)."""
        return np.array(list(self.scores.values()))

    @cached_property
    def rewards(self) -> dict[int, float]:
        """The reward per step at the end of every seed: what the agents were trained on."""
        found = {run.seed: _reward(run) for run in self.runs}
        return {seed: reward for seed, reward in found.items() if reward is not None}

    @cached_property
    def areas(self) -> dict[int, float]:
        """The average height of every seed's learning curve."""
        return {run.seed: area_under_curve(*columns(run)) for run in self.runs if run.curve}

    @cached_property
    def curves(self) -> tuple[Float64, Float64]:
        """Sessions (points,) and scores (seeds, points) where all runs have been evaluated."""
        found = [columns(run) for run in self.runs if run.curve]
        return on_one_grid(found) if found else (np.zeros(0), np.zeros((0, 0)))


@dataclass(frozen=True, eq=False)
class Panel:
    """Arms that differ only in what their study compares, and the one they are measured against."""

    spec: StudySpec
    name: str
    """A name for files and anchors, of plain letters only."""
    simulator: str
    setting: str
    metric: str
    arms: tuple[Arm, ...]

    @property
    def study(self) -> str:
        """The study's name, fit to be shown."""
        return clean(self.spec.name)

    @property
    def reference(self) -> Arm | None:
        """The arm the others are compared with, if it was run."""
        uniform = [arm for arm in self.arms if arm.memory == "uniform"]
        return self.arm(self.spec.reference) or (uniform[0] if len(uniform) == 1 else None)

    @property
    def experiment(self) -> dict[str, Any]:
        """The settings of one of its runs, for what all of them share."""
        return self.arms[0].runs[0].experiment

    @property
    def sessions(self) -> int:
        """The length of its runs, 0 where it is not recorded."""
        value = self.experiment.get("sessions")
        return value if isinstance(value, int) else 0

    @property
    def coordinates(self) -> tuple[Any, ...]:
        """Where the panel lies along the axes that its study varies."""
        return tuple(axis.value(self.experiment) for axis in self.spec.panel_by)

    @property
    def scale(self) -> ScoreScale | None:
        """The known scores of random actions and of the best policy, on the platform's metric."""
        return self._scale(self.metric)

    @property
    def reward_scale(self) -> ScoreScale | None:
        """The same for the reward per step."""
        return self._scale(REWARD)

    def _scale(self, metric: str) -> ScoreScale | None:
        """The scale of its world, or the mean of its worlds' where they come with the seeds."""
        if not self.spec.drawn:
            return scale_of(self.experiment, metric)
        runs = {run.seed: run.experiment for run in self.arms[0].runs}
        scales = [scale_of(runs[seed], metric) for seed in sorted(runs)]
        known = [scale for scale in scales if scale is not None]
        return mean_scale(known) if known and len(known) == len(scales) else None

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands behind its runs, the most common first."""
        return commands_of(run for arm in self.arms for run in arm.runs)

    @property
    def seeds(self) -> int:
        """The smallest number of seeds of any arm."""
        return min(len(arm.runs) for arm in self.arms)

    @property
    def place(self) -> str:
        """Where it was measured: the simulator and what else was set."""
        where = name_of(self.simulator)
        return f"{where}, {name_of(self.setting)}" if self.setting else where

    @property
    def title(self) -> str:
        """The place with the length of the runs."""
        length = f"{self.sessions:,} sessions"
        known = not self.sessions or length in self.setting
        return self.place if known else f"{self.place}, {length}"

    def arm(self, name: str) -> Arm | None:
        """The arm called ``name``, or None."""
        return next((arm for arm in self.arms if arm.name == name), None)


@dataclass(frozen=True, eq=False)
class Study:
    """All panels of one study, and the runs that could not be used, each with the reason."""

    spec: StudySpec
    anchor: str
    """A name for files and anchors, of plain letters only."""
    panels: tuple[Panel, ...]
    left_out: tuple[tuple[Record, str], ...]
    strays: tuple[str, ...]
    """Settings in which its runs differ although its spec does not vary them."""

    @property
    def name(self) -> str:
        """The study's name as its runs have it."""
        return self.spec.name

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands behind its runs, the most common first."""
        return commands_of(run for p in self.panels for arm in p.arms for run in arm.runs)


def commands_of(runs: Iterable[Record]) -> tuple[str, ...]:
    """The commands behind `runs`, the most common first."""
    found = Counter(clean(str(run.meta["command"])) for run in runs if run.meta.get("command"))
    return tuple(command for command, _ in found.most_common())


def columns(run: Record) -> tuple[Float64, Float64]:
    """Sessions and scores of a run's curve, the last of several lines at the same session."""
    lines = {line["sessions"]: line["metric"] for line in run.curve}
    at = sorted(lines)
    return np.array(at, dtype=np.float64), np.array([lines[s] for s in at], dtype=np.float64)


def on_one_grid(found: Sequence[tuple[Float64, Float64]]) -> tuple[Float64, Float64]:
    """Curves (sessions, values) at common sessions: these (points,), and values (runs, points)."""
    start, end = max(at[0] for at, _ in found), min(at[-1] for at, _ in found)
    coarsest = min((at for at, _ in found), key=len)
    grid = np.union1d(coarsest[(coarsest >= start) & (coarsest <= end)], [start, end])
    return grid, np.array([np.interp(grid, at, values) for at, values in found])


def rng_for(seed: int, *names: str) -> np.random.Generator:
    """A generator of its own for each estimate: adding runs elsewhere leaves it as it was."""
    return np.random.default_rng([seed, *(zlib.crc32(name.encode()) for name in names)])


def _reward(run: Record) -> float | None:
    final = run.final or {}
    reward, length = final.get("reward"), final.get("length")
    if not isinstance(reward, int | float) or not isinstance(length, int | float) or length <= 0:
        return None
    return float(reward) / float(length)

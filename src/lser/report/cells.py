"""Runs sorted into what is compared: studies hold panels, panels hold arms, arms hold seeds."""

import math
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lser.experiments.records import Record, ordered
from lser.report.stats import Float64, area_under_curve

MEMORIES = (
    *("lser", "lser-p", "lser-s", "per", "der", "der-uniform", "aer", "ser"),
    *("her", "her-balanced", "reward-top", "random-code", "uniform"),
)
STUDIES = (
    *("comparison", "running-time", "epsilon", "ablation", "hyperplanes", "bazaar-map"),
    *("horizon", "agents", "demo"),
)
SIMULATORS = (
    *("virtual-taobao", "long-term-satisfaction", "interest-evolution", "recogym", "bazaar"),
)
# The arm that the others of a study are measured against; uniform where nothing is said.
REFERENCES = {"epsilon": "greedy 0", "ablation": "lser", "hyperplanes": "10 bits"}
# Studies whose panels are told apart by one entry of the experiment.
SETTINGS = {"horizon": "horizon", "agents": "agent", "bazaar-map": "simulator"}


@dataclass(frozen=True)
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
    def areas(self) -> dict[int, float]:
        """The average height of every seed's learning curve."""
        return {
            run.seed: area_under_curve(*_columns(run)) for run in self.runs if len(run.curve) > 0
        }

    @cached_property
    def curves(self) -> tuple[Float64, Float64]:
        """Sessions (points,) and scores (seeds, points) where all runs have been evaluated."""
        columns = [_columns(run) for run in self.runs if run.curve]
        if not columns:
            return np.zeros(0), np.zeros((0, 0))
        start, end = max(at[0] for at, _ in columns), min(at[-1] for at, _ in columns)
        coarsest = min((at for at, _ in columns), key=len)
        grid = np.union1d(coarsest[(coarsest >= start) & (coarsest <= end)], [start, end])
        return grid, np.array([np.interp(grid, at, scores) for at, scores in columns])


@dataclass(frozen=True)
class Panel:
    """Arms that differ in one thing only, and the one they are measured against."""

    study: str
    simulator: str
    setting: str
    metric: str
    arms: tuple[Arm, ...]

    @property
    def reference(self) -> Arm | None:
        """The arm the others are compared with, if it was run."""
        wanted = REFERENCES.get(self.study, "uniform")
        uniform = next((arm for arm in self.arms if arm.memory == "uniform"), None)
        return self.arm(wanted) or uniform

    @property
    def name(self) -> str:
        """A name for files and anchors."""
        text = " ".join((self.study or "runs", self.simulator, self.setting))
        return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands behind its runs, the most common first."""
        return commands_of(run for arm in self.arms for run in arm.runs)

    @property
    def seeds(self) -> int:
        """The smallest number of seeds of any arm."""
        return min(len(arm.runs) for arm in self.arms)

    def arm(self, name: str) -> Arm | None:
        """The arm called ``name``, or None."""
        return next((arm for arm in self.arms if arm.name == name), None)


@dataclass(frozen=True)
class Study:
    """All panels of one study and the runs that could not be used, each with the reason."""

    name: str
    panels: tuple[Panel, ...]
    left_out: tuple[tuple[Record, str], ...]
    commands: tuple[str, ...]


def studies(records: Iterable[Record]) -> list[Study]:
    """Sorts ``records`` into studies; unfinished, failed and repeated runs are left out."""
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in ordered(records):
        groups[record.study].append(record)
    return [_study(name, groups[name]) for name in sorted(groups, key=_rank(STUDIES))]


def commands_of(runs: Iterable[Record]) -> tuple[str, ...]:
    """The commands behind `runs`, the most common first."""
    found = Counter(str(run.meta["command"]) for run in runs if run.meta.get("command"))
    return tuple(command for command, _ in found.most_common())


def rng_for(seed: int, *names: str) -> np.random.Generator:
    """A generator of its own for each estimate: adding runs elsewhere leaves it as it was."""
    return np.random.default_rng([seed, *(zlib.crc32(name.encode()) for name in names)])


def _study(name: str, records: Sequence[Record]) -> Study:
    usable, left_out = _split(records)
    budgets: dict[tuple[str, str], set[Any]] = defaultdict(set)
    for record in usable:
        budgets[_place(record)].add(record.experiment.get("sessions"))
    panels: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in usable:
        simulator, setting = _place(record)
        if len(budgets[simulator, setting]) > 1:  # runs of unlike length are never pooled
            length = f"{record.experiment.get('sessions'):,} sessions"
            setting = f"{setting}, {length}" if setting else length
        panels[simulator, setting].append(record)
    order = sorted(panels, key=lambda key: (_rank(SIMULATORS)(key[0]), natural(key[1])))
    commands = commands_of(usable)
    return Study(
        name=name,
        panels=tuple(_panel(name, *key, panels[key]) for key in order),
        left_out=tuple(left_out),
        commands=commands,
    )


def _panel(study: str, simulator: str, setting: str, records: Sequence[Record]) -> Panel:
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[_arm_name(record)].append(record)
    arms = tuple(
        Arm(name, groups[name][0].memory, tuple(sorted(groups[name], key=lambda r: r.seed)))
        for name in sorted(groups, key=_rank(MEMORIES))
    )
    return Panel(study, simulator, setting, records[0].metric, arms)


def _split(records: Sequence[Record]) -> tuple[list[Record], list[tuple[Record, str]]]:
    usable: dict[tuple[Any, ...], Record] = {}
    left_out = []
    for record in records:
        key = (*_place(record), _arm_name(record), record.experiment.get("sessions"), record.seed)
        if record.status == "failed":
            error = str(record.meta.get("error") or "no traceback").strip().splitlines()[-1]
            left_out.append((record, f"failed: {error}"))
        elif record.status != "done" or record.final is None:
            left_out.append((record, "not finished"))
        elif not math.isfinite(record.final["metric"]):
            left_out.append((record, "its final score is not a finite number"))
        elif key in usable:
            left_out.append((record, "repeats the seed of another run"))
        else:
            usable[key] = record
    return list(usable.values()), left_out


def _place(record: Record) -> tuple[str, str]:
    """The panel of a record: its simulator and what else its study varies between panels."""
    experiment, which = record.experiment, SETTINGS.get(record.study, "")
    if which == "simulator":
        sparsity, dependence = map_coordinates(record)
        setting = f"sparsity {sparsity:g}, state dependence {dependence:g}"
    elif which == "horizon":
        setting = f"{experiment['horizon']}, discount {experiment['agent']['discount']:g}"
    elif which:
        value = experiment.get(which, "")
        setting = str(value["name"] if isinstance(value, dict) else value)
    elif record.study == "ablation" and "capacity" in experiment:
        setting = f"capacity {experiment['capacity']:,}"
    else:
        setting = record.label.partition(" @ ")[2]
    return record.simulator, setting


def map_coordinates(record: Record) -> tuple[float, float]:
    """Where a run lies on the Bazaar map: its sparsity and its state dependence."""
    params = record.experiment["simulator"]
    return float(params["sparsity"]), float(params["state_dependence"])


def _columns(run: Record) -> tuple[Float64, Float64]:
    """Sessions and scores of a run's curve, the last of several lines at the same session."""
    lines = {line["sessions"]: line["metric"] for line in run.curve}
    at = sorted(lines)
    return np.array(at, dtype=np.float64), np.array([lines[s] for s in at], dtype=np.float64)


def _arm_name(record: Record) -> str:
    if record.study in SETTINGS:
        return record.memory
    # No comma inside a name: sentences list names with commas between them.
    return record.label.partition(" @ ")[0].replace(", ", " with ")


def natural(text: str) -> tuple[tuple[int, float, str], ...]:
    """A sort key that puts 9 before 10 inside text."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text.replace(",", ""))
    return tuple((0, float(p), "") if p[:1].isdigit() else (1, 0.0, p) for p in parts if p)


def _rank(known: Sequence[str]) -> Any:
    """A sort key: the known names in their order, then the others by natural order."""
    return lambda name: (known.index(name) if name in known else len(known), natural(name))

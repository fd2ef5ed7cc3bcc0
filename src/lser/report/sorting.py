"""Records sorted into studies, panels and arms.

A panel is everything of an experiment but what its study compares; an arm is all of its settings.
Runs that differ in anything else are never pooled: they stand in a panel of their own, named after
what sets it apart.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from lser.experiments.experiment import completed
from lser.experiments.records import Record, ordered
from lser.experiments.studies import StudySpec, order_of, spec_for
from lser.report.naming import clean, natural, slug, unique
from lser.report.panels import Arm, Panel, Study
from lser.report.settings import apart, canonical, flat
from lser.report.style import MEMORIES, SIMULATORS

# What is no setting of a run, and where it ran rather than what.
_NOT_SETTINGS = ("seed", "study", "label", "metric", "agent.device")


def studies(records: Iterable[Record]) -> list[Study]:
    """Sorts ``records`` into studies; unfinished, failed and damaged runs are left out.

    Raises:
        ValueError: two records have the same settings and seed; both are named.
    """
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in ordered(records):
        groups[record.study].append(record)
    names = sorted(groups, key=lambda name: (order_of(name), natural(name)))
    taken = {"content", "first", "title", "summary", "notes", "overview"}  # the page's own anchors
    found = [_study(spec_for(name), groups[name], taken) for name in names]
    files: set[str] = set()
    return [replace(study, panels=_named(study.panels, files)) for study in found]


def _study(spec: StudySpec, records: Sequence[Record], taken: set[str]) -> Study:
    usable, left_out = _split(records)
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in usable:
        groups[canonical(_shared(spec, record))].append(record)
    runs = list(groups.values())
    places = [(group[0].simulator, spec.setting(group[0].experiment)) for group in runs]
    more, strays = apart(places, [_shared(spec, group[0]) for group in runs])
    panels = [
        _panel(spec, simulator, ", ".join(filter(None, (setting, extra))), group)
        for (simulator, setting), extra, group in zip(places, more, runs, strict=True)
    ]
    panels.sort(key=lambda p: (_rank(SIMULATORS, p.simulator), natural(p.setting)))
    anchor = unique(slug(spec.name or "runs"), taken)
    return Study(spec, anchor, tuple(panels), tuple(left_out), tuple(strays))


def _panel(spec: StudySpec, simulator: str, setting: str, records: Sequence[Record]) -> Panel:
    groups: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        label = "" if spec.arm_by else record.label  # a label of one's own tells arms apart too
        groups[label, canonical(_compared(spec, record))].append(record)
    runs = list(groups.values())
    names = [clean(spec.arm_name(run[0].experiment, run[0].label)) for run in runs]
    more, _ = apart([(name,) for name in names], [_compared(spec, run[0]) for run in runs])
    taken: set[str] = set()
    arms = [
        _arm(unique(f"{name} ({extra})" if extra else name, taken), group)
        for name, extra, group in zip(names, more, runs, strict=True)
    ]
    arms.sort(key=lambda arm: _rank(MEMORIES, arm.name))
    return Panel(spec, "", clean(simulator), clean(setting), clean(records[0].metric), tuple(arms))


def _arm(name: str, records: Sequence[Record]) -> Arm:
    runs: dict[int, Record] = {}
    for record in records:
        if record.seed in runs:
            raise ValueError(
                f"two records of one seed: {runs[record.seed].where} and {record.where} are both "
                f"seed {record.seed} of {name!r}, with equal settings; keep one of them"
            )
        runs[record.seed] = record
    return Arm(name, clean(records[0].memory), tuple(runs[seed] for seed in sorted(runs)))


def _named(panels: Sequence[Panel], files: set[str]) -> tuple[Panel, ...]:
    """The panels with names for files that no other panel has."""
    texts = [" ".join((panel.study or "runs", panel.simulator, panel.setting)) for panel in panels]
    return tuple(
        replace(panel, name=unique(slug(text), files))
        for panel, text in zip(panels, texts, strict=True)
    )


def _shared(spec: StudySpec, record: Record) -> dict[str, Any]:
    """Every setting that all arms of a panel have in common, by its path."""
    apart = (*spec.compared, *spec.drawn)
    return {path: v for path, v in _settings(record).items() if not _within(path, apart)}


def _compared(spec: StudySpec, record: Record) -> dict[str, Any]:
    """Every setting in which the arms of a panel may differ, by its path."""
    return {path: v for path, v in _settings(record).items() if _within(path, spec.compared)}


def _settings(record: Record) -> dict[str, Any]:
    """Every setting by its path; one that is newer than the record has its default."""
    settings = flat(completed(record.experiment))
    return {path: v for path, v in settings.items() if not _within(path, _NOT_SETTINGS)}


def _within(path: str, branches: Sequence[str]) -> bool:
    return any(path == branch or path.startswith(f"{branch}.") for branch in branches)


def _split(records: Sequence[Record]) -> tuple[list[Record], list[tuple[Record, str]]]:
    usable, left_out = [], []
    for record in records:
        why = _unusable(record)
        if why:
            left_out.append((record, clean(why, 300)))
        else:
            usable.append(record)
    return usable, left_out


def _unusable(record: Record) -> str:
    if record.status in ("failed", "damaged"):
        lines = str(record.meta.get("error") or "no traceback").strip().splitlines()
        return f"{record.status}: {lines[-1] if lines else 'no traceback'}"
    if record.status != "done" or record.final is None:
        return "not finished"
    if not math.isfinite(record.final["metric"]):
        return "its final score is not a finite number"
    return ""


def _rank(known: Sequence[str], name: str) -> tuple[Any, ...]:
    """A sort key: the known names in their order, then the others by natural order."""
    return (known.index(name) if name in known else len(known), natural(name))

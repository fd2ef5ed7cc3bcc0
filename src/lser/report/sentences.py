"""Sentences computed from the data; "clearly" only where an interval excludes zero."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from lser.experiments.records import Record
from lser.report.findings import FEW_SEEDS, Finding, StudyFindings, Versus, map_cells
from lser.report.measures import OWN, over_the_bound
from lser.report.stats import Interval, iqm
from lser.report.style import count, interval, listing, name_of, number, percent


def compare(found: Versus) -> str:
    """One arm against another, with the difference and how sure it is."""
    arm, other = name_of(found.arm), name_of(found.reference)
    if found.pairs < 2:
        return f"{count(found.pairs, 'seed')} cannot tell {arm} from {other}"
    shown = f"{interval(found.difference, sign=True)} over {found.pairs} paired seeds"
    match found.verdict:
        case "above":
            return f"{arm} ends clearly above {other} ({shown})"
        case "below":
            return f"{arm} ends clearly below {other} ({shown})"
        case _:
            return f"{arm} and {other} are not separated ({shown})"


def best_against_reference(found: Finding) -> str:
    """LSER, or else the highest arm, against the reference."""
    panel = found.panel
    reference = panel.reference
    others = [arm for arm in panel.arms if arm is not reference]
    if reference is None or not others:
        top = max(panel.arms, key=lambda arm: float(iqm(arm.values)))
        score = number(float(iqm(top.values)))
        if len(panel.arms) == 1:
            return f"{name_of(top.name)} ends at {score}"
        return f"{name_of(top.name)} has the highest final score, {score}"
    arm = panel.arm("lser") if reference.name != "lser" else None
    arm = arm or max(others, key=lambda other: float(other.values.mean()))
    return compare(found.versus(arm, reference))


def curves(found: Finding) -> str:
    """What the learning curves of a panel show."""
    text = best_against_reference(found)
    heights = {row.arm.name: row.area.estimate for row in found.estimates if row.area}
    if len(heights) < 2:
        return f"{text}."
    top = max(heights, key=lambda name: heights[name])
    return (
        f"{text}; averaged over the whole training {name_of(top)} is the highest "
        f"({number(heights[top])})."
    )


def values(found: Finding) -> str:
    """Where critics' values of their own actions end; nothing where no run kept them."""
    ends = {
        arm.name: [told[-1][1] for run in arm.runs if (told := over_the_bound(run, OWN))]
        for arm in found.panel.arms
    }
    said = listing(
        [f"{name_of(a)} {number(float(np.median(e)), digits=2)}" for a, e in ends.items() if e]
    )
    if not said:
        return ""
    return (
        "What critics expect of their own actions, over the most that rewards allow (dashed: 1); "
        f"thin: every run, thick: the median one. At the end: {said}."
    )


def lines(found: Finding) -> str:
    """What the straight lines of a figure stand for."""
    scale = found.panel.scale
    if scale is None:
        return ""
    constant = f"dash-dotted: {scale.constant.name}; " if scale.constant else ""
    others = listing([f"{one.name} ({number(one.score)})" for one in scale.others])
    fine = f"thin: {others}; " if others else ""
    return f"Dotted: {scale.random.name}; {fine}{constant}dashed: {scale.best.name}."


def forest(found: Finding) -> str:
    """Which arms of a panel differ from its reference, corrected for their number."""
    reference = found.panel.reference
    if reference is None:
        return f"{best_against_reference(found)}."
    against = name_of(reference.name)
    groups = (
        (f"clearly above {against}", "above"),
        (f"clearly below {against}", "below"),
        (f"above {against}, but not after Holm's correction", "above?"),
        (f"below {against}, but not after Holm's correction", "below?"),
        (f"not separated from {against}", "open"),
        ("with too few seeds to say", "unknown"),
    )
    pairs = [row.versus for row in found.estimates if row.versus is not None]
    parts = [
        f"{words}: {listing(names)}"
        for words, reading in groups
        if (names := [name_of(pair.arm) for pair in pairs if found.reading(pair) == reading])
    ]
    return sentence("; ".join(parts)) if parts else f"Only {against} was run."


def sentence(text: str) -> str:
    """Words of ours as a sentence: a capital first, a full stop last."""
    return f"{text[:1].upper()}{text[1:]}."


def spread(found: Finding) -> str:
    """How far the runs of an arm lie apart."""
    widest = max(found.panel.arms, key=lambda arm: float(np.ptp(arm.values)))
    low, high = float(widest.values.min()), float(widest.values.max())
    if len(widest.values) == 1:
        return "Each mark is one run."
    text = (
        f"Each mark is one run; the runs of {name_of(widest.name)} differ most, from {number(low)} "
        f"to {number(high)}"
    )
    focus = found.panel.arm("lser")
    if focus is not None and focus is not widest:
        low, high = float(focus.values.min()), float(focus.values.max())
        text += f", those of LSER lie between {number(low)} and {number(high)}"
    return f"{text}."


def improvement(study: StudyFindings, rows: Sequence[tuple[str, Interval]]) -> str:
    """Which memories beat the reference over all settings together."""
    sure = [name_of(name) for name, found in rows if found.low > 0.5]
    under = [name_of(name) for name, found in rows if found.high < 0.5]
    places = count(len(study.panels), "setting")
    text = (
        f"Over {places}, the interval of {listing(sure)} lies above one half"
        if sure
        else f"Over {places}, no memory's interval lies above one half"
    )
    return f"{text}; below it lies that of {listing(under)}." if under else f"{text}."


def running_time(found: Finding) -> str:
    """What replay costs, and how a run with LSER compares with uniform."""
    means = found.times
    shares = {name: mean["replay"] / mean["wall"] for name, mean in means.items()}
    if not shares:
        return "No times were recorded."
    least, most = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    text = (
        f"Replay takes {100 * shares[least]:.1f}\u00a0% ({name_of(least)}) to "
        f"{100 * shares[most]:.1f}\u00a0% ({name_of(most)}) of a run's wall time"
    )
    cost = {n: 1e6 * m["replay"] / m["updates"] for n, m in means.items() if m["updates"]}
    if "lser" in cost and "uniform" in cost:
        runs = max(len(arm.runs) for arm in found.panel.arms)
        text += (
            f"; per update {cost['lser']:.0f} µs with LSER, {cost['uniform']:.0f} µs with uniform "
            f"({count(runs, 'run')} each)"
        )
    return f"{text}."


def on_the_map(study: StudyFindings, against: str) -> str:
    """Where on a map LSER ends above another memory."""
    found = map_cells(study.panels, "lser", against)
    verdicts = [cell.pair.verdict for cell in found]
    kept = sum(cell.reading in ("above", "below") for cell in found)
    most = max(found, key=lambda cell: cell.pair.difference.estimate)
    return (
        f"LSER ends clearly above {name_of(against)} in {verdicts.count('above')} of {len(found)} "
        f"cells and clearly below in {verdicts.count('below')} ({kept} of them after Holm's "
        f"correction); the largest difference is {interval(most.pair.difference, sign=True)} "
        f"at {most.found.panel.setting}.{_slope(study, against)}"
    )


def _slope(study: StudyFindings, against: str) -> str:
    """How the lead changes along the map's second axis, where it clearly does."""
    slope = study.slope("lser", against)
    if slope is None or not slope.excludes_zero:
        return ""
    axis = study.study.spec.panel_by[1].name
    way = "rises" if slope.estimate > 0 else "falls"
    return (
        f" Its lead over {name_of(against)}, as a share of that one's score, {way} with {axis}: "
        f"{interval(slope, sign=True)} from 0 to 1, over {count(_seeds(study), 'seed')}."
    )


def _seeds(study: StudyFindings) -> int:
    return max(found.panel.seeds for found in study.panels)


def unlearned(found: Finding) -> str:
    """Said where no arm ends clearly above its own untrained policy: nothing was compared."""
    if not nothing_learned(found.learned):
        return ""
    best = max(found.learned.values(), key=lambda gain: gain.estimate)
    return (
        f"no arm ends clearly above its own untrained policy in {name_of(found.panel.metric)} (the "
        f"best by {interval(best, sign=True, digits=4)}), so memories cannot be compared on it here"
    )


def nothing_learned(gains: Mapping[str, Interval]) -> bool:
    """Whether no arm of several seeds ended clearly above where it began."""
    known = [gain for gain in gains.values() if not math.isnan(gain.low)]
    return bool(known) and not any(gain.low > 0 for gain in known)


def no_control(found: Finding) -> str:
    """Said where random-code's buckets hold less than a batch: then it keeps no reward order."""
    arm = found.panel.arm("random-code")
    batch = found.panel.experiment.get("batch_size")
    sizes = [_bucket_size(run) for run in arm.runs] if arm else []
    known = [size for size in sizes if size is not None]
    if not known or not isinstance(batch, int) or max(known) >= batch:
        return ""
    return (
        f"random-code is no control here: its buckets hold {number(max(known), digits=0)} "
        f"transitions in the middle and a batch {batch}, so it replays whole buckets, in no order "
        "of reward"
    )


def _bucket_size(run: Record) -> float | None:
    memory = (run.final or {}).get("memory")
    size = memory.get("bucket_size_median") if isinstance(memory, dict) else None
    return float(size) if isinstance(size, int | float) else None


def map_rivals(study: StudyFindings) -> list[str]:
    """The memories that LSER can be compared with on a map."""
    panels = [found.panel for found in study.panels]
    names = {arm.name for panel in panels if panel.arm("lser") for arm in panel.arms}
    return [name for name in ("uniform", "reward-top") if name in names]


def trend(found: Finding) -> str:
    """Where along an ordered setting the score is highest."""
    top = max(found.estimates, key=lambda row: row.mean.estimate)
    text = f"The mean final score is highest at {top.arm.name} ({interval(top.mean)})"
    overlapping = [
        row.arm.name
        for row in found.estimates
        if row is not top and found.versus(top.arm, row.arm).verdict in ("open", "unknown")
    ]
    return f"{text}; not separated from it: {listing(overlapping)}." if overlapping else f"{text}."


def caution(found: Finding) -> str:
    """What to keep in mind when there are few seeds."""
    if found.panel.seeds >= FEW_SEEDS:
        return ""
    if found.panel.seeds == 1:
        return "One seed has no interval and no verdict."
    return (
        f"With {count(found.panel.seeds, 'seed')} the bootstrap bands are narrower than they "
        "should be; the verdicts use the paired t-interval."
    )


def standing(found: Finding) -> str:
    """LSER against the reference of a panel: both levels, the difference, and how sure it is."""
    panel = found.panel
    arm, reference = panel.arm("lser"), panel.reference
    if arm is None or reference is None or arm is reference:
        return f"{panel.title}: {best_against_reference(found)}."
    pair = found.versus(arm, reference)
    levels = f"{number(float(arm.values.mean()))} against {number(float(reference.values.mean()))}"
    return (
        f"{panel.title}: {compare(pair)}; mean {name_of(panel.metric)} {levels}, LSER the higher "
        f"in {percent(pair.improvement.estimate)} of all pairs of runs.{trained(found)}"
    )


def trained(found: Finding) -> str:
    """What the objective that agents were trained on says of LSER, where it says something else."""
    arm, reference = found.panel.arm("lser"), found.panel.reference
    if arm is None or reference is None or arm is reference:
        return ""
    pair = found.versus(arm, reference)
    measured = found.measured(pair.arm)
    if measured is None or measured.reward_versus is None or measured.reward is None:
        return ""
    if measured.reward_versus.verdict in (pair.verdict, "open", "unknown"):
        return ""
    text = f" On what the agents are trained on, reward per step, {compare(measured.reward_versus)}"
    scale = found.panel.reward_scale
    if scale is not None and measured.reward.high < scale.random.score:
        text += f", below {scale.random.name} ({number(scale.random.score)})"
    return f"{text}."

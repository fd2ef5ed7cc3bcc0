"""Sentences computed from the data; "clearly" only where an interval excludes zero."""

from collections.abc import Sequence

import numpy as np

from lser.report.findings import FEW_SEEDS, Finding, StudyFindings, Versus
from lser.report.stats import Interval, iqm, performance_profile
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
        return f"{name_of(top.name)} has the highest final score, {number(float(iqm(top.values)))}"
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


def forest(found: Finding) -> str:
    """Which arms of a panel differ from its reference."""
    reference = found.panel.reference
    if reference is None:
        return f"{best_against_reference(found)}."
    against = name_of(reference.name)
    groups = (
        ("Clearly above", "clearly above", "above"),
        ("Clearly below", "clearly below", "below"),
        ("Not separated from", "not separated from", "open"),
    )
    pairs = [row.versus for row in found.estimates if row.versus is not None]
    parts: list[str] = []
    for first, later, verdict in groups:
        names = [name_of(pair.arm) for pair in pairs if pair.verdict == verdict]
        if names:
            parts.append(f"{later if parts else first} {against}: {listing(names)}")
    few = [name_of(pair.arm) for pair in pairs if pair.verdict == "unknown"]
    if few:
        parts.append(f"{'with' if parts else 'With'} too few seeds to say: {listing(few)}")
    return f"{'; '.join(parts)}." if parts else f"Only {against} was run."


def spread(found: Finding) -> str:
    """How far the runs of an arm lie apart."""
    widest = max(found.panel.arms, key=lambda arm: float(np.ptp(arm.values)))
    low, high = float(widest.values.min()), float(widest.values.max())
    text = (
        f"Each mark is one run; the runs of {name_of(widest.name)} differ most, from {number(low)} "
        f"to {number(high)}"
    )
    focus = found.panel.arm("lser")
    if focus is not None and focus is not widest:
        low, high = float(focus.values.min()), float(focus.values.max())
        text += f", those of LSER lie between {number(low)} and {number(high)}"
    return f"{text}."


def profile(found: Finding) -> str:
    """The share of runs above one telling threshold."""
    panel = found.panel
    everything = np.concatenate([arm.values for arm in panel.arms])
    threshold = 0.9 if panel.metric == "ctr" else round(float(np.median(everything)), 2)
    shares = [
        (name_of(arm.name), float(performance_profile(arm.values, [threshold])[0]))
        for arm in panel.arms
    ]
    ranked = sorted(shares, key=lambda pair: -pair[1])
    best = [f"{percent(share)} of the runs with {name}" for name, share in ranked[:2]]
    rest = ranked[2:]
    if not rest:
        return f"Above {threshold:g} end {listing(best)}."
    most = max(share for _, share in rest)
    others = f"at most {percent(most)}" if most else "none"
    return f"Above {threshold:g} end {', '.join(best)}, and {others} with any other memory."


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
    if "lser" in means and "uniform" in means:
        ratio = means["lser"]["wall"] / means["uniform"]["wall"]
        text += f"; a run with LSER takes {ratio:.2f} times as long as one with uniform"
    return f"{text}."


def on_the_map(study: StudyFindings, against: str) -> str:
    """Where on a map LSER ends above another memory."""
    found = [
        (one.panel.setting, pair)
        for one in study.panels
        if (pair := one.against("lser", against)) is not None
    ]
    verdicts = [pair.verdict for _, pair in found]
    setting, largest = max(found, key=lambda item: item[1].difference.estimate)
    return (
        f"LSER ends clearly above {name_of(against)} in {verdicts.count('above')} of {len(found)} "
        f"cells and clearly below in {verdicts.count('below')}; the largest difference is "
        f"{interval(largest.difference, sign=True)} at {setting}."
    )


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
        f"in {percent(pair.improvement.estimate)} of all pairs of runs."
    )

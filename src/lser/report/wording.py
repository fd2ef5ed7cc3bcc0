"""Sentences computed from the data; "clearly" only where an interval excludes zero."""

import numpy as np

from lser.report.cells import Panel, Study
from lser.report.estimates import FEW_SEEDS, Versus, estimates, versus
from lser.report.stats import Interval, has_scipy, iqm, performance_profile
from lser.report.style import count, interval, listing, name_of, number, percent
from lser.report.tables import mean_times


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


def best_against_reference(panel: Panel, *, seed: int) -> str:
    """LSER, or else the highest arm, against the reference."""
    reference = panel.reference
    others = [arm for arm in panel.arms if arm is not reference]
    if reference is None or not others:
        top = max(panel.arms, key=lambda arm: float(iqm(arm.values)))
        return f"{name_of(top.name)} has the highest final score, {number(float(iqm(top.values)))}"
    arm = panel.arm("lser") if reference.name != "lser" else None
    arm = arm or max(others, key=lambda other: float(other.values.mean()))
    return compare(versus(arm, reference, seed=seed, key=panel.name))


def curves(panel: Panel, *, seed: int) -> str:
    """What the learning curves of a panel show."""
    text = best_against_reference(panel, seed=seed)
    text = text[0].upper() + text[1:]
    heights = {
        arm.name: float(np.mean(list(arm.areas.values()))) for arm in panel.arms if arm.areas
    }
    if len(heights) < 2:
        return f"{text}."
    top = max(heights, key=lambda name: heights[name])
    return (
        f"{text}; averaged over the whole training {name_of(top)} is the highest "
        f"({number(heights[top])})."
    )


def forest(panel: Panel, *, seed: int) -> str:
    """Which arms of a panel differ from its reference."""
    if panel.reference is None:
        return f"{best_against_reference(panel, seed=seed)}."
    against = name_of(panel.reference.name)
    found = [e.versus for e in estimates(panel, seed=seed) if e.versus is not None]
    groups = (
        (f"Clearly above {against}", "above"),
        (f"Clearly below {against}", "below"),
        (f"Not separated from {against}", "open"),
        ("With too few seeds to say", "unknown"),
    )
    parts = [
        f"{words}: {listing([name_of(v.arm) for v in found if v.verdict == verdict])}"
        for words, verdict in groups
        if any(v.verdict == verdict for v in found)
    ]
    return f"{'; '.join([parts[0], *(p[0].lower() + p[1:] for p in parts[1:])])}." if parts else (
        f"Only {against} was run."
    )  # fmt: skip


def spread(panel: Panel) -> str:
    """How far the runs of an arm lie apart."""
    widest = max(panel.arms, key=lambda arm: float(np.ptp(arm.values)))
    low, high = float(widest.values.min()), float(widest.values.max())
    text = (
        f"Each mark is one run; the runs of {name_of(widest.name)} differ most, from {number(low)} "
        f"to {number(high)}"
    )
    focus = panel.arm("lser")
    if focus is not None and focus is not widest:
        low, high = float(focus.values.min()), float(focus.values.max())
        text += f", those of LSER lie between {number(low)} and {number(high)}"
    return f"{text}."


def profile(panel: Panel) -> str:
    """The share of runs above one telling threshold."""
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


def improvement(study: Study, rows: list[tuple[str, Interval]]) -> str:
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


def running_time(panel: Panel) -> str:
    """What replay costs, and how a run with LSER compares with uniform."""
    means = {arm.name: mean_times(panel, arm.name) for arm in panel.arms}
    shares = {name: mean["replay"] / mean["wall"] for name, mean in means.items() if mean}
    if not shares:
        return "No times were recorded."
    least, most = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    text = (
        f"Replay takes {100 * shares[least]:.1f} % ({name_of(least)}) to "
        f"{100 * shares[most]:.1f} % ({name_of(most)}) of a run's wall time"
    )
    if means.get("lser") and means.get("uniform"):
        ratio = means["lser"]["wall"] / means["uniform"]["wall"]
        text += f"; a run with LSER takes {ratio:.2f} times as long as one with uniform"
    return f"{text}."


def bazaar_map(study: Study, against: str, *, seed: int) -> str:
    """Where on the map LSER ends above another memory."""
    found = [
        (panel.setting, versus(arm, other, seed=seed, key=panel.name))
        for panel in study.panels
        if (arm := panel.arm("lser")) is not None and (other := panel.arm(against)) is not None
    ]
    verdicts = [cell.verdict for _, cell in found]
    setting, largest = max(found, key=lambda pair: pair[1].difference.estimate)
    return (
        f"LSER ends clearly above {name_of(against)} in {verdicts.count('above')} of {len(found)} "
        f"cells and clearly below in {verdicts.count('below')}; the largest difference is "
        f"{interval(largest.difference, sign=True)} at {setting}."
    )


def map_rivals(study: Study) -> list[str]:
    """The memories that LSER can be compared with on the map."""
    names = {arm.name for panel in study.panels if panel.arm("lser") for arm in panel.arms}
    return [name for name in ("uniform", "reward-top") if name in names]


def trend(panel: Panel, *, seed: int) -> str:
    """Where along an ordered setting the score is highest."""
    found = estimates(panel, seed=seed)
    top = max(found, key=lambda e: e.mean.estimate)
    text = f"The mean final score is highest at {top.arm.name} ({interval(top.mean)})"
    overlapping = [
        e.arm.name
        for e in found
        if e is not top
        and versus(top.arm, e.arm, seed=seed, key=panel.name).verdict in ("open", "unknown")
    ]
    return f"{text}; not separated from it: {listing(overlapping)}." if overlapping else f"{text}."


def caution(panel: Panel) -> str:
    """What to keep in mind when there are few seeds."""
    if panel.seeds >= FEW_SEEDS:
        return ""
    return (
        f"With {count(panel.seeds, 'seed')} the bootstrap bands are narrower than they should be"
        + ("; the verdicts use the paired t-interval." if has_scipy() else ".")
    )

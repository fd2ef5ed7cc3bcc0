"""The cure at the paper's length: the figures of K in plan.md, from the committed records.

``python results/cure.py`` prints them.
"""

import gzip
import json
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from committed import RESULTS, by_arm
from delayed import Gap, gap, verdict
from scored import Scored, row, scored
from standing import chance, with_holm

from lser.report.stats import Interval, iqm, mean_t
from lser.report.style import interval, listing, name_of

FILE, PRINTED = RESULTS / "cure_virtual_taobao.jsonl.gz", RESULTS / "cure_as_printed.json.gz"
CURED = " with the cure"
OURS, REFERENCE, TOP = (f"{memory}{CURED}" for memory in ("lser", "uniform", "reward-top"))
FALL, LONG = 0.1, 5_000  # below the best so far, for so many sessions
MISSED = "**missed**"
LEAST_IQM, LOW, MOST_LOW = 0.95, 0.8, 1  # the targets: of all, and how many may end how low


@cache
def runs() -> Scored:
    """The runs with the cure, by arm."""
    found = by_arm(FILE)
    return scored({arm: found[arm] for arm in (OURS, TOP, REFERENCE)})


def longest_fall(curve: Sequence[Any]) -> float:
    """The most sessions in a row that a run stayed more than `FALL` below its best so far."""
    best, since, longest = 0.0, None, 0.0
    for point in curve:
        best = max(best, point["metric"])
        if point["metric"] >= best - FALL:
            since = None
            continue
        since = point["sessions"] if since is None else since
        longest = max(longest, point["sessions"] - since)
    return longest


def falls(arm: str) -> dict[int, float]:
    """The longest fall of every run."""
    return {seed: longest_fall(run.curve) for seed, run in runs().runs[arm].items()}


def primary() -> Interval:
    """The probability that a run of LSER ends above one of uniform."""
    return runs().improvement(OURS, REFERENCE)


def secondary() -> dict[str, tuple[Gap, float]]:
    """LSER and uniform minus reward-top, with Holm's p: of the plan's three the two that are read.

    The third, LSER as printed, was cut off before the end: see `printed`.
    """
    top = runs().of(TOP)
    return with_holm({arm: gap(runs().of(arm), top) for arm in (OURS, REFERENCE)})


def printed() -> tuple[int, list[list[dict[str, float]]]]:
    """Up to where LSER as printed got before time cut it off, and its curves."""
    with gzip.open(PRINTED, "rt") as file:
        found = json.load(file)
    return int(found["until"]), [run["curve"] for run in found["runs"]]


def _at(curve: Sequence[Any], sessions: int) -> float:
    return float(min(curve, key=lambda point: abs(point["sessions"] - sessions))["metric"])


def targets() -> str:
    """The targets one by one, met or missed, and what the runs did that missed the last."""
    ends = list(runs().of(OURS).values())
    low, long = sum(end < LOW for end in ends), [s for s, f in falls(OURS).items() if f >= LONG]
    parts = [
        f"interquartile mean {iqm(ends):.3f} ({_met(iqm(ends) >= LEAST_IQM)}: {LEAST_IQM:g})",
        f"{low} of {len(ends)} runs below {LOW:g} at the end ({_met(low <= MOST_LOW)}: at most "
        f"{MOST_LOW})",
        f"{len(long)} more than {FALL:g} below their best for {LONG:,} sessions "
        f"({_met(not long)}: none)",
    ]
    told = [_way(OURS, seed) for seed in long] + ([_ways()] if long else [])
    return ". ".join(["; ".join(parts), *told])


def _met(yes: bool) -> str:
    return "met" if yes else MISSED


class Way(NamedTuple):
    """A run through its long fall: where it stood and until when, how low, and back above."""

    best: float
    left: float
    low: float
    at: float
    back: float | None
    """The sessions from which it stood above its old best; None: never."""


def way(curve: Sequence[Any]) -> Way:
    """The way of a run that has fallen for `LONG` sessions, the first time it did."""
    best, left, lowest = 0.0, 0.0, None
    for point in curve:
        if point["metric"] >= best - FALL:
            if lowest is not None and point["sessions"] - left > LONG:
                break
            best, left, lowest = max(best, point["metric"]), point["sessions"], None
        elif lowest is None or point["metric"] < lowest["metric"]:
            lowest = point
    assert lowest is not None
    higher = [p["sessions"] for p in curve if p["sessions"] > left and p["metric"] > best]
    return Way(best, left, lowest["metric"], lowest["sessions"], next(iter(higher), None))


def _way(arm: str, seed: int) -> str:
    found, end = way(runs().runs[arm][seed].curve), runs().of(arm)[seed]
    back = "" if found.back is None else f", above {found.best:.2f} from {found.back:,.0f} on"
    return (
        f"Seed {seed} stood at {found.best:.2f} until {found.left:,.0f} sessions, at "
        f"{found.low:.2f} at {found.at:,.0f}{back}, {end:.3f} at the end"
    )


def _ways() -> str:
    """How many of the long falls of all arms led to a higher plateau."""
    found = [
        way(runs().runs[arm][seed].curve)
        for arm in runs().runs
        for seed, fall in falls(arm).items()
        if fall >= LONG
    ]
    up = sum(one.back is not None for one in found)
    return (
        f"Of the {len(found)} such runs of the three arms {up} came back above where they had "
        "stood: they left one plateau for a higher one, and the cure does not hold runs on the "
        "first"
    )


def reading() -> str:
    """What K says in words."""
    better, seeds = primary(), len(runs().of(OURS))
    found = gap(runs().of(OURS), runs().of(REFERENCE))
    ends = listing([f"{_plain(arm)} {runs().mean(arm):.3f}" for arm in runs().runs])
    until, curves = printed()
    there = [_at(curve, until) for curve in curves]
    cured = [_at(run.curve, until) for run in runs().runs[OURS].values()]
    said = "holds" if better.low > 0.5 else "does not hold" if better.high < 0.5 else "is open"
    aimed = targets()
    said += f", {aimed.count(MISSED)} of 3 targets missed"
    return (
        f"**The cure at the paper's length** (K of the plan; VirtualTaobao, 90,000 sessions, "
        f"{seeds} seeds from 100 on, every memory with the same cure). The primary test "
        f"**{said}**: a run of LSER ends above one of uniform with probability {interval(better)}; "
        f"final CTR {ends}, LSER minus uniform {interval(found.mean, sign=True)}, "
        f"{chance(found.p)}. What locality adds is not seen: {_beside()}. Targets of LSER "
        f"with the cure: {aimed}. As printed LSER stood at {np.mean(there):.3f} when time cut it "
        f"off at {until:,} sessions ({sum(score < LOW for score in there)} of {len(there)} runs "
        f"below {LOW:g}), with the cure at {np.mean(cured):.3f} there."
    )


def _beside() -> str:
    return "; ".join(
        f"{_plain(arm)} minus reward-top {interval(one.mean, sign=True)} ({verdict(one.mean, p)})"
        for arm, (one, p) in secondary().items()
    )


def _plain(arm: str) -> str:
    return name_of(arm.removesuffix(CURED))


def table() -> str:
    """Every arm."""
    lines = [
        "| with the cure | CTR [95 %] | interquartile mean | lowest run | share of the possible | "
        f"reward per step | while learning | below {LOW:g} | fell for {LONG:,} sessions (longest) "
        "| over training | seeds |",
        "|" + "---|" * 11,
    ]
    for arm in runs().runs:
        ends, long = list(runs().of(arm).values()), list(falls(arm).values())
        lines.append(
            row(
                *(_plain(arm), interval(mean_t(ends)), f"{iqm(ends):.3f}", f"{min(ends):.3f}"),
                *(f"{runs().share(arm):.2f}", f"{runs().mean(arm, 'reward_per_step'):.2f}"),
                *(f"{runs().mean(arm, 'learning_metric'):.3f}", str(sum(e < LOW for e in ends))),
                *(f"{sum(f >= LONG for f in long)} ({max(long):,.0f})", f"{runs().area(arm):.3f}"),
                str(len(ends)),
            )
        )
    return "\n".join(lines)


def block() -> str:
    """The words and the table."""
    return f"{reading()}\n\n{table()}"


def main() -> None:
    """Print every figure."""
    print(block())


if __name__ == "__main__":
    main()

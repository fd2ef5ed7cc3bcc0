"""Does the paper's time scale appear in the paper's regime: the figures of A in plan.md.

``python results/planned.py FOLDER a --horizon session --shift 40 --sessions 90000`` makes the
masked runs, without `--shift` and with ``continuing`` the others; ``python results/paper_regime.py
pack FOLDER`` adds what a folder holds; without arguments it prints every figure. A fleet before
these was lost with its machine: of it there are curves.
"""

import gzip
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from campaign import gather
from committed import RESULTS, by_arm
from cure import LONG, longest_fall
from scipy.stats import CensoredData, logrank
from standing import Arms, chance

from lser.experiments import records
from lser.experiments.studies import ScoreScale, scale_of
from lser.report.measures import fell
from lser.report.stats import Interval, holm, mean_t, paired_difference, paired_p, welch
from lser.report.style import interval, listing, name_of, number

MASKED, CONTINUING = RESULTS / "paper_regime_masked.jsonl.gz", RESULTS / "paper_regime.jsonl.gz"
LOST = RESULTS / "paper_regime_masked.json.gz"
ARMS = ("lser", "uniform", "reward-top")
PAPERS = {"lser": 30_000, "uniform": 50_000}  # sessions to the peak
NEAR = 2.0  # times the paper's sessions, or one over that
HALF = 0.5  # of the possible
Curve = Sequence[dict[str, Any]]


class Half(NamedTuple):
    """One half of A: the curves and ends of every arm, by seed, and where they are read."""

    curves: Mapping[str, Mapping[int, Curve]]
    ends: Mapping[str, Mapping[int, Mapping[str, Any]]]
    until: int


def pack(folder: Path) -> None:
    """Add the runs of a folder to those that are kept of their half."""
    for horizon, file in (("session", MASKED), ("continuing", CONTINUING)):
        found = [run for run in records.find(folder) if run.experiment["horizon"] == horizon]
        if found:
            gather([folder], lambda run, at=horizon: run.experiment["horizon"] == at, file)


@cache
def lost() -> tuple[int, int]:
    """Where the fleet of seeds 100 to 109 was lost, and how many of its runs had got to half."""
    with gzip.open(LOST, "rt") as file:
        held = json.load(file)
    goal, until = halfway(), int(held["until"])
    peaks = [
        max(point["metric"] for point in run["curve"] if point["sessions"] <= until)
        for run in held["runs"]
    ]
    return until, sum(peak >= goal for peak in peaks)


@cache
def masked() -> Half:
    """The half with sessions masked, as far as all its runs got before time cut it off."""
    held = Arms(by_arm(MASKED))
    until = held.sessions(*ARMS)
    curves = {
        arm: {seed: [p for p in run.curve if p["sessions"] <= until] for seed, run in of.items()}
        for arm, of in held.runs.items()
    }
    ends = {arm: {seed: curve[-1] for seed, curve in of.items()} for arm, of in curves.items()}
    return Half(curves, ends, until)


@cache
def runs() -> dict[str, dict[int, records.Record]]:
    """The whole runs of the continuing half, by arm and seed."""
    return by_arm(CONTINUING)


@cache
def continuing() -> Half:
    """The half in which sessions follow one another."""
    curves = {arm: {seed: run.curve for seed, run in of.items()} for arm, of in runs().items()}
    ends = {arm: {s: run.final or {} for s, run in of.items()} for arm, of in runs().items()}
    until = max(c[-1]["sessions"] for of in curves.values() for c in of.values())
    return Half(curves, ends, until)


def scale() -> ScoreScale:
    """Random actions and the best policy known."""
    known = scale_of(runs()["uniform"][100].experiment, "ctr")
    assert known is not None
    return known


def halfway() -> float:
    """The CTR that is half of the possible."""
    known = scale()
    return known.random.score + HALF * (known.best.score - known.random.score)


def needed(half: Half, arm: str) -> tuple[list[int], list[int]]:
    """Sessions to half of the possible of the runs that get there, and how long others were."""
    there, never = [], []
    for curve in half.curves[arm].values():
        hits = [point["sessions"] for point in curve if point["metric"] >= halfway()]
        there += hits[:1]
        never += [] if hits else [half.until]
    return there, never


def sooner(half: Half) -> float | None:
    """The log-rank p of LSER against uniform, or None where nobody gets there."""
    pair = [needed(half, arm) for arm in ("lser", "uniform")]
    if not any(there for there, _ in pair):
        return None
    samples = [CensoredData(uncensored=there, right=never) for there, never in pair]
    return float(logrank(*samples).pvalue)


def seen(half: Half) -> bool:
    """Whether the paper's time scale is: by the rule of the plan, an arm's median run near it."""
    for arm, papers in PAPERS.items():
        there, never = needed(half, arm)
        middle = float(np.median([*there, *(np.inf for _ in never)]))
        if papers / NEAR <= middle <= papers * NEAR:
            return True
    return False


def times_the_bound(half: Half, arm: str) -> list[float]:
    """What critics give their own actions at the end, over what rewards allow; by seed."""
    ends = [curve[-1] for _, curve in sorted(half.curves[arm].items())]
    return [end["value_own_mean"] / end["value_bound_high"] for end in ends]


def held(half: Half, arm: str) -> list[int]:
    """The seeds whose values end within a tenth above the bound, or below it."""
    seeds = sorted(half.curves[arm])
    return [s for s, t in zip(seeds, times_the_bound(half, arm), strict=True) if t <= 1.1]


def final(half: Half, arm: str, key: str = "metric") -> dict[int, float]:
    """CTR, or another score, where a half is read."""
    return {seed: float(end[key]) for seed, end in half.ends[arm].items()}


def gaps(half: Half) -> dict[tuple[str, str], tuple[Interval, float, Interval]]:
    """Final CTR of every pair of arms, paired over seeds, with Holm's p and Welch's interval."""
    pairs = list(combinations(ARMS, 2))
    found = [paired_difference(final(half, a), final(half, b)) for a, b in pairs]
    corrected = holm([paired_p(one) for one in found])
    alone = [welch(*(list(final(half, arm).values()) for arm in pair)) for pair in pairs]
    return {
        pair: (mean_t(one), p, other)
        for pair, one, p, other in zip(pairs, found, corrected, alone, strict=True)
    }


def fallen(half: Half, arm: str) -> int:
    """How many runs end clearly below their best point."""
    curves, ends = half.curves[arm], half.ends[arm]
    return sum(fell(curves[seed], ends[seed], scale()) for seed in curves)


def levels(scores: Mapping[str, Sequence[float]], digits: int = 3) -> str:
    """The mean of every arm, in words."""
    return listing([f"{name_of(arm)} {np.mean(of):.{digits}f}" for arm, of in scores.items()])


def _ends(half: Half, key: str = "metric") -> dict[str, list[float]]:
    return {arm: list(final(half, arm, key).values()) for arm in ARMS}


def _peaks(half: Half) -> dict[str, list[float]]:
    return {a: [max(p["metric"] for p in c) for c in half.curves[a].values()] for a in ARMS}


def _kept() -> int:
    """Runs of both halves that end with half of the possible or more."""
    halves = (masked(), continuing())
    return sum(end >= halfway() for half in halves for of in _ends(half).values() for end in of)


def _values(half: Half) -> str:
    middle = [(arm, float(np.median(times_the_bound(half, arm)))) for arm in ARMS]
    return listing([f"{name_of(arm)} {number(value)}" for arm, value in middle])


def _counts(half: Half, count: Callable[[str], int]) -> str:
    return listing([f"{name_of(arm)} {count(arm)} of {len(half.curves[arm])}" for arm in ARMS])


def _pairs(half: Half, *, unpaired: bool = False) -> str:
    said = []
    for (a, b), (gap, p, other) in gaps(half).items():
        beside = f"; Welch {interval(other, sign=True)}" if unpaired else ""
        words = f"({chance(p)} after Holm{beside})"
        said.append(f"{name_of(a)} minus {name_of(b)} {interval(gap, sign=True)} {words}")
    return "; ".join(said)


def _reached(half: Half) -> str:
    return _counts(half, lambda arm: len(needed(half, arm)[0]))


def _compared(half: Half) -> str:
    p = sooner(half)
    return "nothing to compare" if p is None else f"log-rank {chance(p)}, LSER against uniform"


def reading() -> str:
    """What A says in words."""
    first, second = masked(), continuing()
    until, got = lost()
    steady = held(second, "lser")
    assert not seen(first)
    assert not got
    assert len(steady) == 1
    long_falls = {
        arm: sum(longest_fall(c) >= LONG for c in second.curves[arm].values()) for arm in ARMS
    }
    return (
        "**The paper's regime** (A of the plan; the release's backbone: action at the critic's "
        "second layer, five updates a step, noise never reset, one user; VirtualTaobao, 10 seeds "
        f"a half). **Values run away in it, {_kept()} of 60 runs end with half of the possible, "
        "and the paper's time scale, 30,000 sessions against 50,000, is not seen.** *With sessions "
        "masked* "
        f"(seeds 140 to 149, read at {first.until:,} of 90,000 sessions, where time cut them off) "
        f"{_reached(first)} ever reach half of the possible ({_compared(first)}: the primary "
        f"test); best points {levels(_peaks(first))} on average, at the end "
        f"{levels(_ends(first))}; {_pairs(first, unpaired=True)}; "
        f"{_counts(first, lambda arm: fallen(first, arm))} end more than a tenth of the possible "
        f"below their best; clicks per session, which is what a masked agent is trained on, "
        f"{levels(_ends(first, 'reward'), 2)}. Critics give their own actions, in the middle of "
        f"ten runs, so many times what rewards allow: {_values(first)}. Of a fleet before it "
        f"(seeds 100 to 109, lost at {until:,} sessions) no run of 30 had got to half either. "
        f"*Continuing* (seeds 100 to 109, {second.until:,} sessions, to the end): best points "
        f"{levels(_peaks(second))} on average, within the first thousands of sessions, then "
        f"nearly all fall; {_reached(second)} ever reach half of the possible "
        f"({_compared(second)}), {_counts(second, long_falls.__getitem__)} stay more than .1 below "
        f"their best for {LONG:,} sessions. At the end {levels(_ends(second))}; {_pairs(second)}; "
        f"values over the bound {_values(second)}. One run of LSER keeps a CTR of "
        f"{final(second, 'lser')[steady[0]]:.2f} to the end, and it is the one of thirty whose "
        "values stay at the bound. With one update a step (another critic) runs do not fall like "
        "this, and the whole cure holds there (K of the plan; bounds alone do not, AA)."
    )


def in_short() -> str:
    """What A says, in two sentences."""
    first, second = masked(), continuing()
    most = max(float(np.median(times_the_bound(half, a))) for half in (first, second) for a in ARMS)
    got = [sum(len(needed(half, arm)[0]) for arm in ARMS) for half in (first, second)]
    steady = held(second, "lser")
    assert len(steady) == 1
    return (
        "**In the release's own regime** (its critic, five updates a step, one user; A of the "
        f"plan, 10 seeds) values run away, up to {most:,.0f} times what rewards allow in the "
        f"middle run, and {_kept()} of 60 keep what they learn: with sessions masked {got[0]} of "
        f"30 runs ever reach half of the possible in {first.until:,} sessions, continuing {got[1]} "
        f"do, and after {second.until:,} sessions the CTR is {levels(_ends(second))}; the one run "
        f"that holds ({final(second, 'lser')[steady[0]]:.2f}) is the one whose values stay at "
        "their bound. The paper's time scale is not seen there."
    )


def table() -> str:
    """Both halves: what every arm reached, where it ended, and its values."""
    lines = [
        "| sessions | arm | ever at half of the possible | best point, mean | at the end, mean "
        "[lowest, highest] | values over the bound, median [lowest, highest] | ends below its "
        "best |",
        "|" + "---|" * 7,
    ]
    for name, half in (("masked", masked()), ("continuing", continuing())):
        for arm in ARMS:
            ends, times = _ends(half)[arm], times_the_bound(half, arm)
            row = (
                *(f"{name}, {half.until:,}", name_of(arm)),
                f"{len(needed(half, arm)[0])} of {len(ends)}",
                f"{np.mean(_peaks(half)[arm]):.3f}",
                f"{np.mean(ends):.3f} [{min(ends):.3f}, {max(ends):.3f}]",
                f"{np.median(times):,.0f} [{min(times):.1f}, {max(times):,.0f}]",
                f"{fallen(half, arm)} of {len(ends)}",
            )
            lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def block() -> str:
    """The words and the table."""
    beside = "Critics' values stand beside what rewards allow, the largest reward over 1 - γ."
    return f"{reading()}\n\n{table()}\n\n{beside}"


def main(words: list[str]) -> None:
    """Pack, or print every figure."""
    if words:
        pack(Path(words[1]))
    else:
        print(block())


if __name__ == "__main__":
    main(sys.argv[1:])

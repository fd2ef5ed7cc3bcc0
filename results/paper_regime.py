"""Does the paper's time scale appear in the paper's regime: the figures of A in plan.md.

``python results/planned.py FOLDER a`` makes the runs; ``python results/paper_regime.py pack MASKED
CONTINUING`` packs what two such folders hold, the first of them curves alone, as its fleet was lost
before its end; without arguments it prints every figure.
"""

import gzip
import json
import sys
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from committed import RESULTS, by_arm
from cure import LONG, longest_fall
from scipy.stats import CensoredData, logrank

from lser.experiments import records
from lser.experiments.studies import ScoreScale, scale_of
from lser.report.stats import Interval, holm, mean_t, paired_difference, paired_p
from lser.report.style import interval, listing, name_of, number

MASKED, CONTINUING = RESULTS / "paper_regime_masked.json.gz", RESULTS / "paper_regime.jsonl.gz"
ARMS = ("lser", "uniform", "reward-top")
KEPT = ("sessions", "metric", "value_own_mean", "value_bound_high", "one_reward", "saturated")
HALF = 0.5  # of the possible
Curve = Sequence[dict[str, Any]]


class Half(NamedTuple):
    """One half of A: the curves of every arm, by seed, and where they end."""

    curves: dict[str, dict[int, Curve]]
    until: int


def pack(lost: Path, whole: Path) -> None:
    """Write both files from the folders of the runs."""
    until = min(run.curve[-1]["sessions"] for run in records.find(lost))
    runs = [
        {"label": r.label, "seed": r.seed, "curve": [{k: p.get(k) for k in KEPT} for p in r.curve]}
        for r in sorted(records.find(lost), key=lambda run: (run.label, run.seed))
    ]
    with gzip.GzipFile(MASKED, "wb", mtime=0) as file:
        file.write(json.dumps({"until": until, "runs": runs}).encode())
    records.pack(records.find(whole), CONTINUING)


@cache
def masked() -> Half:
    """The half with sessions masked, as far as its curves were copied."""
    with gzip.open(MASKED, "rt") as file:
        held = json.load(file)
    found: dict[str, dict[int, Curve]] = {arm: {} for arm in ARMS}
    for run in held["runs"]:
        found[run["label"]][run["seed"]] = [
            p for p in run["curve"] if p["sessions"] <= held["until"]
        ]
    return Half(found, held["until"])


@cache
def runs() -> dict[str, dict[int, records.Record]]:
    """The whole runs of the continuing half, by arm and seed."""
    return by_arm(CONTINUING)


@cache
def continuing() -> Half:
    """The half in which sessions follow one another."""
    curves: dict[str, dict[int, Curve]] = {
        arm: {seed: run.curve for seed, run in of.items()} for arm, of in runs().items()
    }
    return Half(curves, max(c[-1]["sessions"] for of in curves.values() for c in of.values()))


def scale() -> ScoreScale:
    """Random actions and the best policy known."""
    known = scale_of(runs()["uniform"][100].experiment, "ctr")
    assert known is not None
    return known


def needed(half: Half, arm: str) -> tuple[list[int], list[int]]:
    """Sessions to half of the possible of the runs that get there, and how long others were."""
    known = scale()
    goal = known.random.score + HALF * (known.best.score - known.random.score)
    there, never = [], []
    for curve in half.curves[arm].values():
        hits = [point["sessions"] for point in curve if point["metric"] >= goal]
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


def times_the_bound(half: Half, arm: str) -> list[float]:
    """What critics give their own actions at the end, over what rewards allow; by seed."""
    ends = [curve[-1] for _, curve in sorted(half.curves[arm].items())]
    return [end["value_own_mean"] / end["value_bound_high"] for end in ends]


def held(half: Half, arm: str) -> list[int]:
    """The seeds whose values end within a tenth above the bound, or below it."""
    seeds = sorted(half.curves[arm])
    return [s for s, t in zip(seeds, times_the_bound(half, arm), strict=True) if t <= 1.1]


def final(arm: str) -> dict[int, float]:
    """CTR at the end of the continuing half, 1,000 sessions."""
    return {seed: float((run.final or {})["metric"]) for seed, run in runs()[arm].items()}


def gaps() -> dict[tuple[str, str], tuple[Interval, float]]:
    """Final CTR of every pair of arms, paired over seeds, with Holm's p."""
    pairs = list(combinations(ARMS, 2))
    found = [paired_difference(final(a), final(b)) for a, b in pairs]
    corrected = holm([paired_p(one) for one in found])
    return {p: (mean_t(one), c) for p, one, c in zip(pairs, found, corrected, strict=True)}


def levels(scores: dict[str, list[float]]) -> str:
    """The mean of every arm, in words."""
    return listing([f"{name_of(arm)} {np.mean(of):.3f}" for arm, of in scores.items()])


def _values(half: Half) -> str:
    middle = [(arm, float(np.median(times_the_bound(half, arm)))) for arm in ARMS]
    return listing([f"{name_of(arm)} {number(value)}" for arm, value in middle])


def reading() -> str:
    """What A says in words."""
    lost, whole = masked(), continuing()
    at_end = {a: [c[-1]["metric"] for c in lost.curves[a].values()] for a in ARMS}
    got = {arm: len(needed(lost, arm)[0]) for arm in ARMS}
    peaks = {a: [max(p["metric"] for p in c) for c in whole.curves[a].values()] for a in ARMS}
    best = max(p["metric"] for of in lost.curves.values() for c in of.values() for p in c)
    reach = listing(
        [f"{name_of(a)} {len(needed(whole, a)[0])} of {len(whole.curves[a])}" for a in ARMS]
    )
    fell = listing(
        [
            f"{name_of(a)} {sum(longest_fall(c) >= LONG for c in whole.curves[a].values())} of "
            f"{len(whole.curves[a])}"
            for a in ARMS
        ]
    )
    pairs = "; ".join(
        f"{name_of(a)} minus {name_of(b)} {interval(gap, sign=True)} (p = {number(p)} after Holm)"
        for (a, b), (gap, p) in gaps().items()
    )
    p = sooner(whole)
    steady = held(whole, "lser")
    assert p is not None
    assert not any(got.values())
    assert len(steady) == 1
    return (
        "**The paper's regime** (A of the plan; the release's backbone: action at the critic's "
        "second layer, five updates a step, noise never reset, one user; VirtualTaobao, seeds 100 "
        "to 109). **Values run away in it, and all but one run end near random actions.** With "
        "sessions masked the fleet "
        f"was lost at {lost.until:,} of 30,000 sessions, of the 90,000 planned; by then no run of "
        f"30 had ever reached half of the possible (best point {best:.2f}; CTR there "
        f"{levels(at_end)}), and critics gave their own actions, in the middle of ten runs, so "
        f"many times what rewards allow: {_values(lost)}. So the primary test has nothing to "
        "compare, and the paper's time scale, 30,000 sessions against 50,000, does not appear in "
        f"the part that was seen. Continuing ({whole.until:,} sessions, to the end): best points "
        f"{levels(peaks)} on average, within the first thousands of sessions, then nearly all "
        f"fall; {reach} ever reach half of the possible (log-rank p = {number(p)}, LSER against "
        f"uniform), {fell} stay more than .1 below their best for {LONG:,} sessions. At the end "
        f"{levels({a: list(final(a).values()) for a in ARMS})}; {pairs}; values over the bound "
        f"{_values(whole)}. One run of LSER keeps a CTR of {final('lser')[steady[0]]:.2f} to the "
        "end, and it is the one of thirty whose values stay at the bound. One update a step "
        "(K of the plan, another critic) does not fall like this, and bounded values hold there."
    )


def in_short() -> str:
    """What A says, in two sentences."""
    lost, whole = masked(), continuing()
    most = max(float(np.median(times_the_bound(half, a))) for half in (lost, whole) for a in ARMS)
    reach = sum(len(needed(whole, arm)[0]) for arm in ARMS)
    ends = {arm: list(final(arm).values()) for arm in ARMS}
    steady = held(whole, "lser")
    assert len(steady) == 1
    return (
        "**In the release's own regime** (its critic, five updates a step, one user; A of the "
        f"plan, 10 seeds) values run away, up to {most:.0f} times what rewards allow in the middle "
        f"run, and nobody keeps what it learns: with sessions masked no run of 30 reaches half of "
        f"the possible in {lost.until:,} sessions, continuing {reach} of 30 do, and after "
        f"{whole.until:,} sessions the CTR is {levels(ends)}; the one run that holds "
        f"({final('lser')[steady[0]]:.2f}) is the one whose values stay at their bound."
    )


def table() -> str:
    """Both halves: what every arm reached, where it ended, and its values."""
    lines = [
        "| sessions | arm | ever at half of the possible | best point, mean | at the end, mean "
        "[lowest, highest] | values over the bound, median [lowest, highest] | fell |",
        "|" + "---|" * 7,
    ]
    for name, half in (("masked", masked()), ("continuing", continuing())):
        for arm in ARMS:
            curves = half.curves[arm].values()
            peak = np.mean([max(p["metric"] for p in c) for c in curves])
            ends, times = [c[-1]["metric"] for c in curves], times_the_bound(half, arm)
            fell = sum(longest_fall(c) >= LONG for c in curves)
            row = (
                *(f"{name}, {half.until:,}", name_of(arm)),
                *(f"{len(needed(half, arm)[0])} of {len(curves)}", f"{peak:.3f}"),
                f"{np.mean(ends):.3f} [{min(ends):.3f}, {max(ends):.3f}]",
                f"{np.median(times):.0f} [{min(times):.1f}, {max(times):.0f}]",
                f"{fell} of {len(curves)}",
            )
            lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def block() -> str:
    """The words and the table."""
    return f"{reading()}\n\n{table()}"


def main(words: list[str]) -> None:
    """Pack, or print every figure."""
    if words:
        pack(Path(words[1]), Path(words[2]))
    else:
        print(block())


if __name__ == "__main__":
    main(sys.argv[1:])

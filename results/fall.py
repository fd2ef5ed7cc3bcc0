"""Why do runs fall: the figures of B in plan.md.

``python results/planned.py FOLDER b --sessions N`` makes the runs, ``python results/fall.py pack
FOLDER`` writes ``fall.jsonl.gz``; without arguments it prints every figure from there.
"""

import sys
from functools import cache

from committed import RESULTS, by_arm
from delayed import LEVEL, Gap, gap, verdict
from scipy.stats import binomtest
from scored import Scored, pack_or_print, row, scored
from standing import chance, with_holm

from lser.experiments.studies import plan
from lser.report.stats import holm, mean_t
from lser.report.style import interval, listing, name_of, number

FILE = RESULTS / "fall.jsonl.gz"
BASE = "lser"


@cache
def runs() -> Scored:
    """The runs by arm, in the order of the plan."""
    found, order = by_arm(FILE), dict.fromkeys(one.label for one in plan("fall", "paper", 1))
    return scored({arm: found[arm] for arm in order if arm in found})


def known() -> bool:
    """Whether it has been run."""
    return FILE.is_file()


def others() -> list[str]:
    """Every arm but LSER as printed."""
    return [arm for arm in runs().runs if arm != BASE]


def mcnemar(ours: dict[int, bool], theirs: dict[int, bool]) -> float:
    """The exact two-sided p that runs of both arms fall equally often, over the seeds of both."""
    seeds = ours.keys() & theirs
    only = sum(ours[s] and not theirs[s] for s in seeds)
    differ = sum(ours[s] != theirs[s] for s in seeds)
    return float(binomtest(only, differ).pvalue) if differ else 1.0


def primary() -> dict[str, float]:
    """Whether runs fall, each arm against LSER as printed: McNemar's p after Holm."""
    base = runs().fallen(BASE)
    found = [mcnemar(runs().fallen(arm), base) for arm in others()]
    return dict(zip(others(), holm(found), strict=True))


def secondary() -> dict[str, tuple[Gap, float]]:
    """How deep runs fall, each arm minus LSER as printed, with Holm's p."""
    base = runs().depth(BASE)
    return with_holm({arm: gap(runs().depth(arm), base) for arm in others()})


def _depths() -> str:
    """Which arms fall less deep than LSER as printed, and which deeper."""
    parts = {"below": "below it", "above": "above it", "not separated": "not separated"}
    told: dict[str, list[str]] = {side: [] for side in parts}
    for arm, (one, p) in secondary().items():
        side = verdict(one.mean, p)
        plain = f" {interval(one.mean, sign=True)} ({chance(p)})"
        told[side].append(f"{name_of(arm)}{'' if side == 'not separated' else plain}")
    return "; ".join(f"{parts[side]}: {listing(arms)}" for side, arms in told.items() if arms)


def reading() -> str:
    """What B says in words; nothing before it has been run."""
    if not known():
        return ""
    found, arms = primary(), [BASE, *others()]
    decided = [arm for arm, p in found.items() if p <= LEVEL]
    said = (
        "**decides for " + listing([f"{name_of(a)} ({chance(found[a])})" for a in decided]) + "**"
        if decided
        else f"**is open** for all {len(found)} (smallest p after Holm {min(found.values()):.3f})"
    )
    sessions = runs().everything[0].experiment["sessions"]
    counts = listing(runs().fell(arms))
    over = listing(
        [f"{name_of(a)} {runs().values(a)[0]:.2f} ({runs().values(a)[1]:.2f})" for a in arms]
    )
    alike = listing([f"{name_of(a)} {runs().one_reward(a):.2f}" for a in arms])
    return (
        "**Why runs fall, by single options** (B of the plan; VirtualTaobao, "
        f"{sessions:,} sessions of the 60,000 planned, {len(runs().of(BASE))} seeds of 20, "
        f"{runs().whole()}). Runs that end more than a tenth of the possible below their best: "
        f"{counts}. The primary test, each arm against LSER as printed over paired seeds with "
        f"Holm, {said}; with ten pairs it decides only where nine differ in one direction. How "
        "deep they fall, minus LSER as printed, shares of the possible, Holm over them: "
        f"{_depths()}. Critics' values of their own actions "
        f"over what rewards allow at the end (at their most), median run: {over}. Batches with one "
        f"reward: {alike}."
    )


def table() -> str:
    """Every arm."""
    lines = [
        "| arm | fell | p after Holm | depth of the fall [95 %] | minus lser [95 %] | CTR [95 %] | "
        "worst run | values over the bound, end | most | spread of values | batches with one "
        "reward | seeds |",
        "|" + "---|" * 12,
    ]
    exact, deep = primary(), secondary()
    for arm in sorted(runs().runs, key=lambda name: sum(runs().fallen(name).values())):
        ends, depth = list(runs().of(arm).values()), list(runs().depth(arm).values())
        lines.append(
            row(
                *(name_of(arm), str(sum(runs().fallen(arm).values()))),
                *(number(exact[arm]) if arm in exact else "", interval(mean_t(depth))),
                *(interval(deep[arm][0].mean, sign=True) if arm in deep else "",),
                *(interval(mean_t(ends)), f"{min(ends):.3f}"),
                *(number(v, digits=2) for v in runs().values(arm)),
                *(number(x, digits=2) for x in (runs().spread(arm), runs().one_reward(arm))),
                str(len(ends)),
            )
        )
    return "\n".join(lines)


def block() -> str:
    """The words and the table."""
    return f"{reading()}\n\n{table()}" if known() else ""


if __name__ == "__main__":
    pack_or_print(sys.argv[1:], "fall", FILE, block)

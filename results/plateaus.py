"""Ways off plateaus, beside the cure: the figures of BB in plan.md.

``python results/planned.py FOLDER bb --arms ...`` makes the runs, ``python results/plateaus.py
pack FOLDER`` writes ``plateaus.jsonl.gz``; without arguments it prints every figure from there.
"""

import sys
from functools import cache

import numpy as np
from committed import RESULTS, by_arm
from delayed import Gap, verdict
from scored import Scored, levels, pack_or_print, row, scored
from standing import chance, grouped

from lser.experiments.studies import plan
from lser.report.stats import Interval, mean_t, welch
from lser.report.style import interval, listing, number

FILE = RESULTS / "plateaus.jsonl.gz"
REFERENCE = "the cure"


def known() -> bool:
    """Whether it has been run."""
    return FILE.is_file()


@cache
def runs() -> Scored:
    """The runs by arm, in the order of the plan."""
    found, order = by_arm(FILE), dict.fromkeys(one.label for one in plan("plateaus", "paper", 1))
    return scored({arm: found[arm] for arm in order if arm in found})


def primary() -> dict[str, tuple[Gap, float]]:
    """Final CTR, the cure minus each way, with Holm's p."""
    return runs().against(REFERENCE, tuple(arm for arm in runs().runs if arm != REFERENCE))


def answers() -> dict[str, str]:
    """What each way does, by its side of the cure."""
    said = {"below": "earns its place", "above": "costs", "not separated": "open"}
    return {arm: said[verdict(one.mean, p)] for arm, (one, p) in primary().items()}


def said() -> str:
    """The same in a few words."""
    by = grouped(answers(), str)
    if set(by) == {"open"}:
        return "open for all of them"
    return "; ".join(f"{listing(arms)}: {answer}" for answer, arms in by.items())


def saturated(arm: str) -> float:
    """The share of saturated action components at the last point, mean over runs."""
    ends = [run.curve[-1].get("saturated", np.nan) for run in runs().runs[arm].values()]
    return float(np.mean(ends))


def reading() -> str:
    """What BB says in words; nothing before it has been run."""
    if not known():
        return ""
    arms = list(runs().runs)
    gaps = "; ".join(
        f"{arm} {interval(_turned(one.mean), sign=True)} ({chance(p)}; Welch "
        f"{interval(_welch(arm), sign=True)})"
        for arm, (one, p) in primary().items()
    )
    soon = listing([f"{arm} {runs().reached(arm, 0.9)}" for arm in arms])
    return (
        "**Ways off plateaus, beside the cure** (BB of the plan; VirtualTaobao, LSER with the "
        f"cure, 15,000 sessions, {len(runs().of(REFERENCE))} new seeds from "
        f"{min(runs().of(REFERENCE))} on, {runs().whole()}). Whether one earns its place by the "
        f"primary test: **{said()}**. Final CTR {levels({arm: runs().mean(arm) for arm in arms})}; "
        f"minus the cure, Holm over the {len(arms) - 1}: {gaps}. Average over training "
        f"{levels({arm: runs().area(arm) for arm in arms})}; sessions to .9 of the possible, "
        f"median (runs that get there): {soon}. Runs that end more than a tenth of the "
        f"possible below their best: {listing(runs().fell(arms))}. Saturated action "
        f"components at the end: {levels({arm: saturated(arm) for arm in arms}, 2)}."
    )


def _turned(value: Interval) -> Interval:
    return Interval(-value.estimate, -value.high, -value.low)


def _welch(arm: str) -> Interval:
    ends = [list(runs().of(one).values()) for one in (arm, REFERENCE)]
    return welch(*ends)


def table() -> str:
    """Every arm."""
    lines = [
        "| LSER with | CTR [95 %] | minus the cure [95 %] | over training | sessions to .9 (runs) "
        "| worst run | fell | saturated | seeds |",
        "|" + "---|" * 9,
    ]
    found = primary()
    for arm in runs().runs:
        ends = list(runs().of(arm).values())
        pair = interval(_turned(found[arm][0].mean), sign=True) if arm in found else ""
        lines.append(
            row(
                *(arm, interval(mean_t(ends)), pair, f"{runs().area(arm):.3f}"),
                *(runs().reached(arm, 0.9), f"{min(ends):.3f}"),
                str(sum(runs().fallen(arm).values())),
                *(number(saturated(arm), digits=2), str(len(ends))),
            )
        )
    return "\n".join(lines)


def block() -> str:
    """The words and the table."""
    return f"{reading()}\n\n{table()}" if known() else ""


if __name__ == "__main__":
    pack_or_print(sys.argv[1:], "plateaus", FILE, block)

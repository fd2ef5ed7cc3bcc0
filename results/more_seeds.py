"""The other memories as printed on as many seeds as LSER: Z's secondary tests in plan.md.

``python results/planned.py FOLDER z --arms ...`` makes the runs, ``python results/more_seeds.py
pack FOLDER`` writes ``length_more.jsonl.gz``; without arguments it prints every figure from there
and from S's runs.
"""

import sys
from functools import cache

import length
import numpy as np
from cells import LATER
from committed import RESULTS, by_arm
from delayed import Gap, verdict
from length import KEY, OURS
from scored import Scored, levels, pack_or_print, row, scored
from standing import Arms, chance, grouped, stands, with_holm

from lser.report.stats import mean_t
from lser.report.style import interval, name_of

FILE = RESULTS / "length_more.jsonl.gz"
TWICE = 2  # half of these runs were looked at in S


def known() -> bool:
    """Whether they have been run."""
    return FILE.is_file()


@cache
def runs() -> Scored:
    """LSER's runs of S, and of each other memory those of S and of Z together."""
    before, more = length.runs().runs, scored(by_arm(FILE))
    others = {arm: {**before[arm], **more.runs[arm]} for arm in LATER if arm in more.runs}
    return Scored({OURS: before[OURS], **others}, more.failed)


@cache
def standing() -> Arms:
    """The same, to be compared where two arms stand."""
    return Arms(runs().runs)


def secondary() -> dict[str, tuple[Gap, float]]:
    """LSER minus each other memory, with p doubled for the look before, then Holm's."""
    found = {arm: standing().gap(OURS, arm, KEY) for arm in runs().runs if arm != OURS}
    looked = {arm: one._replace(p=min(1.0, TWICE * one.p)) for arm, one in found.items()}
    corrected = with_holm(looked)
    return {arm: (found[arm], p) for arm, (_, p) in corrected.items()}


def reading() -> str:
    """What they say in words; nothing before they have been run."""
    if not known():
        return ""
    arms, tests, sides = list(runs().runs), secondary(), grouped(separated())
    apart = "; ".join(
        f"{name_of(arm)} {interval(standing().welch(OURS, arm, KEY), sign=True)}" for arm in tests
    )
    seeds = {arm: len(of) for arm, of in runs().runs.items()}
    return (
        "**The other memories as printed, with as many seeds as LSER** (Z of the plan, its "
        f"secondary tests; VirtualTaobao, {standing().sessions(*arms):,} sessions, "
        f"{min(seeds.values())} seeds, {runs().whole()}). LSER stands "
        f"**{stands(sides)}**. LSER minus each, p doubled, because half of the others' "
        f"runs had been looked at in S, then Holm over the {len(tests)}: "
        f"{standing().told(OURS, tests)} (Welch: {apart}). Final CTR "
        f"{levels({arm: standing().mean(arm, KEY) for arm in arms})}; shares of the possible "
        f"{levels({arm: runs().share(arm) for arm in arms}, 2)}. Runs that end more than a tenth "
        f"of the possible below their best: {', '.join(runs().fell(arms))}."
    )


def in_short() -> str:
    """The same in a sentence for the first screens."""
    if not known():
        return ""
    return (
        "**With twenty seeds of other memories as printed** (Z of the plan, after Holm over "
        f"{len(secondary())}, p twice as large for an earlier look) LSER minus each: "
        f"{standing().told(OURS, secondary())}."
    )


def separated() -> dict[str, str]:
    """On which side of each other memory LSER ends."""
    return {arm: verdict(one.mean, p) for arm, (one, p) in secondary().items()}


def table() -> str:
    """Every arm, the best first."""
    lines = [
        "| as printed | CTR [95 %] | share of the possible | LSER minus it [95 %] | p | over "
        "training | worst run | fell | seeds |",
        "|" + "---|" * 9,
    ]
    tests = secondary()
    for arm in sorted(runs().runs, key=lambda name: -standing().mean(name, KEY)):
        ends = list(standing().scores(arm, KEY).values())
        pair = ["", ""]
        if arm != OURS:
            found, p = tests[arm]
            pair = [interval(found.mean, sign=True), chance(p).removeprefix("p ").lstrip("= ")]
        lines.append(
            row(
                *(name_of(arm), interval(mean_t(ends))),
                *(f"{runs().scale.share(float(np.mean(ends))):.2f}", *pair),
                *(f"{runs().area(arm):.3f}", f"{min(ends):.3f}"),
                *(str(sum(runs().fallen(arm).values())), str(len(ends))),
            )
        )
    return "\n".join(lines)


def block() -> str:
    """The words and the table."""
    return f"{reading()}\n\n{table()}" if known() else ""


if __name__ == "__main__":
    pack_or_print(sys.argv[1:], "length", FILE, block)

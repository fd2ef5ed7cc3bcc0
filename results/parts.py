"""Which part of the cure keeps runs from falling: the figures of AA in plan.md.

``python results/planned.py FOLDER aa`` makes the runs, ``python results/parts.py pack FOLDER``
writes ``parts.jsonl.gz``; without arguments it prints every figure from there, beside S's runs as
printed and K's with the whole cure.
"""

import sys
from functools import cache

import cure
import length
import more_seeds
import numpy as np
from cells import PARTS
from committed import RESULTS, by_arm
from scipy.stats import ttest_ind
from scored import LAST, Belief, Scored, levels, pack_or_print, row, scored
from standing import chance, grouped

from lser.report.findings import LEVEL
from lser.report.stats import Interval, exact_p, holm, iqm, mean_t, welch
from lser.report.style import interval, listing, number

FILE = RESULTS / "parts.jsonl.gz"
PRINTED, WHOLE = "as printed", "the whole cure"  # S's and K's arms of LSER


def known() -> bool:
    """Whether it has been run."""
    return FILE.is_file()


@cache
def runs() -> Scored:
    """LSER as printed, with each part alone, and with all of them."""
    found = scored(by_arm(FILE))
    parts = {arm: found.runs[arm] for arm in PARTS if arm in found.runs}
    ends = {PRINTED: length.runs().runs[length.OURS], WHOLE: cure.runs().runs[cure.OURS]}
    return Scored({PRINTED: ends[PRINTED], **parts, WHOLE: ends[WHOLE]}, found.failed)


def _made() -> Scored:
    """AA's own runs."""
    return Scored({arm: of for arm, of in runs().runs.items() if arm in PARTS}, runs().failed)


def alone() -> list[str]:
    """The parts that have been run."""
    return [arm for arm in runs().runs if arm in PARTS]


def fell(arm: str) -> tuple[int, int]:
    """How many runs of an arm fell, and how many did not."""
    fallen = list(runs().fallen(arm).values())
    return sum(fallen), len(fallen) - sum(fallen)


def of(arm: str) -> str:
    """How many runs of an arm fell, in words."""
    fallen, stayed = fell(arm)
    return f"{fallen} of {fallen + stayed}"


def primary() -> dict[str, float]:
    """Fisher's p of each part, that as many fall as of those as printed, after Holm."""
    raw = [exact_p([fell(arm), fell(PRINTED)]) for arm in alone()]
    return dict(zip(alone(), holm(raw), strict=True))


def answer(arm: str) -> str:
    """What a part does, in a word, by the primary test."""
    if primary()[arm] > LEVEL:
        return "open"
    shares = [fell(one)[0] / sum(fell(one)) for one in (arm, PRINTED)]
    return "keeps runs from falling" if shares[0] < shares[1] else "makes more runs fall"


def secondary() -> dict[str, tuple[Interval, float]]:
    """Final CTR of each part minus that as printed: Welch's interval, and Holm's p."""
    reference = list(runs().of(PRINTED).values())
    ends = {arm: list(runs().of(arm).values()) for arm in alone()}
    p = holm([float(ttest_ind(x, reference, equal_var=False).pvalue) for x in ends.values()])
    return {arm: (welch(x, reference), one) for (arm, x), one in zip(ends.items(), p, strict=True)}


def said() -> str:
    """What the parts do, in a sentence; those that do something first."""
    ordered = sorted(alone(), key=lambda arm: answer(arm) == "open")
    by = grouped({arm: answer(arm) for arm in ordered}, str)
    return "; ".join(f"{word}: {listing(arms)}" for word, arms in by.items())


def reading() -> str:
    """What AA says in words; nothing before it has been run."""
    if not known():
        return ""
    every, chances = list(runs().runs), primary()
    tests = ", ".join(f"{arm} {chance(chances[arm])}" for arm in alone())
    gaps = "; ".join(
        f"{arm} {interval(gap, sign=True)} ({chance(p)})" for arm, (gap, p) in secondary().items()
    )
    middles = levels({arm: iqm(list(runs().of(arm).values())) for arm in every})
    return (
        "**Which part of the cure keeps runs from falling** (AA of the plan; VirtualTaobao, LSER "
        f"as printed with one part, 90,000 sessions, {len(runs().of(alone()[0]))} new seeds from "
        f"180 on, {_made().whole()}; beside them S's runs as printed and K's with the whole cure; "
        "contrast is a coin per item and random draws from the whole memory). By "
        f"the primary test, Fisher's with Holm over the {len(alone())}: **{said()}**. Runs that "
        "end more than a tenth of the possible below their best: "
        f"{listing(runs().fell(every))} ({tests}, against as printed). Final CTR "
        f"{levels({arm: runs().mean(arm) for arm in every})}; minus as printed, Welch, Holm over "
        f"the {len(alone())}: {gaps}. Interquartile means {middles}. {_believed()} {_means()}"
    )


def _means() -> str:
    """What follows for the cause, where it does."""
    found = [answer(arm) for arm in ("the newest alone", "contrast alone")]
    if found != ["keeps runs from falling", "open"]:
        return ""
    return (
        "*What follows* (read after the test): batches without contrast, the likely cause until "
        "now, do not explain the fall, as contrast alone does not hold runs. What the critic lacks "
        "is, it seems, what its agent does now: with the newest steps in every batch it values its "
        f"actions at what they earn, though in {runs().one_reward('the newest alone'):.2f} of the "
        "batches all rewards, those of the newest included, are still equal. That the best of a "
        "bucket are old cannot be all of it: those of reward-top are as old, and it falls less "
        f"({_top()})."
    )


def _top() -> str:
    """How many runs of reward-top as printed fell."""
    return more_seeds.runs().fell(["reward-top"])[0].removeprefix("reward-top ")


def in_short() -> str:
    """The primary test in a sentence for the first screens."""
    if not known():
        return ""
    return (
        "**Which part of the cure keeps runs from falling** (AA of the plan; contrast is a coin "
        f"per item and random draws from the whole memory): {said()}. Runs that fell: "
        f"{listing(runs().fell(list(runs().runs)))}."
    )


def _belief(arm: str) -> Belief:
    """What the critics of an arm believe; K's runs recorded no values."""
    return Belief(np.nan, np.nan) if arm == WHOLE else runs().belief(arm)


def _believed() -> str:
    asked = [arm for arm in runs().runs if arm != WHOLE]
    told = [
        f"{arm} {_belief(arm).excess:.2f}, {number(_belief(arm).follows, digits=2)} and "
        f"{runs().one_reward(arm):.2f}"
        for arm in asked
    ]
    return (
        f"Values as a share of their bound minus rewards as a share of the largest (last {LAST} "
        "points, median run), how values follow rewards over runs (Spearman) and the share of "
        f"batches with one reward: {listing(told)}."
    )


def table() -> str:
    """Every arm, in the order of the plan."""
    lines = [
        "| LSER | fell | CTR [95 %] | interquartile mean | minus as printed [95 %] | worst run | "
        "over training | values minus rewards | values follow rewards | batches with one reward | "
        "seeds |",
        "|" + "---|" * 11,
    ]
    gaps = secondary()
    for arm in runs().runs:
        ends, (excess, follows) = list(runs().of(arm).values()), _belief(arm)
        lines.append(
            row(
                *(arm, str(fell(arm)[0]), interval(mean_t(ends)), f"{iqm(ends):.3f}"),
                interval(gaps[arm][0], sign=True) if arm in gaps else "",
                *(f"{min(ends):.3f}", f"{runs().area(arm):.3f}"),
                *(number(x, digits=2) for x in (excess, follows, runs().one_reward(arm))),
                str(len(ends)),
            )
        )
    return "\n".join(lines)


def block() -> str:
    """The words and the table."""
    return f"{reading()}\n\n{table()}" if known() else ""


if __name__ == "__main__":
    pack_or_print(sys.argv[1:], "parts", FILE, block)

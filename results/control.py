"""What the hash adds at the paper's length: the figures of Y and Z in plan.md.

LSER is read beside shuffled-code, its own buckets filled with anybody's transitions: with the cure
(Y, beside K's runs) and as printed (Z, beside S's). ``python results/planned.py FOLDER yz --arms
...`` makes the runs, ``python results/control.py pack FOLDER`` writes ``cure_control.jsonl.gz`` and
``length_control.jsonl.gz``; without arguments it prints every figure from there.
"""

import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import cure
import length
import numpy as np
from committed import RESULTS, by_arm
from delayed import verdict
from scored import LAST, Scored, gather, row, scored
from standing import Arms, chance

from lser.experiments.records import Record
from lser.report.stats import Interval, iqm, mean_t, welch
from lser.report.style import interval, listing, number

CURED, PRINTED = RESULTS / "cure_control.jsonl.gz", RESULTS / "length_control.jsonl.gz"
OURS, CONTROL, KEY = "lser", "shuffled-code", "metric"
NEGLIGIBLE, LOW = 0.03, cure.LOW
SAID = {
    "adds something": "the hash **adds something**",
    "takes something": "the hash **takes something away**",
    "adds nothing": "the hash **adds nothing**",
    "open": "it **is open** whether the hash adds anything",
}


def cured() -> Arms | None:
    """LSER and its control with the cure, on K's seeds; None before Y has run."""
    return _both(CURED, cure.runs().runs, cure.CURED)


def printed() -> Arms | None:
    """The same as printed, on the seeds of S that the control has; None before Z has run."""
    return _both(PRINTED, length.runs().runs, "")


@cache
def _both(file: Path, known: Mapping[str, Mapping[int, Record]], ending: str) -> Arms | None:
    if not file.is_file():
        return None
    theirs = scored(by_arm(file)).runs[CONTROL + ending]
    return Arms({OURS: known[OURS + ending], CONTROL: theirs})


def answer(arms: Arms) -> str:
    """What the hash does: a side that is clear first, then whether the interval is narrow."""
    found = arms.gap(OURS, CONTROL, KEY)
    side = verdict(found.mean, found.p)
    if side != "not separated":
        return "adds something" if side == "above" else "takes something"
    within = -NEGLIGIBLE < found.mean.low and found.mean.high < NEGLIGIBLE
    return "adds nothing" if within else "open"


def cured_reading() -> str:
    """What Y says in words; nothing before it has run."""
    arms = cured()
    if arms is None:
        return ""
    return (
        "**What the hash adds with the cure, at the paper's length** (Y of the plan; VirtualTaobao, "
        f"{_whole(arms)}). By the primary test {SAID[answer(arms)]}: {_test(arms)}. Runs below "
        f"{LOW:g} at the end: {_counted(arms, _low)}. {_told(arms)}"
    )


def printed_reading() -> str:
    """What Z says in words, as far as it has run; nothing before."""
    arms = printed()
    if arms is None:
        return ""
    shares = listing([f"{name(arm)} {_share(arms, arm):.2f}" for arm in arms.runs])
    return (
        "**What the hash adds as printed, at the paper's length** (Z of the plan, its primary test; "
        f"VirtualTaobao, {_whole(arms)}). {SAID[answer(arms)].capitalize()}: {_test(arms)}. Shares "
        f"of the possible: {shares}. {_told(arms)} Ten more seeds of reward-top, AER, SER and HER, "
        "Z's secondary tests, have not run."
    )


def in_short() -> str:
    """Both tests in a sentence for the first screens; nothing before they have run."""
    found = {"with the cure (Y)": cured(), "as printed (Z)": printed()}
    parts = [
        f"{where} {SAID[answer(arms)]}, {_difference(arms)}"
        for where, arms in found.items()
        if arms is not None
    ]
    if not parts:
        return ""
    return (
        "**What the hash itself adds at the paper's length** (LSER minus shuffled-code, its own "
        f"buckets filled with anybody's transitions): {'; '.join(parts)}."
    )


def name(arm: str) -> str:
    """An arm as a reader knows it."""
    return "LSER" if arm == OURS else arm


def _whole(arms: Arms) -> str:
    seeds = sorted(arms.runs[CONTROL])
    at = f"{arms.sessions(OURS, CONTROL):,} sessions"
    return f"{at}, seeds {seeds[0]} to {seeds[-1]}"


def _difference(arms: Arms) -> str:
    found = arms.gap(OURS, CONTROL, KEY)
    return f"{interval(found.mean, sign=True)}, {chance(found.p)}, {found.seeds} seeds"


def _test(arms: Arms) -> str:
    ends = listing([f"{name(arm)} {arms.mean(arm, KEY):.3f}" for arm in arms.runs])
    better = interval(arms.improvement(OURS, CONTROL, KEY))
    return (
        f"final CTR {ends}, LSER minus it {_difference(arms)} (Welch "
        f"{interval(_welch(arms), sign=True)}; a run of LSER ends above one of it with probability "
        f"{better})"
    )


def _welch(arms: Arms) -> Interval:
    ours, theirs = arms.scores(OURS, KEY, CONTROL), arms.scores(CONTROL, KEY, OURS)
    return welch([ours[seed] for seed in theirs if seed in ours], list(theirs.values()))


def _scored(arms: Arms, arm: str) -> Scored:
    """The runs of an arm that both have the seeds of."""
    seeds = arms.runs[CONTROL]
    return Scored({arm: {at: run for at, run in arms.runs[arm].items() if at in seeds}})


def _share(arms: Arms, arm: str) -> float:
    return _scored(arms, arm).share(arm)


def _low(one: Scored, arm: str) -> int:
    return sum(end < LOW for end in one.of(arm).values())


def _fell(one: Scored, arm: str) -> int:
    return sum(one.fallen(arm).values())


def _counted(arms: Arms, count: object) -> str:
    assert callable(count)
    found = {arm: _scored(arms, arm) for arm in arms.runs}
    return listing([f"{name(a)} {count(one, a)} of {len(one.of(a))}" for a, one in found.items()])


def _told(arms: Arms) -> str:
    """What was to be told beside the test, and what critics believe, which was not planned."""
    valued = {arm: _scored(arms, arm) for arm in arms.runs}
    believed = [
        f"{name(arm)} {one.belief(arm).excess:.2f}, {number(one.belief(arm).follows, digits=2)} "
        f"and {number(one.one_reward(arm), digits=2)}"
        for arm, one in valued.items()
        if any("value_own_mean" in point for run in one.everything for point in run.curve)
    ]
    fell = f"Runs that end more than a tenth of the possible below their best: {_counted(arms, _fell)}."
    if not believed:
        return fell
    return (
        f"{fell} Critics' values as a share of their bound minus rewards as a share of the largest "
        f"(last {LAST} points, median run), how values follow rewards over runs (Spearman) and the "
        f"share of batches with one reward: {listing(believed)}."
    )


def table() -> str:
    """LSER and its control, both ways."""
    lines = [
        "| | arm | CTR [95 %] | interquartile mean | lowest run | share of the possible | reward "
        f"per step | while learning | below {LOW:g} | fell | over training | seeds |",
        "|" + "---|" * 12,
    ]
    for where, arms in (("with the cure (Y)", cured()), ("as printed (Z)", printed())):
        for arm in arms.runs if arms else ():
            one = _scored(arms, arm) if arms else None
            assert one is not None
            ends = list(one.of(arm).values())
            lines.append(
                row(
                    *(where, name(arm), interval(mean_t(ends)), f"{iqm(ends):.3f}"),
                    *(f"{min(ends):.3f}", f"{one.share(arm):.2f}"),
                    *(f"{one.mean(arm, key):.3f}" for key in ("reward_per_step", "learning_metric")),
                    *(str(_low(one, arm)), str(_fell(one, arm)), f"{one.area(arm):.3f}"),
                    str(len(ends)),
                )
            )
    return "\n".join(lines)


def block() -> str:
    """The words and the table."""
    read = [text for text in (cured_reading(), printed_reading()) if text]
    return "\n\n".join([*read, table()]) if read else ""


def main() -> None:
    """Pack what has run, or print every figure."""
    if sys.argv[1:]:
        for study, file in (("cure", CURED), ("length", PRINTED)):
            gather(study, file, *map(Path, sys.argv[2:]))
    else:
        print(block())


if __name__ == "__main__":
    main()

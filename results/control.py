"""What the hash adds at the paper's length: the figures of Y and Z in plan.md.

LSER is read beside shuffled-code, its own buckets filled with anybody's transitions: with the cure
(Y, beside K's runs) and as printed (Z, beside S's). ``python results/planned.py FOLDER y z --arms
...`` makes the runs, ``python results/control.py pack FOLDER`` writes ``cure_control.jsonl.gz`` and
``length_control.jsonl.gz``; without arguments it prints every figure from there.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import cure
import length
import numpy as np
from committed import RESULTS
from delayed import verdict
from pair import KEY, OURS, Pair
from scored import LAST, Scored, gather, row
from standing import chance

from lser.report.stats import iqm, mean_t
from lser.report.style import interval, listing, name_of, number

CONTROL = "shuffled-code"
NEGLIGIBLE = 0.03
SAID = {
    "adds something": "the hash **adds something**",
    "takes something": "the hash **takes something away**",
    "adds nothing": "the hash **adds nothing**",
    "open": "it **is open** whether the hash adds anything",
}


class Control(Pair):
    """LSER beside its control."""

    def answer(self) -> str:
        """What the hash does: a side that is clear first, then whether the interval is narrow."""
        found = self.gap
        side = verdict(found.mean, found.p)
        if side != "not separated":
            return "adds something" if side == "above" else "takes something"
        within = found.mean.low > -NEGLIGIBLE and found.mean.high < NEGLIGIBLE
        return "adds nothing" if within else "open"

    def difference(self) -> str:
        """LSER minus its control, in words."""
        found = self.gap
        return f"{interval(found.mean, sign=True)}, {chance(found.p)}, {found.seeds} seeds"

    def reading(self) -> str:
        """What it says in words; nothing before it has run."""
        if not self.known():
            return ""
        seeds = sorted(self.standing.runs[CONTROL])
        ends = listing([f"{name_of(a)} {self.standing.mean(a, KEY):.3f}" for a in (OURS, CONTROL)])
        apart = self.standing.welch(OURS, CONTROL, KEY)
        better = interval(self.standing.improvement(OURS, CONTROL, KEY))
        low = self._counted(lambda one, arm: sum(x < cure.LOW for x in one.of(arm).values()))
        return (
            f"**What the hash adds {self.where}, at the paper's length** ({self.letters.upper()} "
            f"of the plan; VirtualTaobao, {self.standing.sessions(OURS, CONTROL):,} sessions, "
            f"seeds {seeds[0]} to {seeds[-1]}; the control is LSER's own buckets filled with "
            f"anybody's transitions). By the primary test {SAID[self.answer()]}: final CTR {ends}, "
            f"LSER minus it {self.difference()} (Welch {interval(apart, sign=True)}; a run of LSER "
            f"ends above one of it with probability {better}). Runs below {cure.LOW:g} at the end: "
            f"{low}; that end more than a tenth of the possible below their best: "
            f"{self._counted(_fell)}. {self._believed()}"
        ).rstrip()

    def _counted(self, count: Callable[[Scored, str], int]) -> str:
        found = {arm: self.alone(arm) for arm in self.standing.runs}
        return listing([f"{name_of(a)} {count(s, a)} of {len(s.of(a))}" for a, s in found.items()])

    def _believed(self) -> str:
        """What the critics of both believe, where they were asked: not planned."""
        found = {arm: self.alone(arm) for arm in self.standing.runs}
        asked = {a: one for a, one in found.items() if not np.isnan(one.values(a)[0])}
        parts = [
            f"{name_of(arm)} {one.belief(arm).excess:.2f}, "
            f"{number(one.belief(arm).follows, digits=2)} and "
            f"{number(one.one_reward(arm), digits=2)}"
            for arm, one in asked.items()
        ]
        return (
            "Values as a share of their bound minus rewards as a share of the largest (last "
            f"{LAST} points, median run), how values follow rewards over runs (Spearman) and the "
            f"share of batches with one reward: {listing(parts)}. "
        )

    def table(self) -> str:
        """LSER and its control."""
        lines = [
            f"| {self.where} | CTR [95 %] | interquartile mean | lowest run | share of the "
            f"possible | reward per step | while learning | below {cure.LOW:g} | fell | over "
            "training | seeds |",
            "|" + "---|" * 11,
        ]
        for arm in self.standing.runs:
            one = self.alone(arm)
            ends = list(one.of(arm).values())
            lines.append(
                row(
                    *(name_of(arm), interval(mean_t(ends)), f"{iqm(ends):.3f}"),
                    *(f"{min(ends):.3f}", f"{one.share(arm):.2f}"),
                    *(
                        f"{one.mean(arm, key):.3f}"
                        for key in ("reward_per_step", "learning_metric")
                    ),
                    *(str(sum(end < cure.LOW for end in ends)), str(_fell(one, arm))),
                    *(f"{one.area(arm):.3f}", str(len(ends))),
                )
            )
        return "\n".join(lines)

    def block(self) -> str:
        """The words and the table."""
        return f"{self.reading()}\n\n{self.table()}" if self.known() else ""


def _fell(one: Scored, arm: str) -> int:
    return sum(one.fallen(arm).values())


Y = Control(
    *("y", "with the cure", "cure", CONTROL, RESULTS / "cure_control.jsonl.gz"),
    beside=lambda: cure.runs().runs,
    ending=cure.CURED,
)
Z = Control(
    *("z", "as printed", "length", CONTROL, RESULTS / "length_control.jsonl.gz"),
    beside=lambda: length.runs().runs,
)


def found() -> bool:
    """Whether either of them sees the hash do something."""
    return any(one.known() and one.answer() == "adds something" for one in (Y, Z))


def in_short() -> str:
    """Both tests in a sentence for the first screens; nothing before they have run."""
    parts = [
        f"{one.where} ({one.letters.upper()} of the plan) {SAID[one.answer()]}, {one.difference()}"
        for one in (Y, Z)
        if one.known()
    ]
    if not parts:
        return ""
    return (
        "**What the hash itself adds at the paper's length** (LSER minus shuffled-code, its own "
        f"buckets filled with anybody's transitions): {'; '.join(parts)}."
    )


def main() -> None:
    """Pack what has run, or print every figure."""
    if sys.argv[1:]:
        for one in (Y, Z):
            gather(one.study, one.file, *map(Path, sys.argv[2:]))
    else:
        print("\n\n".join(one.block() for one in (Y, Z)))


if __name__ == "__main__":
    main()

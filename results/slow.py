"""The memories that wait for errors, which S and T left out or cut off: AB and AC in plan.md.

Single processes made the runs (``lser study length`` and ``cure``, one arm each); ``python
results/slow.py pack FOLDER`` writes ``length_slow.jsonl.gz`` and ``cure_slow.jsonl.gz`` from those
that ended; without arguments it prints every figure from there.
"""

import sys
from pathlib import Path

import cure
import length
from committed import RESULTS
from delayed import verdict
from pair import KEY, OURS, Pair
from scored import Runs, gather, row
from standing import chance, complete

from lser.report.stats import mean_t
from lser.report.style import interval, name_of

FEWEST = 5  # complete runs, for a reading


class Left(Pair):
    """LSER beside one memory that waited, of whose runs the complete ones count."""

    def known(self) -> bool:
        """Whether enough of it has been run."""
        return super().known() and len(self.standing.runs[self.memory]) >= FEWEST

    def theirs(self) -> Runs:
        """The complete runs."""
        found = super().theirs().items()
        return {arm: {s: run for s, run in of.items() if complete(run)} for arm, of in found}

    def reading(self) -> str:
        """What it says in words; nothing before enough of it has been run."""
        if not self.known():
            return ""
        arms, name = (OURS, self.memory), name_of(self.memory)
        side = verdict(self.gap.mean, self.gap.p)
        ends = " and ".join(f"{name_of(a)} {self.standing.mean(a, KEY):.3f}" for a in arms)
        apart = self.standing.welch(OURS, self.memory, KEY)
        better = interval(self.standing.improvement(OURS, self.memory, KEY))
        fell = " and ".join(self.alone(a).fell([a])[0] for a in arms)
        return (
            f"**{name} {self.where} to the paper's length** ({self.letters.upper()} of the plan; "
            f"VirtualTaobao, 90,000 sessions, {self.gap.seeds} seeds from "
            f"{min(self.standing.runs[self.memory])} on). LSER is **{side}"
            f"{' from' if side == 'not separated' else ''} {name}**: final CTR {ends}, "
            f"{interval(self.gap.mean, sign=True)}, {chance(self.gap.p)} (Welch "
            f"{interval(apart, sign=True)}; a run of LSER ends above one of {name} with "
            f"probability {better}). Runs that end more than a tenth of the possible below their "
            f"best: {fell}. {self._believed()}"
        ).rstrip()

    def _believed(self) -> str:
        """What its critics believe, as S read it."""
        found = self.alone(self.memory).belief(self.memory)
        return (
            f"{name_of(self.memory)}'s values as a share of their bound minus rewards as a share "
            f"of the largest, median run: {found.excess:.2f}; over runs values follow what is "
            f"earned by {found.follows:.2f} (Spearman)."
        )

    def table(self) -> str:
        """Both arms."""
        lines = [
            f"| {self.where} | CTR [95 %] | share of the possible | over training | worst run | "
            "fell | seeds |",
            "|" + "---|" * 7,
        ]
        for arm in self.standing.runs:
            one = self.alone(arm)
            ends = list(one.of(arm).values())
            lines.append(
                row(
                    *(name_of(arm), interval(mean_t(ends)), f"{one.share(arm):.2f}"),
                    *(f"{one.area(arm):.3f}", f"{min(ends):.3f}"),
                    *(str(sum(one.fallen(arm).values())), str(len(ends))),
                )
            )
        return "\n".join(lines)

    def block(self) -> str:
        """The words and the table."""
        return f"{self.reading()}\n\n{self.table()}" if self.known() else ""


PRINTED = Left(
    *("ab", "as printed", "length", "der", RESULTS / "length_slow.jsonl.gz"),
    beside=lambda: length.runs().runs,
)
CURED = Left(
    *("ac", "with the cure", "cure", "der", RESULTS / "cure_slow.jsonl.gz"),
    beside=lambda: cure.runs().runs,
    ending=cure.CURED,
)


def main() -> None:
    """Pack what has run, or print every figure."""
    if sys.argv[1:]:
        for one in (PRINTED, CURED):
            gather(one.study, one.file, *map(Path, sys.argv[2:]))
    else:
        print("\n\n".join(filter(None, (one.block() for one in (PRINTED, CURED)))))


if __name__ == "__main__":
    main()

"""LSER's lead over controls on Bazaar's map, by region: what V and X of plan.md read alike."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from locality import LEVEL, SHORT, Cell, Gap, Scores, at, runs_of, share, signed
from regions import NEGLIGIBLE, mean_gap
from standing import chance

from lser.report.stats import holm
from lser.report.style import name_of

OURS = "lser"
Leads = dict[str, tuple[Gap, float]]  # by control, with Holm's p


def verdict(found: Leads) -> str:
    """Whether locality pays, does not pay, costs, or is open; by V's rule size comes first."""
    if _above(found):
        return f"pays, by less than {NEGLIGIBLE:g}" if _little(found) else "pays"
    return "does not pay" if _little(found) else "costs" if _below(found) else "open"


def signs_first(found: Leads) -> str:
    """The same by the rule of X: whatever lies clearly on one side is no tie, however small."""
    if _above(found) or _below(found):
        return "pays" if _above(found) else "costs"
    return "does not pay" if _little(found) else "open"


def _above(found: Leads) -> bool:
    return all(side == 1 for side in _sides(found))


def _below(found: Leads) -> bool:
    return -1 in _sides(found)


def _sides(found: Leads) -> list[float]:
    """Of each control: 1 where LSER is clearly above it, -1 where below, 0 where neither."""
    return [float(np.sign(one.mean.estimate)) * (p <= LEVEL) for one, p in found.values()]


def _little(found: Leads) -> bool:
    """Whether every interval lies within what is not worth having."""
    means = [one.mean for one, _ in found.values()]
    return all(mean.low > -NEGLIGIBLE and mean.high < NEGLIGIBLE for mean in means)


@dataclass(frozen=True)
class Leading:
    """The runs of a part of the map, all memories with the same ending to their arm's name."""

    file: Path
    cells: Sequence[Cell]
    controls: Sequence[str]
    ending: str = ""
    rule: Callable[[Leads], str] = verdict

    def shares(self, cell: Cell, memory: str) -> Scores:
        """The share of the possible at 2,000 sessions of every seed."""
        found = runs_of(self.file).get((cell, f"{memory}{self.ending}"), {})
        return {seed: share(run, at(run, SHORT)) for seed, run in found.items()}

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """Those that every cell and memory has."""
        memories = (OURS, *self.controls)
        held = [set(self.shares(cell, memory)) for cell in self.cells for memory in memories]
        return tuple(sorted(set.intersection(*held)))

    def level(self, cells: Sequence[Cell], memory: str) -> float:
        """The mean share of a memory over cells and seeds."""
        found = [self.shares(cell, memory) for cell in cells]
        return float(np.mean([scores[seed] for scores in found for seed in self.seeds]))

    def lead(self, cells: Sequence[Cell], control: str) -> Gap:
        """LSER minus a control, the mean over cells of every seed."""
        pairs = [(self.shares(cell, OURS), self.shares(cell, control)) for cell in cells]
        return mean_gap(pairs, self.seeds)

    def leads(self, regions: Iterable[Sequence[Cell]]) -> list[Leads]:
        """LSER minus each control in every region, Holm over all of them."""
        found = [{c: self.lead(cells, c) for c in self.controls} for cells in regions]
        adjusted = iter(holm([one.p for by in found for one in by.values()]))
        return [{c: (one, next(adjusted)) for c, one in by.items()} for by in found]

    def table(self) -> str:
        """Every cell, with Holm over all of them."""
        means = " | ".join(map(name_of, self.controls))
        minus = " | ".join(f"minus {name_of(c)}" for c in self.controls)
        lines = [
            f"| sparsity | discount | state dependence | LSER | {means} | {minus} | locality |",
            "|" + "---|" * (5 + 2 * len(self.controls)),
        ]
        found = self.leads([cell] for cell in self.cells)
        for cell, leads in zip(self.cells, found, strict=True):
            row = [
                *(f"{cell.sparsity:g}", f"{cell.discount:g}", f"{cell.dependence:g}"),
                *(f"{self.level([cell], memory):.2f}" for memory in (OURS, *self.controls)),
                *(signed(one.mean) for one, _ in leads.values()),
                f"**{self.rule(leads)}**",
            ]
            lines.append("| " + " | ".join(row) + " |")
        return "\n".join(lines)


def said(verdict: str) -> str:
    """A verdict as the verb of a sentence."""
    return "is open" if verdict == "open" else verdict


def told(found: Leads) -> str:
    """Leads in words."""
    return "; ".join(
        f"{name_of(c)} {signed(one.mean)} ({chance(p)})" for c, (one, p) in found.items()
    )

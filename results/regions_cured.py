"""Whether locality pays with the cure for all: the figures of V in plan.md.

``python results/regions_cured.py run FOLDER PLACE PLACES`` makes every PLACES-th run, one after
another, and goes on where it stood; ``pack FOLDER`` keeps what is finished in
``locality_cured.jsonl.gz``; without arguments it prints every figure from there.
"""

import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from campaign import run_pack_or_print
from committed import RESULTS
from locality import CELLS, LEVEL, SHORT, Cell, Gap, Scores, at, runs_of, share, signed
from regions import NEGLIGIBLE, bandit, mean_gap
from standing import chance, ran

from lser.experiments import records
from lser.experiments.studies import plan
from lser.experiments.study import Job, job_for
from lser.report.stats import holm
from lser.report.style import listing, name_of

FILE = RESULTS / "locality_cured.jsonl.gz"
COMMAND = "lser study locality --scale medium --seeds 30"
OURS, CONTROLS = "lser", ("uniform", "shuffled-code")
HERE = tuple(cell for cell in CELLS if cell.sparsity == 0.02)
FAR = tuple(cell for cell in HERE if cell.discount == 0.99)
NEAR = tuple(cell for cell in HERE if cell.discount == 0)
NEWEST = range(120, 130)


def with_the_cure(arm: str) -> str:
    """What the arm is called in the records."""
    return f"{arm} with the cure"


def jobs(folder: Path) -> list[Job]:
    """The runs, seed by seed."""
    arms = [with_the_cure(arm) for arm in (OURS, *CONTROLS)]
    runs = [
        one
        for one in plan("locality", "medium", 30)
        if one.seed in NEWEST
        and one.label in arms
        and (one.batch_size, one.simulator.sparsity) == (32, 0.02)
    ]
    return [job_for(one, folder, COMMAND) for one in runs]


def there() -> bool:
    """Whether it has run."""
    return FILE.exists()


def shares(cell: Cell, arm: str) -> Scores:
    """The share of the possible at 2,000 sessions of every seed."""
    found = runs_of(FILE).get((cell, with_the_cure(arm)), {})
    return {seed: share(run, at(run, SHORT)) for seed, run in found.items()}


@cache
def seeds() -> tuple[int, ...]:
    """Those that every cell and arm has."""
    held = [set(shares(cell, arm)) for cell in HERE for arm in (OURS, *CONTROLS)]
    return tuple(sorted(set.intersection(*held)))


def lead(cells: Sequence[Cell], control: str) -> Gap:
    """LSER minus a control, both with the cure, the mean over cells of every seed."""
    return mean_gap([(shares(cell, OURS), shares(cell, control)) for cell in cells], seeds())


def level(cells: Sequence[Cell], arm: str) -> float:
    """The mean share of an arm over cells and seeds."""
    return float(np.mean([shares(cell, arm)[s] for cell in cells for s in seeds()]))


Leads = dict[str, tuple[Gap, float]]  # by control, with Holm's p


def leads(regions: Iterable[Sequence[Cell]]) -> list[Leads]:
    """LSER minus each control in every region, Holm over all of them."""
    found = [{control: lead(cells, control) for control in CONTROLS} for cells in regions]
    adjusted = iter(holm([one.p for by in found for one in by.values()]))
    return [{c: (one, next(adjusted)) for c, one in by.items()} for by in found]


def verdict(found: Leads) -> str:
    """Whether locality pays, costs, does not pay, or is open, by the rule of the plan."""
    sides = [np.sign(one.mean.estimate) * (p <= LEVEL) for one, p in found.values()]
    little = all(
        one.mean.low > -NEGLIGIBLE and one.mean.high < NEGLIGIBLE for one, _ in found.values()
    )
    if sides == [1, 1]:
        return f"pays, by less than {NEGLIGIBLE:g}" if little else "pays"
    return "does not pay" if little else "costs" if -1 in sides else "open"


@cache
def primary() -> tuple[Leads, str]:
    """LSER minus each control over all six cells, and the verdict."""
    [found] = leads([HERE])
    return found, verdict(found)


@cache
def by_discount() -> list[Leads]:
    """LSER minus each control at discount 0 and at .99, Holm over the four."""
    return leads([NEAR, FAR])


def said(verdict: str) -> str:
    """A verdict as the verb of a sentence."""
    return "is open" if verdict == "open" else verdict


def _told(found: Leads) -> str:
    return "; ".join(
        f"{name_of(c)} {signed(one.mean)} ({chance(p)})" for c, (one, p) in found.items()
    )


def reading() -> str:
    """What V says in words; nothing before it has run."""
    if not there():
        return ""
    found, outcome = primary()
    near, far = by_discount()
    cells = [verdict(one) for one in leads([cell] for cell in HERE)]
    kinds = listing([f"{said(kind)} in {cells.count(kind)}" for kind in dict.fromkeys(cells)])
    ends = [abs(end) for one, _ in found.values() for end in (one.mean.low, one.mean.high)]
    levels = "; ".join(
        f"discount {name} "
        + listing([f"{name_of(arm)} {level(part, arm):.2f}" for arm in (OURS, *CONTROLS)])
        for name, part in (("0", NEAR), (".99", FAR))
    )
    return (
        "**Whether locality pays with the cure** (V of the plan; Bazaar, sparsity .02, "
        f"batch 32, 2,000 sessions, {len(seeds())} new seeds; shares of the possible). With the "
        f"cure for every memory, over six cells, locality **{said(outcome)}** by the primary test: "
        f"LSER minus each control, Holm over the two, {_told(found)}; *does not pay* would be both "
        f"intervals within {NEGLIGIBLE:g} of 0, and their farthest end lies at {max(ends):.5f}. By "
        f"discount, Holm over the four: at 0 locality {said(verdict(near))} ({_told(near)}), at "
        f".99 it {said(verdict(far))} ({_told(far)}). Cell by cell, Holm over the "
        f"{2 * len(HERE)}, it {kinds} of {len(HERE)}. Means: {levels}; a linear bandit has "
        f"{bandit(FAR):.2f} there after as many sessions (one seed in each of three worlds)."
    )


def table() -> str:
    """Every cell."""
    lines = [
        "| discount | state dependence | LSER | "
        + " | ".join(f"{name_of(c)}" for c in CONTROLS)
        + " | "
        + " | ".join(f"minus {name_of(c)}" for c in CONTROLS)
        + " | locality |",
        "|" + "---|" * 8,
    ]
    for cell, found in zip(HERE, leads([cell] for cell in HERE), strict=True):
        row = [
            *(f"{cell.discount:g}", f"{cell.dependence:g}"),
            *(f"{level([cell], arm):.2f}" for arm in (OURS, *CONTROLS)),
            *(signed(one.mean) for one, _ in found.values()),
            f"**{verdict(found)}**",
        ]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def told() -> str:
    """What the table is, and how its runs were made."""
    return (
        "With the cure for every memory, sparsity .02, on newer seeds (V of the plan; Holm over "
        f"all of them): {ran(records.find(FILE))}"
    )


def block() -> str:
    """Every figure; nothing before it has run."""
    return f"{reading()}\n\n{told()}\n\n{table()}" if there() else ""


if __name__ == "__main__":
    run_pack_or_print(sys.argv[1:], lambda _, folder: jobs(folder), FILE, block)

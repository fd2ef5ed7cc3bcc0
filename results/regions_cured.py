"""Whether locality pays with the cure for all: the figures of V in plan.md.

``python results/regions_cured.py run FOLDER PLACE PLACES`` makes every PLACES-th run, one after
another, and goes on where it stood; ``pack FOLDER`` keeps what is finished in
``locality_cured.jsonl.gz``; without arguments it prints every figure from there.
"""

import sys
from functools import cache
from pathlib import Path

from campaign import run_pack_or_print
from committed import RESULTS
from leads import OURS, Leading, Leads, said, told, verdict
from locality import CELLS
from regions import NEGLIGIBLE, bandit
from standing import ran

from lser.experiments import records
from lser.experiments.studies import plan
from lser.experiments.study import Job, job_for
from lser.report.style import listing, name_of

FILE = RESULTS / "locality_cured.jsonl.gz"
COMMAND = "lser study locality --scale medium --seeds 30"
CONTROLS = ("uniform", "shuffled-code")
HERE = tuple(cell for cell in CELLS if cell.sparsity == 0.02)
FAR = tuple(cell for cell in HERE if cell.discount == 0.99)
NEAR = tuple(cell for cell in HERE if cell.discount == 0)
NEWEST = range(120, 130)
CURED = " with the cure"
HELD = Leading(FILE, HERE, CONTROLS, CURED)


def jobs(folder: Path) -> list[Job]:
    """The runs, seed by seed."""
    arms = [f"{arm}{CURED}" for arm in (OURS, *CONTROLS)]
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


@cache
def primary() -> tuple[Leads, str]:
    """LSER minus each control over all six cells, and the verdict."""
    [found] = HELD.leads([HERE])
    return found, verdict(found)


@cache
def by_discount() -> list[Leads]:
    """LSER minus each control at discount 0 and at .99, Holm over the four."""
    return HELD.leads([NEAR, FAR])


def reading() -> str:
    """What V says in words; nothing before it has run."""
    if not there():
        return ""
    found, outcome = primary()
    near, far = by_discount()
    cells = [verdict(one) for one in HELD.leads([cell] for cell in HERE)]
    kinds = listing([f"{said(kind)} in {cells.count(kind)}" for kind in dict.fromkeys(cells)])
    ends = [abs(end) for one, _ in found.values() for end in (one.mean.low, one.mean.high)]
    levels = "; ".join(
        f"discount {name} "
        + listing([f"{name_of(arm)} {HELD.level(part, arm):.2f}" for arm in (OURS, *CONTROLS)])
        for name, part in (("0", NEAR), (".99", FAR))
    )
    return (
        "**Whether locality pays with the cure** (V of the plan; Bazaar, sparsity .02, "
        f"batch 32, 2,000 sessions, {len(HELD.seeds)} new seeds; shares of the possible). With the "
        f"cure for every memory, over six cells, locality **{said(outcome)}** by the primary test: "
        f"LSER minus each control, Holm over the two, {told(found)}; *does not pay* would be both "
        f"intervals within {NEGLIGIBLE:g} of 0, and their farthest end lies at {max(ends):.5f}. By "
        f"discount, Holm over the four: at 0 locality {said(verdict(near))} ({told(near)}), at "
        f".99 it {said(verdict(far))} ({told(far)}). Cell by cell, Holm over the "
        f"{2 * len(HERE)}, it {kinds} of {len(HERE)}. Means: {levels}; a linear bandit has "
        f"{bandit(FAR):.2f} there after as many sessions (one seed in each of three worlds)."
    )


def caption() -> str:
    """What the table is, and how its runs were made."""
    return (
        "With the cure for every memory, sparsity .02, on newer seeds (V of the plan; Holm over "
        f"all of them): {ran(records.find(FILE))}"
    )


def tables() -> list[str]:
    """The table behind its caption; nothing before it has run."""
    return [caption(), HELD.table()] if there() else []


def block() -> str:
    """Every figure; nothing before it has run."""
    return "\n\n".join(filter(None, [reading(), *tables()]))


if __name__ == "__main__":
    run_pack_or_print(sys.argv[1:], lambda _, folder: jobs(folder), FILE, block)

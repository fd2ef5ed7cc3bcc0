"""Where locality pays with batches of 128: the figures of X in plan.md.

``python results/regions_large.py run FOLDER PLACE PLACES`` makes every PLACES-th run, one after
another, and goes on where it stood; ``pack FOLDER`` keeps what is finished in
``locality_large.jsonl.gz``; without arguments it prints every figure from there.
"""

import sys
from functools import cache
from pathlib import Path

from campaign import run_pack_or_print
from committed import RESULTS
from leads import OURS, Leading, Leads, said, signs_first, told
from locality import CELLS, CONTROLS
from planned import FIRST, fleets_of_d
from standing import ran

from lser.experiments import records
from lser.experiments.study import Job, job_for
from lser.report.style import listing, name_of

FILE = RESULTS / "locality_large.jsonl.gz"
COMMAND = "lser study locality --scale medium --seeds 20"
FAR = tuple(cell for cell in CELLS if cell.discount == 0.99)
NEAR = tuple(cell for cell in CELLS if cell.discount == 0)
HELD = Leading(FILE, CELLS, CONTROLS, rule=signs_first)
LEAST = 5  # seeds: that every cell and arm has, and that time was found for


def jobs(folder: Path) -> list[Job]:
    """The runs of the first five seeds, seed by seed."""
    first = FIRST[:LEAST]
    cells = [one for one in fleets_of_d()["first ten seeds, batch 128"] if one.seed in first]
    return [job_for(one, folder, COMMAND) for one in sorted(cells, key=lambda one: one.seed)]


def there() -> bool:
    """Whether it has run, with as many seeds as the plan asks for."""
    return FILE.exists() and len(HELD.seeds) >= LEAST


@cache
def by_discount() -> tuple[Leads, Leads]:
    """The primary tests: LSER minus each control at discount .99 and at 0, Holm in each."""
    return HELD.leads([FAR])[0], HELD.leads([NEAR])[0]


def reading() -> str:
    """What X says in words; nothing before it has run."""
    if not there():
        return ""
    far, near = by_discount()
    cells = [HELD.rule(one) for one in HELD.leads([cell] for cell in CELLS)]
    kinds = listing([f"{said(kind)} in {cells.count(kind)}" for kind in dict.fromkeys(cells)])
    levels = "; ".join(
        f"discount {name} "
        + listing([f"{name_of(arm)} {HELD.level(part, arm):.2f}" for arm in (OURS, *CONTROLS)])
        for name, part in ((".99", FAR), ("0", NEAR))
    )
    return (
        "**Where locality pays with batches of 128** (X of the plan, D's other half; Bazaar, as "
        f"printed, 2,000 sessions, {len(HELD.seeds)} seeds; shares of the possible). *With the "
        f"paper's discount of .99* (six cells) it **{said(HELD.rule(far))}**: LSER minus each "
        f"control, Holm over the three, {told(far)}. *With a discount of 0* (six cells) it "
        f"**{said(HELD.rule(near))}**: {told(near)}. Cell by cell, Holm over the "
        f"{len(CELLS) * len(CONTROLS)}, it {kinds} of {len(CELLS)}. Means: {levels}."
    )


def tables() -> list[str]:
    """The table behind its caption; nothing before it has run."""
    caption = "With batches of 128 (X of the plan; Holm over all of them):"
    return [f"{caption} {ran(records.find(FILE))}", HELD.table()] if there() else []


def block() -> str:
    """Every figure; nothing before it has run."""
    return "\n\n".join(filter(None, [reading(), *tables()]))


if __name__ == "__main__":
    run_pack_or_print(sys.argv[1:], lambda _, folder: jobs(folder), FILE, block)

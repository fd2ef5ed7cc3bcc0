"""Where locality pays, by region of Bazaar's map: the figures of U in plan.md.

``python results/regions.py run FOLDER PLACE PLACES`` makes every PLACES-th run, one after another,
and goes on where it stood; ``pack FOLDER`` keeps what is finished in
``locality_regions.jsonl.gz``, arms with the cure only if complete;
without arguments it prints every figure from there.
"""

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from campaign import run_pack_or_print
from committed import RESULTS
from locality import (
    CELLS,
    CONTROLS,
    LEVEL,
    PRIMARY,
    SHORT,
    Cell,
    Gap,
    Scores,
    at,
    linear_bandit,
    runs_of,
    share,
    signed,
    world_of,
)
from locality import shares as seen_before
from planned import SECOND, fleets_of_d
from standing import chance, ran

from lser.experiments import records
from lser.experiments.experiment import Experiment
from lser.experiments.studies import plan
from lser.experiments.study import Job, finished, job_for
from lser.report.stats import Interval, holm, mean_t, paired_p
from lser.report.style import listing, name_of

FILE = RESULTS / "locality_regions.jsonl.gz"
COMMAND = "lser study locality --scale medium --seeds 20"
OURS, MATCHED = "lser", "shuffled-code"
CURED = ("uniform with the cure", "reward-top with the cure", "lser with the cure")
NEW = tuple(cell for cell in CELLS if cell not in PRIMARY)
LONG_SIGHTED = tuple(cell for cell in NEW if cell.discount == 0.99)
SHORT_SIGHTED = tuple(cell for cell in NEW if cell.discount == 0)
FROZEN = tuple(cell for cell in LONG_SIGHTED if cell.sparsity == 0.02)  # where the cure ran too
NEGLIGIBLE = 0.03  # of the possible


def jobs(folder: Path) -> tuple[list[Job], list[Job]]:
    """The runs of U, seed by seed, and those of the arms with the cure, which come after."""
    cells = fleets_of_d()["second ten seeds, batch 32"]
    after = [one for one in plan("locality", "medium", 20) if _is_cured(one)]
    first, second = (
        [job_for(one, folder, COMMAND) for one in sorted(some, key=lambda one: one.seed)]
        for some in (cells, after)
    )
    return first, second


def _is_cured(one: Experiment) -> bool:
    dials = one.batch_size, one.agent.discount, one.simulator.sparsity
    return one.label in CURED and one.seed in SECOND and dials == (32, 0.99, 0.02)


def there() -> bool:
    """Whether it has run."""
    return FILE.exists()


def shares(cell: Cell, arm: str) -> Scores:
    """The share of the possible at 2,000 sessions of every seed that is new in the cell."""
    found = runs_of(FILE).get((cell, arm), {})
    return {seed: share(run, at(run, SHORT)) for seed, run in found.items()}


def together(cell: Cell, arm: str) -> Scores:
    """The same, with D's seeds."""
    new = shares(cell, arm) if there() and cell in NEW else {}
    return {**seen_before(cell, arm, SHORT), **new}


@cache
def seeds() -> tuple[int, ...]:
    """Those that every cell and arm has."""
    held = [set(shares(cell, arm)) for cell in NEW for arm in (OURS, *CONTROLS)]
    return tuple(sorted(set.intersection(*held)))


def lead(cells: Sequence[Cell], control: str, ours: str = OURS) -> Gap:
    """LSER minus a control, the mean over cells of every seed."""
    pairs = [(shares(cell, ours), shares(cell, control)) for cell in cells]
    return mean_gap(pairs, seeds())


def mean_gap(pairs: Sequence[tuple[Scores, Scores]], seeds: Sequence[int]) -> Gap:
    """One arm minus another, the mean over pairs of scores of every seed."""
    gaps = [float(np.mean([ours[s] - theirs[s] for ours, theirs in pairs])) for s in seeds]
    return Gap(mean_t(gaps), paired_p(gaps), len(gaps))


def level(cells: Sequence[Cell], arm: str) -> float:
    """The mean share of an arm over cells and seeds."""
    return float(np.mean([shares(cell, arm)[s] for cell in cells for s in seeds()]))


@cache
def pays() -> tuple[dict[str, Gap], dict[str, float], bool]:
    """LSER minus every control at discount .99, Holm's p, and whether all three lie above 0."""
    gaps = {control: lead(LONG_SIGHTED, control) for control in CONTROLS}
    adjusted = dict(zip(gaps, holm([one.p for one in gaps.values()]), strict=True))
    above = [gaps[c].mean.estimate > 0 and adjusted[c] <= LEVEL for c in CONTROLS]
    return gaps, adjusted, all(above)


def bandit(cells: Sequence[Cell]) -> float:
    """The linear bandit's share of the possible, the mean over cells and worlds."""
    found = []
    for cell in cells:
        for world in range(3):
            dials = cell.sparsity, cell.dependence, world
            known = world_of(*dials)
            reach = known["oracle"] - known["random"]
            found.append((linear_bandit(*dials) - known["random"]) / reach)
    return float(np.mean(found))


def holds() -> bool:
    """Whether locality pays with a long discount; not before it has run."""
    return there() and pays()[2]


@cache
def does_not_pay() -> tuple[Gap, bool]:
    """LSER minus the same buckets filled at random, at discount 0, and whether that is nothing."""
    found = lead(SHORT_SIGHTED, MATCHED)
    return found, found.mean.low > -NEGLIGIBLE and found.mean.high < NEGLIGIBLE


def in_cells() -> dict[Cell, dict[str, tuple[Gap, float]]]:
    """LSER minus every control in every cell over the new seeds, with Holm's p over all."""
    gaps = {cell: {c: lead([cell], c) for c in CONTROLS} for cell in NEW}
    adjusted = iter(holm([one.p for by in gaps.values() for one in by.values()]))
    return {cell: {c: (one, next(adjusted)) for c, one in by.items()} for cell, by in gaps.items()}


def verdict(cell: Cell) -> str:
    """Whether locality pays in a cell, costs, or is open, by the map's rule."""
    sides = [np.sign(one.mean.estimate) * (p <= LEVEL) for one, p in in_cells()[cell].values()]
    return "costs" if -1 in sides else "pays" if sides == [1, 1, 1] else "open"


def reading() -> str:
    """What U says in words; nothing before it has run."""
    if not there():
        return ""
    gaps, adjusted, above = pays()
    none, negligible = does_not_pay()
    ahead = "; ".join(
        f"{name_of(c)} {signed(one.mean)} ({chance(adjusted[c])})" for c, one in gaps.items()
    )
    told = [verdict(cell) for cell in NEW]
    if any(level(SHORT_SIGHTED, arm) <= level(FROZEN, arm) for arm in (OURS, "uniform")):
        raise ValueError("the records no longer say that the discount is worth more")
    return (
        f"**Where locality pays, by region** (U of the plan; Bazaar, batch 32, 2,000 sessions, "
        f"{len(seeds())} seeds that were new there; shares of the possible). *With the paper's "
        f"discount of .99* (six cells) it **{'pays' if above else 'is open'}**: LSER minus each "
        f"control, Holm over the three, {ahead}; {name_of(MATCHED)} is the same buckets filled "
        "with anybody's transitions. *With a discount of 0 and clicks that are not rare* (three "
        f"cells) locality **{'does not pay' if negligible else 'is open'}**: LSER minus "
        f"{name_of(MATCHED)} {signed(none.mean)}, {'within' if negligible else 'not within'} "
        f"{NEGLIGIBLE:g} of 0. {_users()} Cell by cell, Holm over the "
        f"{len(NEW) * len(CONTROLS)}, it pays in "
        f"{told.count('pays')} and costs in {told.count('costs')} of {len(NEW)}. **The discount is "
        f"worth more than the memory**: at sparsity .02 LSER has {level(FROZEN, OURS):.2f} of the "
        f"possible with discount .99 and {level(SHORT_SIGHTED, OURS):.2f} with 0, uniform replay "
        f"{level(FROZEN, 'uniform'):.2f} and {level(SHORT_SIGHTED, 'uniform'):.2f}: the pages of "
        "a session hardly depend on each other there, and a better memory mends part of what a "
        "long discount costs. A linear bandit, which has no discount and no memory, has "
        f"{bandit(FROZEN):.2f} there after as many sessions (one seed in each of three worlds)."
        f"{_cured()}"
    )


def by_users() -> tuple[Interval, Interval]:
    """LSER's lead over its own buckets filled at random, where one page suits all and none does."""
    same, unlike = (
        lead([cell for cell in LONG_SIGHTED if cell.dependence == dependence], MATCHED).mean
        for dependence in (0.0, 1.0)
    )
    return same, unlike


def _users() -> str:
    """Whether the lead needs users who differ, which was not planned."""
    same, unlike = by_users()
    return (
        f"At discount .99 the lead over {name_of(MATCHED)} is {signed(same)} where one page suits "
        f"everybody and {signed(unlike)} where the right page depends on the user alone (read "
        "after the test): what is alike there need not be users' tastes."
    )


def _cured() -> str:
    if not all(set(seeds()) <= set(shares(cell, arm)) for cell in FROZEN for arm in CURED):
        return " Arms with the cure are not complete."
    *others, ours = CURED
    means = listing([f"{name_of(arm)} {level(FROZEN, arm):.2f}" for arm in reversed(CURED)])
    gaps = [f"{name_of(arm)} {signed(lead(FROZEN, arm, ours).mean)}" for arm in others]
    return (
        f" At discount .99 and sparsity .02 with the cure (no test): {means}; LSER minus "
        f"{listing(gaps)}."
    )


def table() -> str:
    """Every cell: the new seeds with the verdict, and D's with them."""
    heads = (f"minus {name_of(c)}" for c in CONTROLS)
    lines = [
        f"| sparsity | discount | state dependence | LSER | {' | '.join(heads)} | locality | "
        "with D's seeds: minus " + " | minus ".join(name_of(c) for c in CONTROLS) + " |",
        "|" + "---|" * 11,
    ]
    for cell, gaps in in_cells().items():
        row = [
            *(f"{cell.sparsity:g}", f"{cell.discount:g}", f"{cell.dependence:g}"),
            f"{level([cell], OURS):.2f}",
            *(signed(one.mean) for one, _ in gaps.values()),
            f"**{verdict(cell)}**",
            *(signed(_of_both(cell, control)) for control in CONTROLS),
        ]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def _of_both(cell: Cell, control: str) -> Interval:
    ours, theirs = together(cell, OURS), together(cell, control)
    return mean_t([ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())])


def told() -> str:
    """What the table is, and how its runs were made."""
    return (
        "The other nine cells on seeds that were new there (U of the plan; Holm over all of them), "
        f"and with D's: {ran(records.find(FILE))}"
    )


def block() -> str:
    """Every figure; nothing before it has run."""
    return f"{reading()}\n\n{told()}\n\n{table()}" if there() else ""


def wanted(verb: str, folder: Path) -> list[Job]:
    """What to run, or what of it to pack: arms with the cure only if complete."""
    first, second = jobs(folder)
    return [*first, *second] if verb == "run" or all(map(finished, second)) else first


if __name__ == "__main__":
    run_pack_or_print(sys.argv[1:], wanted, FILE, block)

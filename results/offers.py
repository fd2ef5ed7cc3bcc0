"""Can memories be told apart on RecoGym where agents learn: the figures of G in plan.md.

``python results/offers.py run FOLDER`` makes the bandits' runs, one after another, and goes on
where it stood; ``python results/offers.py pack FOLDER ...`` adds what is there, fleets' records
too, to ``offers.jsonl.gz``; without arguments it prints every figure from there.
"""

import sys
from functools import cache
from pathlib import Path

import numpy as np
from campaign import carry_out, gather
from committed import RESULTS
from delayed import Gap, gap, verdict
from standing import Arms, alive, chance, complete, ran, with_holm

from lser.experiments import records
from lser.experiments.experiment import Experiment
from lser.experiments.studies import plan
from lser.experiments.studies.shops import SHOPS
from lser.experiments.study import Job, job_for
from lser.report.stats import mean_t
from lser.report.style import interval, listing, name_of

SEEDS, FIRST = 10, 100
PAID = 50.0  # the reward of a click
FILE = RESULTS / "offers.jsonl.gz"
OURS, REFERENCE = "lser", "uniform"
MEMORIES = (
    *(OURS, REFERENCE, "reward-top", "shuffled-code"),
    *("per", "der", "aer", "ser", "her"),
)
BANDITS = ("ridge", "ridge-thompson")  # beside them
BY_WORLD = {shop.world: shop for shop in SHOPS}
POLICIES = {
    "random products": "random",
    "the best product for everybody": "constant",
    "what each user viewed most": "own",
    "the oracle that knows the user": "oracle",
}
EXPECTED, DRAWN = "reward_per_step", "metric"
Shares = dict[int, float]  # by seed


def cells() -> list[Experiment]:
    """Every run of G by expected clicks without flips."""
    return [o for o in plan("offers", "paper", SEEDS) if o.simulator.number_of_flips == 0]


def jobs(folder: Path) -> list[Job]:
    """The runs of the bandits: fleets make the others."""
    command = f"lser study offers --scale paper --seeds {SEEDS}"
    return [job_for(one, folder, command) for one in cells() if one.label in BANDITS]


def wanted(run: records.Record) -> bool:
    """Whether a record is one of G, in a planned world and on a planned seed."""
    world = run.experiment["simulator"]
    placed = world.get("random_seed") in BY_WORLD and not world.get("number_of_flips")
    paid = world.get("reward") == "expected click"
    return run.study == "offers" and placed and paid and FIRST <= run.seed < FIRST + SEEDS


@cache
def arms() -> Arms:
    """The committed runs that did not fail, by arm, and by world and seed."""
    found: dict[str, dict[tuple[int, int], records.Record]] = {}
    for run in alive(records.find(FILE)) if FILE.exists() else []:
        world = run.experiment["simulator"]["random_seed"]
        found.setdefault(run.label, {})[world, run.seed] = run
    return Arms(found)


def there() -> bool:
    """Whether both arms of the primary test have run in all worlds."""
    return all(arm in arms() and len(pooled(arm)) > 1 for arm in (OURS, REFERENCE))


def in_worlds(arm: str, key: str = EXPECTED, *others: str) -> dict[int, Shares]:
    """Shares of the possible by world and seed, where this arm and the others stand."""
    factor = PAID if key == EXPECTED else 1.0
    found: dict[int, Shares] = {world: {} for world in BY_WORLD}
    for (world, seed), score in arms().scores(arm, key, *others).items():
        shop = BY_WORLD[world]
        found[world][seed] = (score / factor - shop.random) / (shop.oracle - shop.random)
    return found


def pooled(arm: str, key: str = EXPECTED, *others: str) -> Shares:
    """The mean share over the worlds, of every seed that has all of them."""
    worlds = in_worlds(arm, key, *others).values()
    seeds = sorted(set.intersection(*(set(shares) for shares in worlds)))
    return {seed: float(np.mean([shares[seed] for shares in worlds])) for seed in seeds}


def versus(arm: str, key: str = EXPECTED) -> Gap:
    """An arm minus uniform, the world as a block, paired over seeds."""
    return gap(pooled(arm, key, REFERENCE), pooled(REFERENCE, key, arm))


def by_world(arm: str) -> dict[int, Gap]:
    """An arm minus uniform in each world."""
    ours, theirs = in_worlds(arm, EXPECTED, REFERENCE), in_worlds(REFERENCE, EXPECTED, arm)
    return {world: gap(ours[world], theirs[world]) for world in BY_WORLD}


def left_out() -> str:
    """Which runs tables of whole runs do without; nothing where all are whole."""
    runs = [run for by in arms().runs.values() for run in by.values()]
    short = sum(not complete(run) for run in runs)
    if not short:
        return ""
    return (
        f"RecoGym's rows of 300 sessions are without {short} of {len(runs)} runs that time cut off "
        f"just before; its test (G of the plan) reads all of them where they stand: "
        f"{np.mean(list(pooled(OURS, EXPECTED, REFERENCE).values())):.3f} for LSER, "
        f"{np.mean(list(pooled(REFERENCE, EXPECTED, OURS).values())):.3f} for uniform."
    )


def held() -> list[str]:
    """The memories that have several seeds in all worlds."""
    return [arm for arm in MEMORIES if arm in arms() and len(pooled(arm)) > 1]


def secondary() -> dict[str, tuple[Gap, float]]:
    """Every other memory that has all worlds minus uniform, with Holm's p."""
    return with_holm({arm: versus(arm) for arm in held() if arm not in (OURS, REFERENCE)})


def known() -> dict[str, list[float]]:
    """The share of the possible of policies that learn nothing, in each world."""
    return {
        name: [(getattr(s, key) - s.random) / (s.oracle - s.random) for s in SHOPS]
        for name, key in POLICIES.items()
    }


def reading() -> str:
    """What G says in words; nothing before it has run."""
    if not there():
        return ""
    found, both = versus(OURS), (OURS, REFERENCE)
    levels = [_mean(pooled(arm, EXPECTED, *both)) for arm in both]
    outcome = {
        "above": "LSER ends above uniform",
        "below": "LSER ends **below** uniform",
        "not separated": "LSER and uniform are **not separated**",
    }[verdict(found.mean)]
    worlds = "; ".join(
        f"world {world} {interval(one.mean, sign=True)}" for world, one in by_world(OURS).items()
    )
    lines = listing([f"{name} {np.mean(shares):.2f}" for name, shares in [*known().items()][1:3]])
    drawn = interval(versus(OURS, DRAWN).mean, sign=True)
    return (
        "**Offers** (G of the plan; RecoGym by expected clicks, discount 0, "
        f"{arms().sessions(OURS, REFERENCE):,} sessions{_short()}, {found.seeds} seeds of the "
        f"{SEEDS} planned in each of {len(BY_WORLD)} worlds; expected CTR as a share of the way "
        "from random products to the oracle that knows the user, the mean over worlds). The "
        f"primary test: {outcome}, {levels[0]:.3f} against {levels[1]:.3f}, "
        f"{interval(found.mean, sign=True)}, {chance(found.p)} ({worlds}; by clicks that were "
        f"drawn {drawn}). Beside them {lines}{_bandits()}.{_rest()} Four flips and Bernoulli "
        "clicks were not run."
    )


def _short() -> str:
    if arms().whole(OURS, REFERENCE):
        return ""
    return f" of {cells()[0].sessions}, where time cut them off"


def _bandits() -> str:
    there = [arm for arm in BANDITS if arm in arms() and pooled(arm)]
    return "".join(f", {name_of(arm)} {_mean(pooled(arm)):.2f}" for arm in there)


def _rest() -> str:
    found = secondary()
    missing = [name_of(arm) for arm in MEMORIES if arm not in held()]
    absent = f" Not run in all worlds: {listing(missing)}." if missing else ""
    if not found:
        return absent
    words = "; ".join(
        f"{name_of(arm)} {interval(one.mean, sign=True)} over {one.seeds} seeds{_cut_off(arm)} "
        f"({verdict(one.mean, p)})"
        for arm, (one, p) in found.items()
    )
    return f" Minus uniform, Holm over the {len(found)}: {words}.{absent}"


def _cut_off(arm: str) -> str:
    if arms().whole(arm, REFERENCE):
        return ""
    return f", at {arms().sessions(arm, REFERENCE):,} sessions"


def _mean(shares: Shares) -> float:
    return float(np.mean(list(shares.values())))


def table() -> str:
    """Every arm and known policy: its share of the possible, over all worlds and in each."""
    heads = " | ".join(f"world {world}" for world in BY_WORLD)
    lines = [
        f"| arm | share of the possible [95 %] | minus uniform [95 %] | {heads} | worst run | "
        "seeds |",
        "|" + "---|" * (5 + len(BY_WORLD)),
    ]
    shown = [*held(), *(arm for arm in BANDITS if arm in arms() and pooled(arm))]
    for arm in sorted(shown, key=lambda arm: -_mean(pooled(arm))):
        worlds, shares = in_worlds(arm), list(pooled(arm).values())
        other = "" if arm == REFERENCE else interval(versus(arm).mean, sign=True)
        row = (
            *(name_of(arm), interval(mean_t(shares), digits=3), other),
            *(f"{_mean(one):.2f}" for one in worlds.values()),
            f"{min(min(one.values()) for one in worlds.values()):.2f}",
            f"{len(shares)}{_cut_off(arm)}",
        )
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join([*lines, *_policies()])


def _policies() -> list[str]:
    return [
        f"| {name} | {np.mean(shares):.3f} |  | "
        + " | ".join(f"{share:.2f}" for share in shares)
        + " |  |  |"
        for name, shares in known().items()
    ]


def block() -> str:
    """The words, the table and how it ran; nothing before it has run."""
    if not there():
        return ""
    return f"{reading()}\n\n{table()}\n\n{ran(records.find(FILE))}"


def main(words: list[str]) -> None:
    """Run the bandits, pack, or print every figure."""
    match words:
        case []:
            print(block())
        case ["pack", *folders]:
            gather([Path(folder) for folder in folders], wanted, FILE)
        case [verb, folder]:
            carry_out(verb, jobs(Path(folder)), FILE)


if __name__ == "__main__":
    main(sys.argv[1:])

"""What policies score in the worlds of D, L and N: random, one action for all, informed, oracle.

``python results/worlds.py`` plays 4,096 sessions of each that ``results/worlds.json`` lacks, and
writes them there.
"""

import json
from itertools import product

from committed import RESULTS

from lser.simulators.bazaar import Params
from lser.simulators.bazaar.oracle import (
    Sighted,
    constant,
    informed,
    play,
    scoring,
    uniformly_random,
)
from lser.simulators.bazaar.simulator import Bazaar

FILE = RESULTS / "worlds.json"
NAMES = ("sparsity", "state_dependence", "patience", "drift", "world_seed")
Dials = dict[str, float]


def dials() -> list[Dials]:
    """Every world: the map of D; the demo's, and as patience and drift grow."""
    found: list[Dials] = [
        {"sparsity": sparsity, "state_dependence": dependence, "world_seed": world}
        for sparsity, dependence, world in product((0.005, 0.02), (0.0, 0.5, 1.0), range(3))
    ]
    for grown, world in product(({}, *GROWN), range(3)):
        found.append({"sparsity": 0.02, "state_dependence": 0.75, **grown, "world_seed": world})
    return found


GROWN: tuple[Dials, ...] = ({"patience": 6.0}, {"patience": 9.0}, {"drift": 0.1}, {"drift": 0.2})


def scores(params: Params) -> dict[str, float]:
    """CTR of each policy."""
    bazaar = Bazaar(params)
    shared = scoring(bazaar.world.shared[None], 0.0)[0]
    policies = {
        "random": uniformly_random(bazaar, seed=1),
        "constant": constant(bazaar, shared),
        "informed": informed(bazaar),
        "oracle": Sighted(bazaar),
    }
    return {name: round(play(bazaar, policy).ctr, 5) for name, policy in policies.items()}


def main() -> None:
    """Write the table."""
    rows: list[Dials] = json.loads(FILE.read_text()) if FILE.exists() else []
    for one in dials():
        if not any(all(row.get(name) == one.get(name) for name in NAMES) for row in rows):
            rows.append({**one, **scores(Params(**one))})  # type: ignore[arg-type]
            lines = ",\n ".join(json.dumps(row) for row in rows)
            FILE.write_text(f"[\n {lines}\n]\n")


if __name__ == "__main__":
    main()

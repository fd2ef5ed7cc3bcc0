"""What policies score in the worlds of D: random actions, one action for all, informed, oracle.

``python results/worlds.py`` plays 4,096 sessions of each and writes ``results/worlds.json``.
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

DIALS = product((0.005, 0.02), (0.0, 0.5, 1.0), range(3))


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
    rows = []
    for sparsity, dependence, world in DIALS:
        dials = {"sparsity": sparsity, "state_dependence": dependence, "world_seed": world}
        rows.append({**dials, **scores(Params(**dials))})
        print(rows[-1], flush=True)
    lines = ",\n ".join(json.dumps(row) for row in rows)
    (RESULTS / "worlds.json").write_text(f"[\n {lines}\n]\n")


if __name__ == "__main__":
    main()

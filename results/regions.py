"""Where locality pays, by region of Bazaar's map: the figures of U in plan.md.

``python results/regions.py run FOLDER PLACE PLACES`` makes every PLACES-th run, one after another,
and goes on where it stood; ``pack FOLDER`` keeps the records in ``locality_regions.jsonl.gz``;
without arguments it prints every figure from there.
"""

import sys
from pathlib import Path

from campaign import carry_out
from committed import RESULTS
from planned import SECOND, fleets_of_d

from lser.experiments.experiment import Experiment
from lser.experiments.studies import plan
from lser.experiments.study import Job, job_for

FILE = RESULTS / "locality_regions.jsonl.gz"
COMMAND = "lser study locality --scale medium --seeds 20"
CURED = ("uniform with the cure", "reward-top with the cure", "lser with the cure")


def jobs(folder: Path) -> list[Job]:
    """Every run of U, seed by seed, and the arms with the cure after all others."""
    cells = sorted(fleets_of_d()["second ten seeds, batch 32"], key=lambda one: one.seed)
    after = [one for one in plan("locality", "medium", 20) if _is_cured(one)]
    return [job_for(one, folder, COMMAND) for one in (*cells, *sorted(after, key=lambda o: o.seed))]


def _is_cured(one: Experiment) -> bool:
    dials = one.batch_size, one.agent.discount, one.simulator.sparsity
    return one.label in CURED and one.seed in SECOND and dials == (32, 0.99, 0.02)


if __name__ == "__main__":
    verb, where, *share = sys.argv[1:]
    place, places = map(int, share or (0, 1))
    carry_out(verb, jobs(Path(where))[place::places], FILE)

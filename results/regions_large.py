"""Where locality pays with batches of 128: the figures of X in plan.md.

``python results/regions_large.py run FOLDER PLACE PLACES`` makes every PLACES-th run, one after
another, and goes on where it stood; ``pack FOLDER`` keeps what is finished in
``locality_large.jsonl.gz``; without arguments it prints every figure from there.
"""

import sys
from pathlib import Path

from campaign import run_pack_or_print
from committed import RESULTS
from planned import fleets_of_d

from lser.experiments.study import Job, job_for

FILE = RESULTS / "locality_large.jsonl.gz"
COMMAND = "lser study locality --scale medium --seeds 20"


def jobs(folder: Path) -> list[Job]:
    """The runs, seed by seed."""
    cells = fleets_of_d()["first ten seeds, batch 128"]
    return [job_for(one, folder, COMMAND) for one in sorted(cells, key=lambda one: one.seed)]


if __name__ == "__main__":
    run_pack_or_print(sys.argv[1:], lambda _, folder: jobs(folder), FILE, lambda: "")

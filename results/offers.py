"""Can memories be told apart on RecoGym where agents learn: the figures of G in plan.md.

``python results/offers.py run FOLDER`` makes the bandits' runs, one after another, and goes on
where it stood.
"""

import sys
from pathlib import Path

from campaign import carry_out
from committed import RESULTS

from lser.experiments.experiment import Experiment
from lser.experiments.studies import plan
from lser.experiments.study import Job, job_for

SEEDS = 10
FILE = RESULTS / "offers.jsonl.gz"
BANDITS = ("ridge", "ridge-thompson")  # beside the memories


def cells() -> list[Experiment]:
    """Every run of G by expected clicks without flips."""
    return [o for o in plan("offers", "paper", SEEDS) if o.simulator.number_of_flips == 0]


def jobs(folder: Path) -> list[Job]:
    """The runs of the bandits: fleets make the others."""
    command = f"lser study offers --scale paper --seeds {SEEDS}"
    return [job_for(one, folder, command) for one in cells() if one.label in BANDITS]


def main(words: list[str]) -> None:
    """Run the bandits."""
    carry_out(words[0], jobs(Path(words[1])), FILE)


if __name__ == "__main__":
    main(sys.argv[1:])

"""How much of the spread is the machine's: the figures of J in plan.md.

``python results/reruns.py run FOLDER`` makes the runs on a CPU, one after another, and goes on
where it stood; those on a second device are in the fleet of H (``planned.py FOLDER h``).
"""

import sys
from dataclasses import replace
from pathlib import Path

from campaign import carry_out
from committed import RESULTS

from lser.experiments.experiment import Experiment
from lser.experiments.studies import plan
from lser.experiments.study import Job, job_for

FILE = RESULTS / "reruns.jsonl.gz"
ARMS, SEEDS, NOISE = ("lser", "uniform"), 10, 0.1
FLEET, CPU = "another fleet", "a CPU"  # where runs of C are made again


def cells(where: str) -> list[Experiment]:
    """C's runs of LSER and uniform once more, seed by seed: nothing but their names differs."""
    return [
        replace(one, study="reruns", label=f"{one.label} on {where}")
        for one in plan("confirmation", "paper", SEEDS)
        if one.label in ARMS and one.agent.noise_scale == NOISE
    ]


def jobs(folder: Path) -> list[Job]:
    """The runs on a CPU."""
    return [job_for(one, folder, "python results/reruns.py run") for one in cells(CPU)]


def main(words: list[str]) -> None:
    """Run."""
    carry_out(words[0], jobs(Path(words[1])), FILE)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Can memories be told apart on interest evolution where agents learn: the figures of F in plan.md.

``python results/interest.py run FOLDER`` makes the runs, one after another, and goes on where it
stood; ``python results/interest.py pack FOLDER`` writes ``interest.jsonl.gz``; without arguments it
prints every figure from there.
"""

import sys
from dataclasses import replace
from pathlib import Path

from campaign import carry_out
from committed import RESULTS

from lser.catalogue import AGENTS
from lser.experiments.experiment import Experiment
from lser.experiments.studies import plan
from lser.experiments.study import Job, job_for

SEEDS = 20
FILE = RESULTS / "interest.jsonl.gz"
OURS, REFERENCE = "lser", "uniform"
MEMORIES = (OURS, REFERENCE, "reward-top", "per", "aer", "her-balanced", "lser that keeps the best")
BANDITS = ("ridge", "ridge-thompson")  # beside them
STAGES = (MEMORIES[:2], BANDITS, *((arm,) for arm in MEMORIES[2:]))


def cells() -> list[Experiment]:
    """Every run of F by quality, and the bandits on the same users."""
    found = [o for o in plan("interest", "medium", SEEDS) if o.simulator.reward == "quality"]
    plain = [one for one in found if one.label == REFERENCE]
    bandits = [
        replace(one, agent=AGENTS[name].params(), label=name) for name in BANDITS for one in plain
    ]
    return [*found, *bandits]


def jobs(folder: Path) -> list[Job]:
    """Every run in the order of the plan: within a stage all arms of a seed together."""
    command = f"lser study interest --scale medium --seeds {SEEDS}"
    ordered = [
        one
        for stage in STAGES
        for one in sorted(cells(), key=lambda one: one.seed)
        if one.label in stage
    ]
    return [job_for(one, folder, command) for one in ordered]


def main(words: list[str]) -> None:
    """Run, pack, or print every figure."""
    if words:
        carry_out(words[0], jobs(Path(words[1])), FILE)


if __name__ == "__main__":
    main(sys.argv[1:])

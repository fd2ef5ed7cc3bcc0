"""What is killed: ``python -m drill.workers save|train|study ...``."""

import json
import sys
from pathlib import Path

import numpy as np

from drill import samples
from lser.cli.study import run_jobs
from lser.experiments.run import Interrupted, run
from lser.experiments.study import Processes, job_for
from lser.replay import UniformReplay


def save(path: str) -> int:
    """Save a memory over and over, all its rewards the number of the save."""
    memory = UniformReplay(20_000, 8, 2)
    rows, number = np.zeros((20_000, 8), np.float32), 0
    ends = np.zeros(20_000, np.bool_)
    while True:
        reward = np.full(20_000, number, np.float32)
        memory.extend(rows, rows[:, :2], reward, rows, ends, ends)
        memory.save(path)
        print(number, flush=True)
        number += 1


def train(folder: str, changes: str) -> int:
    """Run an experiment, with checkpoints all the time."""
    experiment = samples.experiment(**json.loads(changes))
    run(experiment, Path(folder), checkpoint_seconds=0.05)
    return 0


def study(out: str, changes: str) -> int:
    """Run two experiments side by side."""
    chosen = [samples.experiment(seed=s, study="drill", **json.loads(changes)) for s in (0, 1)]
    try:
        return run_jobs([job_for(each, Path(out), "") for each in chosen], Processes(2))
    except (KeyboardInterrupt, Interrupted):
        return 130


if __name__ == "__main__":
    work = {"save": save, "train": train, "study": study}[sys.argv[1]]
    sys.exit(work(*sys.argv[2:]))

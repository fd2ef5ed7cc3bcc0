"""Updates per second of a learner that is fed by others, beside the same learner alone.

``python benchmarks/feeders.py`` prints a table and writes `results/speed_feeders.json`. One learner
(DDPG, LSER, Bazaar) and feeders on this machine's Ray: one process more than there are feeders, so
that each has a core, unless --feeders says else. Segments of a few seconds take turns: learning
from what is in the memory, nothing else, and learning while blocks arrive, one update for each
transition. Ratios are medians over the turns, of wall time and of the learner's processor time.
Asked for: at least .9x with a core to spare.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray
import torch

from lser.experiments.experiment import to_json
from lser.experiments.presets import earlier_bazaar, preset
from lser.ray.fed_run import FedRun
from lser.ray.feeders import Feeders
from lser.training.loop import draw

ROOT = Path(__file__).resolve().parents[1]
TARGET = 0.9
UPDATES = 256  # between two looks at the clock, as many as a block has rows


def fed(run: FedRun) -> Callable[[], None]:
    steps = run.steps()

    def some() -> None:
        next(steps)

    return some


def alone(run: FedRun) -> Callable[[], None]:
    def some() -> None:
        for turn in range(UPDATES):
            batch = draw(run.replay, run.progress, turn, run.experiment.batch_size)
            learned = run.built.agent.learn(batch)
            run.replay.update(batch.ids, learned.td_errors)

    return some


def pace(run: FedRun, some: Callable[[], None], seconds: float) -> tuple[float, float]:
    """Updates per second, and per second of this process's own processor time."""
    before, began, cpu = run.progress.updates, time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        some()
    done = run.progress.updates - before
    return done / (time.perf_counter() - began), done / (time.process_time() - cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--feeders", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "speed_feeders.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    ray.init(num_cpus=options.feeders, include_dashboard=False, log_to_driver=False)
    experiment = earlier_bazaar(preset("bazaar", "lser", "ddpg"))
    experiment = replace(experiment, feeders=options.feeders)
    found: dict[str, list[tuple[float, float]]] = {"fed": [], "alone": []}
    with tempfile.TemporaryDirectory() as folder:
        run = FedRun(experiment, Path(folder))
        run._feeders = Feeders(ray, to_json(experiment), options.feeders)
        kinds = {"fed": fed(run), "alone": alone(run)}
        while run.progress.updates < 20 * UPDATES:  # kernels are compiled, users are in
            kinds["fed"]()
        for number in range(options.rounds):
            for name in list(kinds)[:: 1 if number % 2 == 0 else -1]:
                found[name].append(pace(run, kinds[name], options.seconds))
            print(f"round {number + 1}: {found['fed'][-1]}, {found['alone'][-1]}", file=sys.stderr)
        run._feeders.close()
        run.owner.release()
    ray.shutdown()
    pairs = list(zip(found["fed"], found["alone"], strict=True))
    wall, cpu = (statistics.median(ours[k] / theirs[k] for ours, theirs in pairs) for k in (0, 1))
    row = {
        "feeders": options.feeders,
        "cores": os.cpu_count(),
        "updates_per_second": {n: statistics.median(a for a, _ in v) for n, v in found.items()},
        "wall_ratio": wall,
        "wall_ratio_met": wall >= TARGET,
        "cpu_ratio": cpu,
    }
    options.out.write_text(json.dumps(row, indent=1) + "\n")
    print(f"fed beside alone: {wall:.2f}x the updates/s, {cpu:.2f}x by the learner's own time")


if __name__ == "__main__":
    main()

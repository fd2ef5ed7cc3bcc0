"""Do delayed effects need an order by return: the figures of E in plan.md, from the records.

``python results/delayed.py run FOLDER`` makes the runs, one after another, and goes on where it
stood; ``python results/delayed.py pack FOLDER`` writes ``delayed.jsonl.gz``; without arguments it
prints every figure from there.
"""

import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from committed import RESULTS

from lser.experiments import records
from lser.experiments.studies import ScoreScale, plan, scale_of
from lser.experiments.study import Here, Job, finished, job_for
from lser.report.stats import Interval, area_under_curve, holm, mean_t, paired_difference
from lser.report.stats import paired_p as p_of
from lser.report.style import interval

SEEDS = 6
FILE = RESULTS / "delayed.jsonl.gz"
BY_RETURN, BY_REWARD, REFERENCE = "lser by return", "lser", "uniform"
MEMORIES = (BY_REWARD, BY_RETURN, REFERENCE, "reward-top", "per", "aer")  # the planned arms
BANDITS = ("ridge", "ridge-thompson", "neural-bandit")  # beside them
STAGES = (MEMORIES[:3], BANDITS[:2], *((arm,) for arm in (*MEMORIES[3:], BANDITS[2])))
Scores = dict[int, float]  # by seed


class Gap(NamedTuple):
    """One arm minus another, paired over seeds."""

    mean: Interval
    p: float
    seeds: int


def jobs(folder: Path) -> list[Job]:
    """Every run of E, in the order of the plan: within a stage all arms of a seed together."""
    command = f"lser study delayed --scale medium --seeds {SEEDS}"
    cells = plan("delayed", "medium", SEEDS)
    ordered = [one for stage in STAGES for one in cells if one.label in stage]
    return [job_for(one, folder, command) for one in ordered]


@cache
def runs() -> dict[str, dict[int, records.Record]]:
    """The committed runs, by arm and seed."""
    found: dict[str, dict[int, records.Record]] = {}
    for run in records.find(FILE):
        found.setdefault(run.label, {})[run.seed] = run
    return found


def final(arm: str) -> Scores:
    """The platform's metric at the end."""
    return _of(arm, lambda run: run.final["metric"])


def trained(arm: str) -> Scores:
    """The reward per step at the end: what the agents are trained on."""
    return _of(arm, lambda run: run.final["reward"] / run.final["length"])


def learning(arm: str) -> Scores:
    """The same while learning, exploration included."""
    return _of(arm, lambda run: run.final["learning_reward"])


def area(arm: str) -> Scores:
    """The average height of the learning curve."""
    return _of(
        arm,
        lambda run: area_under_curve(
            np.array([point["sessions"] for point in run.curve]),
            np.array([point["metric"] for point in run.curve]),
        ),
    )


def _of(arm, score) -> Scores:
    return {seed: float(score(run)) for seed, run in runs()[arm].items()}


def scale() -> ScoreScale:
    """Random documents, the best constant and the optimum."""
    known = scale_of(next(iter(runs()[REFERENCE].values())).experiment, "reward_per_step")
    assert known is not None
    return known


def gap(ours: Scores, theirs: Scores) -> Gap:
    """The paired difference."""
    found = paired_difference(ours, theirs)
    return Gap(mean_t(found), p_of(found), len(found))


def primary() -> Gap:
    """Reward per step, lser by return minus lser by reward."""
    return gap(trained(BY_RETURN), trained(BY_REWARD))


def secondary() -> dict[str, tuple[Gap, float]]:
    """Every other memory minus uniform, with Holm's p over the five."""
    arms = [arm for arm in MEMORIES if arm != REFERENCE and arm in runs()]
    found = {arm: gap(trained(arm), trained(REFERENCE)) for arm in arms}
    corrected = holm([one.p for one in found.values()])
    return {arm: (one, p) for (arm, one), p in zip(found.items(), corrected, strict=True)}


def main(words: list[str]) -> None:
    """Run, pack, or print every figure."""
    if words:
        todo = jobs(Path(words[1]))
        if words[0] == "run":
            for done in Here().run([j for j in todo if not finished(j)], started=lambda _: None):
                print(done.ok, done.job.folder, flush=True)
        else:
            records.pack([records.load(job.folder) for job in todo if finished(job)], FILE)
        return
    found = primary()
    print(f"{BY_RETURN} minus {BY_REWARD}: {interval(found.mean, sign=True)}, p = {found.p:.2g}")


if __name__ == "__main__":
    main(sys.argv[1:])

"""``lser demo``: LSER's recommender beside a linear bandit on Bazaar, and a page about it."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import tyro

from lser.catalogue import SIMULATORS
from lser.experiments import records
from lser.experiments.experiment import Experiment
from lser.experiments.presets import lasting, preset
from lser.experiments.records import Record
from lser.experiments.study import Processes, job_for

STATE_DEPENDENCE = 0.75  # the right page depends on the user more than at Bazaar's default of .5
FIRST_SEED = 100  # those below were looked at when the demo was made


class Arm(NamedTuple):
    """One line of the demo."""

    label: str
    agent: str
    memory: str


OURS, SAME, BANDIT = "LSER's recommender", "the same model with uniform replay", "ridge"
ARMS = (
    Arm(OURS, "click-model", "lser-steady"),
    Arm(SAME, "click-model", "uniform"),
    Arm("ridge-pages", "ridge-pages", "uniform"),
    Arm(BANDIT, "ridge", "uniform"),
    Arm("random", "random", "uniform"),
)


def demo(argv: list[str]) -> int:
    """Run the demo."""
    command = shlex.join(["lser", "demo", *argv])
    arguments = tyro.cli(_arguments, args=argv, prog="lser demo")
    return _demo(*arguments, command=command)


def _arguments(
    sessions: int = 1_000, seeds: int = 8, workers: int = 0, out: Path = Path("demo")
) -> tuple[int, int, int, Path]:
    """Train LSER's recommender beside a linear bandit on Bazaar and write one page about it.

    Five arms serve the same users: LSER's recommender (a click model that replays by
    similarity), the same click model with uniform replay, a linear bandit that knows which items
    a page shows, one that does not, and random actions. Takes about two minutes on two cores.

    example: lser demo --seeds 5

    Args:
        sessions: User sessions per run.
        seeds: Runs per arm.
        workers: Runs side by side; 0: as many as cores.
        out: Folder for the records and the page.
    """
    return sessions, seeds, workers, out


def cells(sessions: int, seeds: int) -> list[Experiment]:
    """The demo's runs: every arm at equal settings, all arms of a seed together."""
    world = SIMULATORS["bazaar"].params(state_dependence=STATE_DEPENDENCE)
    return [
        replace(
            lasting(preset("bazaar", arm.memory, arm.agent), sessions),
            simulator=world,
            evaluate_every=max(1, sessions // 10),
            study="demo",
            label=arm.label,
            seed=FIRST_SEED + seed,
        )
        for seed in range(seeds)
        for arm in ARMS
    ]


def _demo(sessions: int, seeds: int, workers: int, out: Path, *, command: str) -> int:
    from lser.cli.jobs import run_jobs
    from lser.report import demo_page
    from lser.report.closing import closing, fill

    jobs = [job_for(cell, out / "runs", command) for cell in cells(sessions, seeds)]
    code = run_jobs(jobs, Processes(workers) if workers > 0 else Processes())
    if code:
        return code
    found = [records.load(job.folder) for job in jobs]
    print(closing(found))
    answer = verdict(found)
    print("\n" + "\n".join(map(fill, answer)))
    title = "A recommender, and the linear bandit it has to beat"
    print(demo_page(found, out, title=title, answer=answer))
    return 0


def verdict(found: Sequence[Record]) -> list[str]:
    """What the runs say, in three lines: against the bandit, while learning, and of the memory."""
    from lser.report.stats import mean_t, paired_difference

    final, learning = _scores(found, "metric"), _scores(found, "learning_metric")
    ours, bandit = final[OURS], final[BANDIT]
    memory = mean_t(paired_difference(ours, final[SAME]))
    sure = memory.low > 0 or memory.high < 0
    return [
        f"LSER's recommender against the linear bandit: {_mean(ours) / _mean(bandit):.2f} "
        f"times its CTR at the end, {_mean(learning[OURS]) / _mean(learning[BANDIT]):.2f} "
        "times while learning.",
        f"Its lowest run ends at {min(ours.values()):.3f}, the bandit's highest at "
        f"{max(bandit.values()):.3f}.",
        f"Of this the memory adds {memory.estimate:+.3f} [{memory.low:+.3f}, "
        f"{memory.high:+.3f}] over uniform replay"
        + ("." if sure else ": nothing that these runs could show. The model is the gain."),
    ]


def _scores(found: Sequence[Record], key: str) -> dict[str, dict[int, float]]:
    scores: dict[str, dict[int, float]] = {arm.label: {} for arm in ARMS}
    for record in found:
        assert record.final is not None
        scores[record.label][record.seed] = float(record.final[key])
    return scores


def _mean(scores: dict[int, float]) -> float:
    return sum(scores.values()) / len(scores)

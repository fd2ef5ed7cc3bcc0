"""``lser demo``: LSER's recommender beside linear bandits on Bazaar, and a page about it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import tyro

from lser.catalogue import SIMULATORS
from lser.cli.engines import Place
from lser.experiments import records
from lser.experiments.experiment import Experiment
from lser.experiments.presets import lasting, preset
from lser.experiments.records import Record
from lser.experiments.study import job_for

STATE_DEPENDENCE = 0.75  # the right page depends on the user more than at Bazaar's default of .5
FIRST_SEED = 700  # those below were looked at, or tuned on
SELDOM = 0.01  # updates per step of agents that learn nothing from what is replayed


class Arm(NamedTuple):
    """One line of the demo."""

    label: str
    agent: str
    memory: str
    knobs: Mapping[str, Any]
    """Settings of the agent, chosen in other worlds on other seeds (`results/demo_tuning.json`)."""


# Labels are short: columns are narrow. A bandit that is to end high explores at random, one that
# is to earn does not, and neither is good at both: each comes twice.
OURS, SAME = "LSER recommender", "uniform replay"
ENDS = ("exploring bandit", "exploring page bandit")  # chosen for their scores at the end
EARNS = ("earning bandit", "earning page bandit")  # chosen for what they earn while learning
EXPLORING = {"ridge": 10.0, "noise": 2.0, "thompson": 0.0}
EARNING = {"ridge": 10.0, "noise": 0.0, "thompson": 1.0}
ARMS = (
    Arm(OURS, "click-model", "lser-steady", {}),
    Arm(SAME, "click-model", "uniform", {}),
    Arm(ENDS[1], "ridge-pages", "uniform", EXPLORING),
    Arm(EARNS[1], "ridge-pages", "uniform", EARNING),
    Arm(ENDS[0], "ridge", "uniform", EXPLORING),
    Arm(EARNS[0], "ridge", "uniform", EARNING),
)


def demo(argv: list[str]) -> int:
    """Run the demo."""
    command = shlex.join(["lser", "demo", *argv])
    arguments = tyro.cli(_arguments, args=argv, prog="lser demo")
    return _demo(*arguments, command=command)


def _arguments(
    sessions: int = 1_000,
    seeds: int = 8,
    world: int = 0,
    workers: int = 0,
    out: Path = Path("demo"),
) -> tuple[int, int, int, int, Path]:
    """Train LSER's recommender beside linear bandits on Bazaar and write one page about it.

    Six arms serve the same users: LSER's recommender (a click model that replays by similarity),
    the same click model with uniform replay and the same cure, and two linear bandits, one of
    which knows the items of a page, each tuned for the end and for what it earns while learning.
    Takes about three minutes on two cores.

    example: lser demo --world 1

    Args:
        sessions: User sessions per run.
        seeds: Runs per arm.
        world: Which catalogue and tastes (Bazaar's world_seed).
        workers: Runs side by side; 0: as many as cores.
        out: Folder for the records and the page.
    """
    return sessions, seeds, world, workers, out


def cells(sessions: int, seeds: int, world: int = 0) -> list[Experiment]:
    """The demo's runs: equal settings and the cure for every arm, all arms of a seed together."""
    dials = {"state_dependence": STATE_DEPENDENCE, "world_seed": world}
    shop = SIMULATORS["bazaar"].params(**dials)
    found = []
    for seed in range(seeds):
        for arm in ARMS:
            run = lasting(preset("bazaar", arm.memory, arm.agent, cure=True), sessions)
            found.append(
                replace(
                    run,
                    simulator=shop,
                    agent=replace(run.agent, **arm.knobs),
                    updates_per_step=1.0 if arm.agent == "click-model" else SELDOM,
                    evaluate_every=max(1, sessions // 10),
                    study="demo",
                    label=arm.label,
                    seed=FIRST_SEED + seed,
                )
            )
    return found


def _demo(sessions: int, seeds: int, world: int, workers: int, out: Path, *, command: str) -> int:
    from lser.cli.jobs import run_jobs
    from lser.report import demo_page
    from lser.report.closing import closing, fill

    jobs = [job_for(cell, out / "runs", command) for cell in cells(sessions, seeds, world)]
    code = run_jobs(jobs, Place(workers=workers).map())
    if code:
        return code
    found = [records.load(job.folder) for job in jobs]
    print(closing(found))
    answer = verdict(found)
    print("\n" + "\n".join(map(fill, answer)))
    title = "A recommender, and the linear bandits it has to beat"
    print(demo_page(found, out, title=title, answer=answer))
    return 0


def verdict(found: Sequence[Record]) -> list[str]:
    """What the runs say, in three lines: at the end, while learning, and of the memory."""
    final, learning = _scores(found, "metric"), _scores(found, "learning_metric")
    return [
        f"At the end LSER's recommender has {_times(final, ENDS)} the CTR of linear bandits tuned "
        "for the end, without and with knowledge of the page's items; those earned "
        f"{_mean(learning[ENDS[0]]):.3f} and {_mean(learning[ENDS[1]]):.3f} while learning, "
        f"it {_mean(learning[OURS]):.3f}.",
        f"While learning it has {_times(learning, EARNS)} the CTR of those tuned to earn, which "
        f"end at {_mean(final[EARNS[0]]):.3f} and {_mean(final[EARNS[1]]):.3f}, it at "
        f"{_mean(final[OURS]):.3f} (lowest run {min(final[OURS].values()):.3f}).",
        "Of this the memory, beside uniform replay with the same cure, adds at the end "
        f"{_added(final)} and while learning {_added(learning)}.",
    ]


def _times(scores: dict[str, dict[int, float]], arms: Sequence[str]) -> str:
    ours, theirs = _mean(scores[OURS]), [_mean(scores[arm]) for arm in arms]
    ratios = [f"{ours / one:.2f}" if one else "(not one click there)" for one in theirs]
    return " and ".join(ratios) + " times"


def _added(scores: dict[str, dict[int, float]]) -> str:
    """What the memory adds to the same model, with its interval, and whether that is anything."""
    from lser.report.stats import mean_t, paired_difference

    added = mean_t(paired_difference(scores[OURS], scores[SAME]))
    words = f"{added.estimate:+.3f} [{added.low:+.3f}, {added.high:+.3f}]"
    sure = added.low > 0 or added.high < 0
    return words if sure else f"{words} (nothing that these runs could show)"


def _scores(found: Sequence[Record], key: str) -> dict[str, dict[int, float]]:
    scores: dict[str, dict[int, float]] = {arm.label: {} for arm in ARMS}
    for record in found:
        assert record.final is not None
        scores[record.label][record.seed] = float(record.final[key])
    return scores


def _mean(scores: dict[int, float]) -> float:
    return sum(scores.values()) / len(scores)

"""Do delayed effects need an order by return: the figures of E in plan.md, from the records.

``python results/delayed.py run FOLDER`` makes the runs, one after another, and goes on where it
stood; ``python results/delayed.py pack FOLDER`` writes ``delayed.jsonl.gz``; without arguments it
prints every figure from there.
"""

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from campaign import carry_out
from committed import RESULTS, by_arm

from lser.experiments import records
from lser.experiments.studies import ScoreScale, plan, scale_of
from lser.experiments.study import Job, job_for
from lser.report.stats import (
    Interval,
    area_under_curve,
    holm,
    mean_t,
    paired_difference,
    paired_p,
)
from lser.report.style import interval, listing, name_of, number

SEEDS, LEVEL = 20, 0.05
NEW = 106  # the first of the seeds that nobody had looked at when the second part was planned
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
    """Every new run of E, in the order of the plan: within a stage all arms of a seed together."""
    command = f"lser study delayed --scale medium --seeds {SEEDS}"
    cells = [one for one in plan("delayed", "medium", SEEDS) if one.seed >= NEW]
    ordered = [one for stage in STAGES for one in cells if one.label in stage]
    return [job_for(one, folder, command) for one in ordered]


@cache
def runs() -> dict[str, dict[int, records.Record]]:
    """The committed runs, by arm and seed."""
    return by_arm(FILE)


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


def _of(arm: str, score: Callable[[Any], float]) -> Scores:
    return {seed: float(score(run)) for seed, run in runs().get(arm, {}).items()}


def scale() -> ScoreScale:
    """Random documents, the best constant and the optimum."""
    known = scale_of(next(iter(runs()[REFERENCE].values())).experiment, "reward_per_step")
    assert known is not None
    return known


def gap(ours: Scores, theirs: Scores) -> Gap:
    """The paired difference."""
    found = paired_difference(ours, theirs)
    return Gap(mean_t(found), paired_p(found), len(found))


def new(scores: Scores) -> Scores:
    """Those of seeds that nobody had looked at when the second part was planned."""
    return {seed: score for seed, score in scores.items() if seed >= NEW}


def primary() -> Gap:
    """Reward per step, lser by return minus lser by reward, over the new seeds."""
    return gap(new(trained(BY_RETURN)), new(trained(BY_REWARD)))


def secondary() -> dict[str, tuple[Gap, float]]:
    """Every other memory with new seeds minus uniform over them, with Holm's p."""
    arms = [arm for arm in MEMORIES if arm != REFERENCE and len(new(trained(arm))) > 1]
    found = {arm: gap(new(trained(arm)), new(trained(REFERENCE))) for arm in arms}
    corrected = holm([one.p for one in found.values()])
    return {arm: (one, p) for (arm, one), p in zip(found.items(), corrected, strict=True)}


def verdict(value: Interval, p: float = 0.0) -> str:
    """In one word: whether an interval, and Holm's p where there is one, decides."""
    if p > LEVEL or value.low <= 0 <= value.high:
        return "not separated"
    return "above" if value.low > 0 else "below"


def reading() -> str:
    """What E says in words."""
    found, known = primary(), scale()
    everything = gap(trained(BY_RETURN), trained(BY_REWARD))
    assert known.constant is not None
    outcome = {
        "above": "**holds**: where effects are delayed LSER needs an order by return",
        "below": "**does not hold**: an order by return does harm",
        "not separated": "**is open**",
    }[verdict(found.mean)]
    levels = [float(np.mean(list(new(trained(arm)).values()))) for arm in (BY_RETURN, BY_REWARD)]
    others = "; ".join(
        f"{name_of(arm)} {signed(one.mean)} ({verdict(one.mean, p)})"
        for arm, (one, p) in secondary().items()
    )
    bandits = listing(
        [
            f"{name_of(arm)} {np.mean(list(trained(arm).values())):.2f}"
            for arm in BANDITS
            if arm in runs()
        ]
    )
    return (
        "**Delayed effects** (E of the plan; long-term satisfaction where the long term matters, "
        f"500 sessions, {found.seeds} of 14 seeds that nobody had looked at). The primary test "
        f"{outcome}: by "
        f"return {levels[0]:.2f} of reward per step, by reward {levels[1]:.2f}, difference "
        f"{signed(found.mean)}, p = {number(found.p)}; with the six seeds that were looked at "
        f"before {signed(everything.mean)}. Beside it {known.random.name} "
        f"{known.random.score:.2f}, {known.others[0].name}, {known.others[0].score:.2f}, "
        f"{known.constant.name}, the best constant, {known.constant.score:.2f}, the "
        f"{known.best.name} {known.best.score:.2f}; {bandits}. Minus uniform, Holm over them: "
        f"{others}. The reward is the platform's own metric there, so that both are one."
    )


def table() -> str:
    """Every arm: the reward per step at the end, its share of the possible, and while learning."""
    lines = [
        "| arm | reward per step [95 %] | share of the possible | worst run | above random | "
        "over training | while learning | minus uniform [95 %] | seeds |",
        "|" + "---|" * 9,
    ]
    known, held = scale(), [arm for arm in (*MEMORIES, *BANDITS) if arm in runs()]
    for arm in sorted(held, key=lambda name: -np.mean(list(trained(name).values()))):
        ends = list(trained(arm).values())
        mean = mean_t(ends)
        other = "" if arm == REFERENCE else signed(gap(trained(arm), trained(REFERENCE)).mean)
        row = (
            *(name_of(arm), interval(mean, digits=2), f"{known.share(mean.estimate):.2f}"),
            *(f"{min(ends):.2f}", str(sum(score > known.random.score for score in ends))),
            f"{np.mean(list(area(arm).values())):.2f}",
            *(f"{np.mean(list(learning(arm).values())):.2f}", other, str(len(ends))),
        )
        lines.append("| " + " | ".join(row) + " |")
    policies = [known.random, known.best, *([known.constant] if known.constant else [])]
    for policy in (*policies, *known.others):
        row = (policy.name, f"{policy.score:.2f}", f"{known.share(policy.score):.2f}", *[""] * 6)
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def signed(value: Interval) -> str:
    """An interval with signs."""
    return interval(value, sign=True, digits=2)


def block() -> str:
    """The words and the table."""
    return f"{reading()}\n\n{table()}"


def main(words: list[str]) -> None:
    """Run, pack, or print every figure."""
    if words:
        kept = [run for arm in runs().values() for run in arm.values() if run.seed < NEW]
        carry_out(words[0], jobs(Path(words[1])), FILE, kept)
        return
    print(reading(), table(), sep="\n\n")


if __name__ == "__main__":
    main(sys.argv[1:])

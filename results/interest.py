"""Can memories be told apart on interest evolution paid by quality: the figures of F in plan.md.

``python results/interest.py run FOLDER`` makes the runs, one after another, and goes on where it
stood; ``python results/interest.py pack FOLDER ...`` adds what is there, fleets' records too, to
``interest.jsonl.gz``; without arguments it prints every figure from there.
"""

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from campaign import carry_out, gather
from committed import RESULTS
from delayed import Gap, Scores, signed, verdict
from standing import Arms, alive, chance, ran, with_holm

from lser.catalogue import AGENTS
from lser.experiments import records
from lser.experiments.experiment import Experiment
from lser.experiments.studies import ScoreScale, plan, scale_of
from lser.experiments.study import Job, job_for
from lser.report.stats import mean_t
from lser.report.style import interval, listing, name_of, number

SEEDS, FIRST = 20, 100
FILE = RESULTS / "interest.jsonl.gz"
OURS, REFERENCE = "lser", "uniform"
MEMORIES = (OURS, REFERENCE, "reward-top", "per", "aer", "her-balanced", "lser that keeps the best")
TOP, KEEPS = MEMORIES[2], MEMORIES[-1]
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


def wanted(run: records.Record, reward: str = "quality") -> bool:
    """Whether a record is one of F by this reward, on a planned seed."""
    paid = run.experiment["simulator"].get("reward", "watch time") == reward
    return run.study == "interest" and paid and FIRST <= run.seed < FIRST + SEEDS


@cache
def runs() -> dict[str, dict[int, records.Record]]:
    """The committed runs that did not fail, by arm and seed."""
    return by_arm(FILE)


def by_arm(file: Path) -> dict[str, dict[int, records.Record]]:
    """The runs of a file that did not fail, by arm and seed."""
    found: dict[str, dict[int, records.Record]] = {}
    for run in alive(records.find(file)):
        found.setdefault(run.label, {})[run.seed] = run
    return found


def trained(arm: str) -> Scores:
    """Reward per step at the end: what the agents are trained on."""
    return _final(arm, "reward_per_step")


def quality(arm: str) -> Scores:
    """The platform's own metric at the end, quality per session."""
    return _final(arm, "metric")


def _final(arm: str, key: str) -> Scores:
    return Arms(runs()).scores(arm, key) if arm in runs() else {}


def scale() -> ScoreScale:
    """Random slates and the best policy known, in the platform's metric."""
    known = scale_of(next(iter(runs()[REFERENCE].values())).experiment, "quality")
    assert known is not None
    return known


def primary() -> Gap:
    """Reward per step, LSER minus uniform."""
    return Arms(runs()).gap(OURS, REFERENCE, "reward_per_step")


def secondary() -> dict[str, tuple[Gap, float]]:
    """Every other memory with several seeds minus uniform, with Holm's p."""
    return others_of(Arms(runs()))


def others_of(arms: Arms) -> dict[str, tuple[Gap, float]]:
    """Every memory but the first two that has several seeds minus uniform, with Holm's p."""
    held = [arm for arm in MEMORIES[2:] if arm in arms]
    return with_holm({arm: arms.gap(arm, REFERENCE, "reward_per_step") for arm in held})


def rest_of(arms: Arms) -> str:
    """The secondary tests in words, and the memories that have no runs."""
    found = others_of(arms)
    words = "; ".join(
        f"{name_of(arm)} {signed(one.mean)} over {one.seeds} seeds"
        f"{cut_off(arms, arm)} ({verdict(one.mean, p)})"
        for arm, (one, p) in found.items()
    )
    tests = f" Minus uniform, Holm over the {len(found)}: {words}." if found else ""
    missing = [name_of(arm) for arm in MEMORIES[2:] if arm not in found]
    return tests + (f" Not run: {listing(missing)}." if missing else "")


def cut_off(arms: Arms, arm: str) -> str:
    """Where an arm and uniform were read, if time cut one of them off."""
    return "" if arms.whole(arm, REFERENCE) else f", at {arms.sessions(arm, REFERENCE):,} sessions"


def reading() -> str:
    """What F says in words."""
    found, known = primary(), scale()
    levels = [float(np.mean(list(trained(arm).values()))) for arm in (OURS, REFERENCE)]
    shares = [known.share(float(np.mean(list(quality(a).values())))) for a in (OURS, REFERENCE)]
    outcome = {
        "above": "LSER ends above uniform",
        "below": "LSER ends **below** uniform",
        "not separated": "LSER and uniform are **not separated**",
    }[verdict(found.mean)]
    rest = rest_of(Arms(runs()))
    fleets = sum(run.shared for arm in MEMORIES for run in runs().get(arm, {}).values())
    if fleets:
        rest += f" {fleets} runs were made in fleets on a device, the others as single processes."
    if TOP in runs():
        apart = Arms(runs()).gap(OURS, TOP, "reward_per_step").mean
        fails = ": one order of reward for everybody fails there" if apart.low > 0 else ""
        rest += (
            f" LSER minus {name_of(TOP)}, which was not planned, is "
            f"{interval(apart, sign=True)}{fails}."
        )
    if KEEPS in runs() and quality(KEEPS) == quality(OURS):
        rest += (
            " The memory does not fill in these sessions, so LSER that keeps the best makes the "
            "very runs of LSER that forgets by age."
        )
    ends = [(arm, float(np.mean(list(quality(arm).values())))) for arm in BANDITS if arm in runs()]
    bandits = listing([f"{name_of(arm)} {known.share(score):.2f}" for arm, score in ends])
    return (
        "**Interests that drift** (F of the plan; interest evolution with reward = quality, 500 "
        f"sessions, {found.seeds} seeds of the 20 planned). Agents learn there: in the platform's "
        f"quality LSER has {shares[0]:.2f} and uniform {shares[1]:.2f} of the way from "
        f"{known.random.name} ({number(known.random.score)}) to the best policy known "
        f"({number(known.best.score)}), {bandits}: bandits need no memory and are ahead. The "
        f"primary test: {outcome} in reward per step, "
        f"{levels[0]:.3f} against {levels[1]:.3f}, {interval(found.mean, sign=True)}, "
        f"{chance(found.p)}.{rest}"
    )


def table() -> str:
    """Every arm: what it is trained for, and the platform's metric."""
    lines = [
        "| arm | reward per step [95 %] | minus uniform [95 %] | quality | share of the possible | "
        "worst run | seeds |",
        "|" + "---|" * 7,
    ]
    known, arms = scale(), Arms(runs())
    held = [arm for arm in (*MEMORIES, *BANDITS) if arm in arms]
    for arm in sorted(held, key=lambda name: -np.mean(list(trained(name).values()))):
        scores = list(quality(arm).values())
        mean = float(np.mean(scores))
        gap = "" if arm == REFERENCE else signed(arms.gap(arm, REFERENCE, "reward_per_step").mean)
        row = (
            *(name_of(arm), interval(mean_t(list(trained(arm).values())), digits=2), gap),
            *(f"{mean:.2f}", f"{known.share(mean):.2f}", f"{min(scores):.2f}"),
            f"{len(scores)}{cut_off(arms, arm)}",
        )
        lines.append("| " + " | ".join(row) + " |")
    for policy in (known.random, known.best):
        row = (policy.name, "", "", f"{policy.score:.2f}", f"{known.share(policy.score):.2f}")
        lines.append("| " + " | ".join((*row, "", "")) + " |")
    return "\n".join(lines)


def block() -> str:
    """The words, the table and how it ran."""
    return f"{reading()}\n\n{table()}\n\n{ran(records.find(FILE))}"


def main(words: list[str]) -> None:
    """Run, pack, or print every figure."""
    match words:
        case []:
            print(block())
        case ["pack", *folders]:
            gather([Path(folder) for folder in folders], wanted, FILE)
        case [verb, folder]:
            carry_out(verb, jobs(Path(folder)), FILE)


if __name__ == "__main__":
    main(sys.argv[1:])

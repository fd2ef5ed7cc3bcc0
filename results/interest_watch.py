"""Can memories be told apart on interest evolution paid by watch time: the figures of F in plan.md.

``python results/interest_watch.py pack FOLDER ...`` adds what fleets recorded there to
``interest_watch.jsonl.gz``; without arguments it prints every figure from there.
"""

import sys
from functools import cache
from pathlib import Path

import numpy as np
from campaign import gather
from committed import RESULTS
from delayed import Gap, signed, verdict
from interest import MEMORIES, OURS, REFERENCE, SEEDS, by_arm, cut_off, rest_of, wanted
from standing import Arms, chance, ran

from lser.experiments import records
from lser.experiments.studies import REWARD, ScoreScale, scale_of
from lser.report.stats import mean_t
from lser.report.style import interval, name_of, number

FILE = RESULTS / "interest_watch.jsonl.gz"
TRAINED = "reward_per_step"
LITTLE = 0.1  # of the way to the best return known
RETURNS = {  # watch time of a session: docs/simulators/interest_evolution.md
    "random slates": 160.2,
    "highest interest": 172.6,
    "ratio 1.5, the best return known": 383.0,
}


@cache
def arms() -> Arms:
    """The committed runs that did not fail, by arm and seed."""
    return Arms(by_arm(FILE) if FILE.exists() else {})


def there() -> bool:
    """Whether both arms of the primary test have run."""
    return OURS in arms() and REFERENCE in arms()


def primary(key: str = TRAINED) -> Gap:
    """LSER minus uniform, in reward per step or what stands beside it."""
    return arms().gap(OURS, REFERENCE, key)


def outcome() -> str:
    """What the primary test says in one word."""
    return verdict(primary().mean)


def scale() -> ScoreScale:
    """Random slates and the highest interest, in reward per step."""
    run = next(iter(arms().runs[REFERENCE].values()))
    known = scale_of(run.experiment, REWARD)
    assert known is not None
    return known


def reading() -> str:
    """What F by watch time says in words; nothing before it has run."""
    if not there():
        return ""
    found, known = primary(), scale()
    sessions = arms().sessions(OURS, REFERENCE)
    asked = next(iter(arms().runs[REFERENCE].values())).experiment["sessions"]
    short = "" if sessions == asked else f" of {asked:,}, where time cut them off"
    words = {
        "above": "LSER ends above uniform",
        "below": "LSER ends **below** uniform",
        "not separated": "LSER and uniform are **not separated**",
    }[outcome()]
    returns = ", ".join(f"{name} {score:.0f}" for name, score in RETURNS.items())
    return (
        "**Interests that drift, paid by watch time** (F of the plan; sessions as terminal, "
        f"{sessions:,} sessions{short}, {found.seeds} seeds of the {SEEDS} planned). The primary "
        f"test: {words} in reward per step, {_level(OURS)} against {_level(REFERENCE)}, "
        f"{interval(found.mean, sign=True)}, {chance(found.p)} ({known.random.name} "
        f"{number(known.random.score)}, {known.best.name} {number(known.best.score)}). Agents are "
        "trained there for what a *session* earns, which longer sessions make more of: "
        f"{_beside('reward', 'watch time per session', 0)} ({returns}); "
        f"{_beside('length', 'steps per session', 0)}; {_beside('metric', 'quality', 2)}."
        f"{_learned()}{rest_of(arms())}"
    )


def _learned() -> str:
    """How far sessions got on the way from random slates to the best return known."""
    random, *_, best = RETURNS.values()
    ours, theirs = (
        (np.mean(list(arms().scores(arm, "reward", OURS, REFERENCE).values())) - random)
        / (best - random)
        for arm in (OURS, REFERENCE)
    )
    little = ": agents hardly learn there, so that there is little to compare"
    said = little if max(ours, theirs) < LITTLE else ""
    return f" Of the way to the best return known LSER has {ours:.2f}, uniform {theirs:.2f}{said}."


def _level(arm: str, key: str = TRAINED, digits: int = 3) -> str:
    other = REFERENCE if arm == OURS else OURS
    scores = list(arms().scores(arm, key, other).values())
    return number(mean_t(scores).estimate, digits=digits)


def _beside(key: str, name: str, digits: int) -> str:
    levels = f"LSER {_level(OURS, key, digits)}, uniform {_level(REFERENCE, key, digits)}"
    return f"{name} {levels}, {interval(primary(key).mean, sign=True, digits=max(1, digits))}"


def table() -> str:
    """Every arm: the reward per step, the watch time and length of a session, and quality."""
    lines = [
        "| arm | reward per step [95 %] | minus uniform [95 %] | watch time per session | "
        "steps per session | quality | worst run | seeds |",
        "|" + "---|" * 8,
    ]
    held = [arm for arm in MEMORIES if arm in arms()]
    for arm in sorted(held, key=lambda arm: -arms().mean(arm, TRAINED)):
        scores = list(arms().scores(arm, TRAINED).values())
        gap = "" if arm == REFERENCE else signed(arms().gap(arm, REFERENCE, TRAINED).mean)
        row = (
            *(name_of(arm), interval(mean_t(scores), digits=2), gap),
            *(f"{arms().mean(arm, 'reward'):.0f}", f"{arms().mean(arm, 'length'):.0f}"),
            *(f"{arms().mean(arm, 'metric'):.2f}", f"{min(scores):.2f}"),
            f"{len(scores)}{cut_off(arms(), arm)}",
        )
        lines.append("| " + " | ".join(row) + " |")
    known = scale()
    per_step = {known.random.name: known.random.score, known.best.name: known.best.score}
    for name, score in RETURNS.items():
        step = per_step.get(name) or per_step.get("random actions" if "random" in name else "")
        row = (name, f"{step:.2f}" if step else "", "", f"{score:.0f}", "", "", "", "")
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def block() -> str:
    """The words, the table and how it ran; nothing before it has run."""
    if not there():
        return ""
    return f"{reading()}\n\n{table()}\n\n{ran(records.find(FILE))}"


def main(words: list[str]) -> None:
    """Pack, or print every figure."""
    match words:
        case []:
            print(block())
        case ["pack", *folders]:
            gather([Path(one) for one in folders], lambda run: wanted(run, "watch time"), FILE)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])

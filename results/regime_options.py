"""What could bring runs back in the paper's regime, where values do run away: R in plan.md.

``python results/regime_options.py run PLACE PLACES`` makes every PLACES-th of the runs, from PLACE
on, that is missing, into ``regime_options-PLACE.json``; ``pack`` joins these files; without
arguments it prints what they say.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cure_options import DOUBLE, AveragedDDPG, CentredDDPG
from paper_regime import continuing

import lser
from lser.agents.ddpg import DDPG
from lser.agents.td3 import TD3
from lser.experiments.build import sizes_of
from lser.experiments.experiment import Experiment
from lser.experiments.presets import steady
from lser.experiments.studies import plan
from lser.report.stats import Interval, holm, mean_t, paired_difference, paired_p
from lser.report.style import interval, listing, number

FILE = Path(__file__).with_name("regime_options.json")
SEEDS, POINTS = 5, (2_000, 3_000)
CURE = "the cure"
ARMS: dict[str, tuple[Any, dict[str, Any]]] = {
    CURE: (DDPG, {}),
    "double critics": (TD3, {"delay": DOUBLE["delay"], "smoothing": DOUBLE["smoothing"]}),
    "centred rewards": (CentredDDPG, {}),
    "averaged targets": (AveragedDDPG, {}),
}
Found = dict[str, dict[str, dict[str, float]]]  # by arm, by seed


def cells() -> list[Experiment]:
    """LSER in A's continuing half, by seed."""
    every = plan("paper-regime", "paper", SEEDS)
    return [one for one in every if one.horizon != "session" and one.label == "lser"]


def score(arm: str, one: Experiment) -> dict[str, float]:
    """One run: CTR over its two points, and values of own actions over the bound at the end."""
    kind, knobs = ARMS[arm]
    one = steady(one) if arm == CURE else one
    made = lser.build(one)
    settings = {**asdict(one.agent), **knobs}
    agent = kind(*sizes_of(made.env), seed=made.seeds.agent, **settings)
    made = made._replace(agent=agent)
    told, over, left = [], 0.0, list(POINTS)
    for step in made.train():
        if step.learned is not None and step.learned.values is not None:
            values = step.learned.values
            over = values.own_mean / max(values.bound_high, 1e-9)
        if step.sessions >= left[0]:
            told.append(made.evaluate(one.evaluate_sessions).metric)
            if not left[1:]:
                break
            left = left[1:]
    return {"ctr": round(float(np.mean(told)), 5), "over": round(over, 3)}


def run(place: int, places: int) -> None:
    """Make what is missing of this part, seed by seed."""
    torch.set_num_threads(1)
    out = FILE.with_name(f"regime_options-{place}.json")
    found: Found = json.loads(out.read_text()) if out.exists() else {}
    work = [(arm, one) for one in cells() for arm in ARMS]
    for arm, one in work[place::places]:
        seed = str(one.seed)
        if seed not in found.setdefault(arm, {}):
            found[arm][seed] = score(arm, one)
            out.write_text(json.dumps(found, indent=0) + "\n")
            print(arm, seed, flush=True)


def pack() -> None:
    """Join the parts."""
    joined: Found = {arm: {} for arm in ARMS}
    for part in FILE.parent.glob("regime_options-*.json"):
        for arm, runs in json.loads(part.read_text()).items():
            joined[arm].update(runs)
    ordered = {arm: dict(sorted(runs.items())) for arm, runs in joined.items()}
    FILE.write_text(json.dumps(ordered, indent=0) + "\n")


@cache
def runs() -> Found:
    """The committed runs."""
    found: Found = json.loads(FILE.read_text())
    return found


def printed() -> dict[int, float]:
    """LSER as printed, A's runs, at the same points."""
    return {
        seed: float(np.mean([p["metric"] for p in curve if p["sessions"] in POINTS]))
        for seed, curve in continuing().curves["lser"].items()
    }


def gaps() -> Iterator[tuple[str, Interval, float, int]]:
    """Each arm minus as printed: the interval, Holm's p and the seeds."""
    scores = {arm: {int(s): r["ctr"] for s, r in by.items()} for arm, by in runs().items()}
    base = printed()
    found = {
        arm: paired_difference(ours, {seed: base[seed] for seed in ours})
        for arm, ours in scores.items()
        if len(ours) > 1
    }
    corrected = holm([paired_p(one) for one in found.values()])
    for (arm, one), p in zip(found.items(), corrected, strict=True):
        yield arm, mean_t(one), p, len(one)


def reading() -> str:
    """What R says in words; nothing before it has been run."""
    if not FILE.exists():
        return ""
    parts = []
    for arm, gap, p, seeds in gaps():
        level = np.mean([run["ctr"] for run in runs()[arm].values()])
        over = np.median([run["over"] for run in runs()[arm].values()])
        parts.append(
            f"{arm} {level:.3f}, {interval(gap, sign=True)} over {seeds} seeds (p = {number(p)} "
            f"after Holm), values {over:.2f} of the bound at the end"
        )
    helped = [arm for arm, gap, p, _ in gaps() if gap.low > 0 and p <= 0.05]
    said = f"Runs are **brought back by {listing(helped)}**" if helped else "**None is separated**"
    base = [printed()[one.seed] for one in cells()]
    return (
        "**What could bring runs back in the paper's regime** (R of the plan; A's continuing half, "
        f"LSER, 3,000 sessions, points at 2,000 and 3,000): CTR as printed {np.mean(base):.3f}; "
        f"with each in place of it, CTR and the difference: {'; '.join(parts)}. {said}."
    )


def main(words: list[str]) -> None:
    """Run, pack, or print what they say."""
    match words:
        case ["run", place, places]:
            run(int(place), int(places))
        case ["pack"]:
            pack()
        case _:
            print(reading())


if __name__ == "__main__":
    main(sys.argv[1:])

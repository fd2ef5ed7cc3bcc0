"""What else could cure runaway values, on a case that shows it in minutes: M in plan.md.

``python results/cure_options.py`` runs what is missing and writes ``cure_options.json``.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

import lser
from lser.agents.ddpg import DDPG, DDPGLearner
from lser.agents.learner import Learner
from lser.agents.minibatch import Minibatch
from lser.agents.td3 import TD3
from lser.experiments.build import sizes_of
from lser.experiments.presets import earlier_bazaar, lasting, preset
from lser.report.findings import LEVEL
from lser.report.stats import holm, mean_t, paired_difference, paired_p
from lser.report.style import interval, listing, number

OUT = Path(__file__).with_name("cure_options.json")
SEEDS, SESSIONS = range(500, 506), 500
FAST = {"discount": 0.9, "actor_lr": 1e-3, "critic_lr": 1e-3, "tau": 0.01}
RATE, COPIES, EVERY = 0.001, 4, 100  # of the average reward; of the averaged targets


class Centred(DDPGLearner):
    """Rewards less a running average reward (Naik et al., 2024)."""

    average = 0.0

    def _target(self, data: Minibatch) -> Tensor:
        return super()._target(data) - self.average

    def _fit_critics(self, data: Minibatch, target: Tensor) -> tuple[Any, Tensor, Tensor]:
        found = super()._fit_critics(data, target)
        self.average += RATE * float(found[1].mean())
        return found


class Averaged(DDPGLearner):
    """The mean over the target critic and some of its past (Anschel et al., 2017)."""

    def _target(self, data: Minibatch) -> Tensor:
        copies: list[Tensor] = self.__dict__.setdefault("copies", [])
        total, now = super()._target(data), self.targets.clone()
        for copy in copies:
            self.targets.copy_(copy)
            total = total + super()._target(data)
        self.targets.copy_(now)
        mean = total / (1 + len(copies))
        if self.updates[0] % EVERY == 0:
            self.copies = [now, *copies][:COPIES]
        return mean


class CentredDDPG(DDPG):
    """DDPG with centred rewards."""

    learner_type: ClassVar[type[Learner]] = Centred


class AveragedDDPG(DDPG):
    """DDPG with averaged targets."""

    learner_type: ClassVar[type[Learner]] = Averaged


DOUBLE = {"delay": 1, "smoothing": 0.0, "noise_theta": 0.15, "noise_sigma": 0.2}
WEIGHTS = {"noise_scale": 0.0, "weight_noise": 0.5}
ARMS: dict[str, tuple[bool, Callable[..., Any], dict[str, Any]]] = {
    "as printed": (False, DDPG, {}),
    "the cure": (True, DDPG, {}),
    "double critics": (False, TD3, DOUBLE),
    "centring": (False, CentredDDPG, {}),
    "averaged targets": (False, AveragedDDPG, {}),
    "weight noise": (False, DDPG, WEIGHTS),
    "the cure, double critics": (True, TD3, DOUBLE),
    "the cure, centring": (True, CentredDDPG, {}),
    "the cure, weight noise": (True, DDPG, WEIGHTS),
}


def score(arm: str, seed: int) -> dict[str, float]:
    """One run: its final CTR, and the largest value of own actions as a share of the bound."""
    cure, kind, knobs = ARMS[arm]
    run = earlier_bazaar(lasting(preset("bazaar", "lser", "ddpg", cure=cure), SESSIONS))
    made = lser.build(replace(run, seed=seed))
    width, actions = sizes_of(made.env)
    bound = {"value_bound": "auto"} if cure else {}
    settings = {"noise_scale": 1.0, **FAST, **bound, **knobs}
    made = made._replace(agent=kind(width, actions, seed=made.seeds.agent, **settings))
    largest = 0.0
    for step in made.train():
        if step.learned is not None and step.learned.values is not None:
            values = step.learned.values
            largest = max(largest, values.own_largest / max(values.bound_high, 1e-9))
        if step.sessions >= SESSIONS:
            break
    return {"final": round(made.evaluate().metric, 5), "largest": round(largest, 3)}


def run() -> None:
    """Make what is missing, seed by seed."""
    torch.set_num_threads(1)
    found: dict[str, dict[str, Any]] = json.loads(OUT.read_text()) if OUT.exists() else {}
    for seed in map(str, SEEDS):
        for arm in ARMS:
            if seed not in found.setdefault(arm, {}):
                found[arm][seed] = score(arm, int(seed))
                OUT.write_text(json.dumps(found, indent=0) + "\n")


def reading() -> str:
    """What M says in words."""
    found = json.loads(OUT.read_text())
    scores = {arm: {s: run["final"] for s, run in runs.items()} for arm, runs in found.items()}
    others = [arm for arm in ARMS if arm not in ("the cure", "as printed")]
    gaps = {arm: paired_difference(scores[arm], scores["the cure"]) for arm in ARMS}
    adjusted = dict(zip(others, holm([paired_p(gaps[arm]) for arm in others]), strict=True))
    means = {arm: mean_t(gaps[arm]) for arm in ARMS}
    better = [arm for arm in others if means[arm].low > 0 and adjusted[arm] <= LEVEL]
    worse = [arm for arm in others if means[arm].high < 0 and adjusted[arm] <= LEVEL]
    told = "; ".join(
        f"{_said(arm)} {interval(means[arm], sign=True)}"
        + (f" (p = {number(adjusted[arm])} after Holm)" if arm in adjusted else "")
        for arm in ARMS
        if arm != "the cure"
    )
    largest = max(run["largest"] for run in found["as printed"].values())
    level = mean_t(list(scores["the cure"].values())).estimate
    below = f"; below it end runs with {listing([_said(arm) for arm in worse])}" if worse else ""
    return (
        "**What else could cure** (M of the plan; Bazaar, LSER, 500 sessions, "
        f"{len(scores['the cure'])} seeds; final CTR, minus that of the cure, {level:.3f}): "
        f"{told}. By the rule **{listing(better) or 'nothing'} has earned its place** beside the "
        f"cure or instead of it{below}. Values do not run away there (at most {largest:.2f} of the "
        "bound as printed), so that it cannot show what the cure is for."
    )


def _said(arm: str) -> str:
    return arm.replace(", ", " with ")


if __name__ == "__main__":
    run()
    print(reading())

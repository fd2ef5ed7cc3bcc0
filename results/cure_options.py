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
from lser.experiments.presets import lasting, preset
from lser.report.stats import holm, mean_t, paired_difference, paired_p

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
    run = lasting(preset("bazaar", "lser", "ddpg", cure=cure), SESSIONS)
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


def main() -> None:
    """Run what is missing, and say what came of it."""
    torch.set_num_threads(1)
    found: dict[str, dict[str, Any]] = json.loads(OUT.read_text()) if OUT.exists() else {}
    for seed in map(str, SEEDS):
        for arm in ARMS:
            if seed not in found.setdefault(arm, {}):
                found[arm][seed] = score(arm, int(seed))
                OUT.write_text(json.dumps(found, indent=0) + "\n")
    scores = {arm: {s: run["final"] for s, run in runs.items()} for arm, runs in found.items()}
    others = [arm for arm in ARMS if arm != "the cure" and arm != "as printed"]
    gaps = {arm: paired_difference(scores[arm], scores["the cure"]) for arm in ARMS}
    adjusted = dict(zip(others, holm([paired_p(gaps[arm]) for arm in others]), strict=True))
    for arm in ARMS:
        mean, gap = mean_t(list(scores[arm].values())), mean_t(gaps[arm])
        largest = max(run["largest"] for run in found[arm].values())
        holms = f", p = {adjusted[arm]:.3f} after Holm" if arm in adjusted else ""
        print(
            f"{arm}: {mean.estimate:.3f} [{mean.low:.3f}, {mean.high:.3f}], minus the cure "
            f"{gap.estimate:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]{holms}; "
            f"largest value {largest:.2f} of the bound"
        )


if __name__ == "__main__":
    main()

"""The runs that a letter of plan.md stands for, as fleets can make them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lser.agents.params import ActorCriticParams
from lser.experiments.experiment import Experiment
from lser.experiments.presets import Scale, lasting
from lser.experiments.studies import plan

RERUN, NOISE = ("lser", "uniform"), 0.1  # the runs of C that J makes again
BESIDE = ("reward-top", "per", "der", "aer", "ser", "her")  # of S
LATER = ("reward-top", "aer", "ser", "her")  # of these Z has ten more seeds
PARTS = ("bounds alone", "the newest alone", "contrast alone")  # parts of the cure
SLOW = ("per", "der")  # these wait for errors, and S was cut off with them half-way
FLEET, CPU = "another fleet", "a CPU"  # where


class Study(NamedTuple):
    """The study of a letter, and how many seeds of it there are."""

    name: str
    scale: Scale
    seeds: int
    fewer: Mapping[str, int] = {}
    """Arms that have fewer seeds, and those that have none."""
    only: Sequence[str] = ()
    """The arms, if not all."""
    after: Mapping[str, int] = {}
    """How many seeds of an arm another letter had."""

    def has(self, one: Experiment, first: int) -> bool:
        """Whether it has this run of the study, whose seeds go from `first` on."""
        place = one.seed - first
        given = self.after.get(one.label, 0), self.fewer.get(one.label, self.seeds)
        return (not self.only or one.label in self.only) and given[0] <= place < given[1]


STUDIES = {
    "b": Study("fall", "paper", 10),
    "c": Study("confirmation", "paper", 20),
    "f": Study("interest", "medium", 20),
    "g": Study("offers", "paper", 10),
    "h": Study("options", "paper", 10),
    "k": Study("cure", "paper", 20),
    "s": Study("length", "paper", 20, dict.fromkeys(BESIDE, 10) | {"shuffled-code": 0}),
    "y": Study("cure", "paper", 20, only=("shuffled-code with the cure",)),
    "z": Study(
        "length", "paper", 20, only=("shuffled-code", *LATER), after=dict.fromkeys(LATER, 10)
    ),
    "aa": Study("parts", "paper", 12, only=PARTS),
    "bb": Study("plateaus", "paper", 12),
    "ab": Study("length", "paper", 20, only=SLOW, after=dict.fromkeys(SLOW, 10)),
    "ac": Study("cure", "paper", 10, only=("der with the cure",)),
}


@dataclass(frozen=True)
class Choice:
    """Which of a letter's runs; what is not said is left as it was planned."""

    arms: Sequence[str] = ()
    seeds: int = 0
    sessions: int = 0
    shift: int = 0
    """Added to every seed: to try things out on seeds that are not reported."""
    reward: str = ""
    """Of F: quality or watch time."""
    noise: float | None = None
    """Of C: .1 or .3."""
    flips: int | None = None
    """Of G."""


def chosen(letters: Sequence[str], choice: Choice) -> list[Experiment]:
    """The letters' runs that can be stacked (bandits cannot), those of H with those of J."""
    cells = []
    for letter in letters:
        study = STUDIES[letter]
        every = plan(study.name, study.scale, choice.seeds or study.seeds)
        first = min(one.seed for one in every)
        cells += [one for one in every if study.has(one, first)]
        cells += rerun(FLEET, choice.seeds or study.seeds) if letter == "h" else []
    wanted = [_changed(one, choice) for one in cells if _wanted(one, choice)]
    return sorted(wanted, key=lambda one: one.label)


def rerun(where: str, seeds: int = STUDIES["h"].seeds) -> list[Experiment]:
    """J: C's runs of LSER and uniform again, seed by seed; nothing but their names differs."""
    return [
        replace(one, study="reruns", label=f"{one.label} on {where}")
        for one in plan("confirmation", "paper", seeds)
        if one.label in RERUN and one.agent.noise_scale == NOISE
    ]


def command_of(one: Experiment, letters: Sequence[str]) -> str:
    """What makes this run, for its record."""
    study = next((STUDIES[at] for at in letters if STUDIES[at].name == one.study), None)
    if study is None:
        return f"python results/planned.py FOLDER {' '.join(letters)}"
    return f"lser study {study.name} --scale {study.scale} --seeds {study.seeds} --engine fleet"


def _wanted(one: Experiment, choice: Choice) -> bool:
    world = one.simulator
    return (
        isinstance(one.agent, ActorCriticParams)
        and (not choice.arms or one.label in choice.arms)
        and choice.reward in ("", getattr(world, "reward", ""))
        and choice.noise in (None, one.agent.noise_scale)
        and choice.flips in (None, getattr(world, "number_of_flips", None))
    )


def _changed(one: Experiment, choice: Choice) -> Experiment:
    shorter = lasting(one, choice.sessions) if choice.sessions else one
    return replace(shorter, seed=one.seed + choice.shift)

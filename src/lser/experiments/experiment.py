"""An experiment as plain data: who is served, what remembers, what learns, for how long.

Its simulator, memory and agent are the `Params` of their classes, found through the catalogue.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Generic, Literal, get_args

from typing_extensions import TypeVar

from lser.catalogue import AGENTS, MEMORIES, SIMULATORS, Catalogue, nearest
from lser.checks import check_choice, check_count, check_fields, check_number
from lser.types import HORIZONS, Horizon

# The command line asks for the settings of the classes that were named.
SimulatorParams = TypeVar("SimulatorParams", default=Any)
MemoryParams = TypeVar("MemoryParams", default=Any)
AgentParams = TypeVar("AgentParams", default=Any)
Stops = Literal["noise", "noise and greedy", "learning"]
PARTS: dict[str, Catalogue] = {"simulator": SIMULATORS, "memory": MEMORIES, "agent": AGENTS}


@dataclass(frozen=True)
class Experiment(Generic[SimulatorParams, MemoryParams, AgentParams]):
    """One run: who is served, what remembers, what learns, for how long."""

    simulator: SimulatorParams = field(default_factory=lambda: SIMULATORS["bazaar"].params())
    memory: MemoryParams = field(default_factory=lambda: MEMORIES["lser"].params())
    agent: AgentParams = field(default_factory=lambda: AGENTS["ddpg"].params())
    seed: int = 0
    """Drives users, networks, noise and memory; equal seeds are paired across memories."""
    sessions: int = 2_000
    """Length of the run: finished user sessions."""
    users: int = 8
    """Users served side by side."""
    capacity: int = 1_000_000
    """Transitions the memory holds at most."""
    batch_size: int = 128
    updates_per_step: float = 1.0
    """Gradient updates per environment step; may be a fraction."""
    learning_starts: int = 128
    """Transitions stored before learning starts."""
    horizon: Horizon = "continuing"
    """Whether the critic bootstraps through a change of user, or a session is terminal."""
    intervention: float | None = None
    """Stop exploring for good at the first evaluation at or above this score (the paper's T_r)."""
    intervention_stops: Stops = "noise and greedy"
    """What the intervention ends: the noise, the memory's random draws as well, or learning too."""
    evaluate_every: int = 200
    """Sessions between evaluations."""
    evaluate_sessions: int = 100
    """Sessions of one evaluation."""
    final_sessions: int = 1_000
    """Sessions of the evaluation at the end."""
    feeders: int = 0
    """Collectors on a Ray cluster, each with its own `users`; 0: the learner's process acts."""
    session_length: float = 10.0
    """Expected pages per session; only the memories' annealing schedules use it."""
    study: str = ""
    """The study this run belongs to."""
    label: str = ""
    """The run's cell within its study; by default the memory's name."""

    def __post_init__(self) -> None:
        check_fields(self, largest=inf)
        for name in ("sessions", "users", "capacity", "batch_size"):
            check_count(name, getattr(self, name))
        for name in ("evaluate_every", "evaluate_sessions", "final_sessions"):
            check_count(name, getattr(self, name))
        for name in ("seed", "learning_starts", "feeders"):
            check_count(name, getattr(self, name), low=0)
        if self.intervention is not None:
            check_number("intervention", self.intervention)
        check_choice("horizon", self.horizon, HORIZONS)
        check_choice("intervention_stops", self.intervention_stops, get_args(Stops))
        check_number("updates_per_step", self.updates_per_step, low=0.0, high=1e6, above=True)
        check_number("session_length", self.session_length, low=0.0, high=1e9, above=True)

    @property
    def expected_updates(self) -> int:
        """About how many updates the run will make."""
        return max(1, round(self.sessions * self.session_length * self.updates_per_step))

    @property
    def names(self) -> tuple[str, str, str]:
        """The names of its simulator, its memory and its agent."""
        return (
            SIMULATORS.name_of(self.simulator),
            MEMORIES.name_of(self.memory),
            AGENTS.name_of(self.agent),
        )


def to_json(experiment: Experiment) -> dict[str, Any]:
    """The experiment as plain data; `from_json` reads it back."""
    plain = dataclasses.asdict(experiment)
    for part, name in zip(PARTS, experiment.names, strict=True):
        plain[part] = {"name": name, **plain[part]}
    return plain


def from_json(plain: dict[str, Any]) -> Experiment:
    """An experiment from `to_json`'s data; unknown names and fields are ValueErrors."""
    values = dict(plain)
    for part, catalogue in PARTS.items():
        named = values.get(part)
        if not isinstance(named, dict) or not isinstance(named.get("name"), str):
            raise ValueError(f"an experiment needs a {part} with a name, got {named!r}")
        settings = dict(named)
        kind = catalogue[settings.pop("name")].params_type()
        values[part] = _filled(kind, settings)
    experiment: Experiment = _filled(Experiment, values)
    return experiment


def completed(plain: Mapping[str, Any]) -> dict[str, Any]:
    """`to_json`'s data, with settings that it is too old to have at their defaults.

    What somebody else wrote stays as it is: parts that are not of this library, for which nothing
    is imported, parts without settings or with others, and all of a record without a batch size.
    """
    found = dict(plain)
    if "batch_size" not in plain:
        return found
    for part, catalogue in PARTS.items():
        named = plain.get(part)
        if isinstance(named, Mapping) and len(named) > 1 and named.get("name") in catalogue.own:
            defaults = dataclasses.asdict(catalogue[named["name"]].params())
            if named.keys() <= {"name", *defaults}:
                found[part] = {**defaults, **named}
    newer = {f.name: f.default for f in dataclasses.fields(Experiment) if f.name not in plain}
    return found | {name: v for name, v in newer.items() if v is not dataclasses.MISSING}


def settings_of(experiment: Experiment) -> dict[str, Any]:
    """`to_json` without what stands at its default: a setting that is new changes nothing."""
    plain = {**_changed(experiment), "seed": experiment.seed}
    for part, name in zip(PARTS, experiment.names, strict=True):
        plain[part] = {"name": name, **_changed(getattr(experiment, part))}
    return plain


def _changed(params: Any) -> dict[str, Any]:
    default, values = type(params)(), dataclasses.asdict(params)
    return {
        name: value
        for name, value in values.items()
        if getattr(params, name) != getattr(default, name)
    }


def _filled(kind: type, values: dict[str, Any]) -> Any:
    known = [known.name for known in dataclasses.fields(kind)]
    for name in values:
        nearest(f"{kind.__name__} field", name, known)
    as_tuple = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
    return kind(**as_tuple)

"""Names of simulators, memories and agents, and experiments as JSON."""

import dataclasses
import difflib
from typing import Any

from lser.experiments.config import (
    Aer,
    Agent,
    Bazaar,
    Ddpg,
    Der,
    Experiment,
    Her,
    InterestEvolution,
    LongTermSatisfaction,
    Lser,
    Memory,
    Per,
    RecoGym,
    Sac,
    Ser,
    Simulator,
    Td3,
    Uniform,
    VirtualTaobao,
)

SIMULATORS: dict[str, type] = {
    "bazaar": Bazaar,
    "virtual-taobao": VirtualTaobao,
    "interest-evolution": InterestEvolution,
    "long-term-satisfaction": LongTermSatisfaction,
    "recogym": RecoGym,
}
MEMORIES: dict[str, Memory] = {
    "lser": Lser(),
    "uniform": Uniform(),
    "per": Per(),
    "der": Der(),
    "der-uniform": Der(prioritized=False),
    "aer": Aer(),
    "ser": Ser(),
    "her": Her(),
    "her-balanced": Her(balanced=True),
    "lser-p": Lser(store="fifo"),
    "lser-s": Lser(sampling="uniform"),
    "reward-top": Lser(codes="constant"),
    "random-code": Lser(codes="random"),
}
AGENTS: dict[str, type] = {"ddpg": Ddpg, "td3": Td3, "sac": Sac}


def nearest(kind: str, name: str, known: dict[str, Any]) -> Any:
    """`known[name]`, or a ValueError that names the nearest valid names."""
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
    raise ValueError(f"unknown {kind} {name!r}; {hint}")


def simulator_name(config: Simulator) -> str:
    """The name that the command line and the records use."""
    return next(name for name, kind in SIMULATORS.items() if type(config) is kind)


def agent_name(config: Agent) -> str:
    """The name that the command line and the records use."""
    return next(name for name, kind in AGENTS.items() if type(config) is kind)


def memory_name(config: Memory) -> str:
    """The name of the variant; knobs that make no variant do not change it."""
    marks = ("store", "sampling", "codes", "prioritized", "balanced")  # what makes a variant
    return next(
        name
        for name, variant in MEMORIES.items()
        if type(variant) is type(config)
        and all(getattr(variant, mark, None) == getattr(config, mark, None) for mark in marks)
    )


def to_json(experiment: Experiment) -> dict[str, Any]:
    """The experiment as plain data; `from_json` reads it back."""
    plain = dataclasses.asdict(experiment)
    plain["simulator"] = {"name": simulator_name(experiment.simulator), **plain["simulator"]}
    plain["memory"] = {"name": memory_name(experiment.memory), **plain["memory"]}
    plain["agent"] = {"name": agent_name(experiment.agent), **plain["agent"]}
    return plain


def from_json(plain: dict[str, Any]) -> Experiment:
    """An experiment from `to_json`'s data; unknown names and fields are ValueErrors."""
    values = dict(plain)
    values["simulator"] = _part(values["simulator"], "simulator", SIMULATORS)
    values["agent"] = _part(values["agent"], "agent", AGENTS)
    kinds = {name: type(variant) for name, variant in MEMORIES.items()}
    values["memory"] = _part(values["memory"], "memory", kinds)
    experiment: Experiment = _filled(Experiment, values)
    return experiment


def _part(plain: dict[str, Any], kind: str, known: dict[str, type]) -> Any:
    values = dict(plain)
    return _filled(nearest(kind, values.pop("name"), known), values)


def _filled(kind: type, values: dict[str, Any]) -> Any:
    fields = {f.name: f for f in dataclasses.fields(kind)}
    for name in values:
        nearest(f"{kind.__name__} field", name, fields)
    as_tuple = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
    return kind(**as_tuple)

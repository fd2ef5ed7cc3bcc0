"""The platforms of the comparison as Gymnasium environments, native in batches of users.

Each is a package that gives its parameters at once, and its dynamics and environments in the module
`simulator`, which may load Numba.
"""

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

import gymnasium as gym

if TYPE_CHECKING:
    from lser.simulators.base import Simulator


class Entry(NamedTuple):
    """Where a simulator is; `prefix + "Env"` and `prefix + "VectorEnv"` are its environments."""

    name: str  # as the command line and the records have it
    package: str  # under lser.simulators
    prefix: str  # the name of the class with the dynamics

    @property
    def module(self) -> str:
        """The module with the dynamics and the environments."""
        return f"lser.simulators.{self.package}.simulator"


SIMULATORS: dict[str, Entry] = {
    "lser/VirtualTaobao-v0": Entry("virtual-taobao", "virtual_taobao", "VirtualTaobao"),
    "lser/InterestEvolution-v0": Entry(
        "interest-evolution", "recsim.interest_evolution", "InterestEvolution"
    ),
    "lser/LongTermSatisfaction-v0": Entry(
        "long-term-satisfaction", "recsim.long_term_satisfaction", "LongTermSatisfaction"
    ),
    "lser/RecoGym-v0": Entry("recogym", "recogym", "RecoGym"),
    "lser/Bazaar-v0": Entry("bazaar", "bazaar", "Bazaar"),
}


def simulator_type(name: str) -> "type[Simulator]":
    """The class with the dynamics of the simulator called `name`, such as "recogym"."""
    for entry in SIMULATORS.values():
        if entry.name == name:
            kind: type[Simulator] = getattr(import_module(entry.module), entry.prefix)
            return kind
    known = ", ".join(entry.name for entry in SIMULATORS.values())
    raise ValueError(f"unknown simulator {name!r}; known: {known}")


def register() -> None:
    """Make the simulators known to `gym.make` and `gym.make_vec`; done by ``import lser``."""
    for identity, entry in SIMULATORS.items():
        if identity not in gym.registry:
            gym.register(
                identity,
                entry_point=f"{entry.module}:{entry.prefix}Env",
                vector_entry_point=f"{entry.module}:{entry.prefix}VectorEnv",
            )

"""Agents that learn from a replay memory: DDPG, TD3 and SAC."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lser.agents.ddpg import DDPG
    from lser.agents.protocol import Agent, Learned, Values
    from lser.agents.sac import SAC
    from lser.agents.saved import load_agent
    from lser.agents.td3 import TD3

__all__ = ["DDPG", "SAC", "TD3", "Agent", "Learned", "Values", "load_agent"]
_HOMES = {"Agent": "protocol", "Learned": "protocol", "Values": "protocol", "load_agent": "saved"}


def __getattr__(name: str) -> Any:
    """Import on first use: the agents need torch, their `params` do not."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES.get(name, name.lower())
    return getattr(import_module(f"lser.agents.{home}"), name)

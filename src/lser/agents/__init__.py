"""Agents: DDPG, TD3 and SAC, a model of clicks, and the bandits to compare them with."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lser.agents.click_model import ClickModel
    from lser.agents.ddpg import DDPG
    from lser.agents.oracle import Oracle
    from lser.agents.protocol import Agent, Learned, Values
    from lser.agents.ridge import Ridge
    from lser.agents.sac import SAC
    from lser.agents.saved import load_agent
    from lser.agents.simple import Popular, RandomAgent
    from lser.agents.td3 import TD3

__all__ = [
    "DDPG",
    "SAC",
    "TD3",
    "Agent",
    "ClickModel",
    "Learned",
    "Oracle",
    "Popular",
    "RandomAgent",
    "Ridge",
    "Values",
    "load_agent",
]
_HOMES = {
    "Agent": "protocol",
    "ClickModel": "click_model",
    "Learned": "protocol",
    "Oracle": "oracle",
    "Popular": "simple",
    "RandomAgent": "simple",
    "Values": "protocol",
    "load_agent": "saved",
}


def __getattr__(name: str) -> Any:
    """Import on first use: the agents need torch, their `params` do not."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES.get(name, name.lower())
    return getattr(import_module(f"lser.agents.{home}"), name)

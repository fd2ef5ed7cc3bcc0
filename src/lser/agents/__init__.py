"""Agents that learn from a replay memory: DDPG, TD3 and SAC."""

from lser.agents.base import Agent, Learned
from lser.agents.ddpg import DDPG
from lser.agents.sac import SAC
from lser.agents.td3 import TD3

__all__ = ["DDPG", "SAC", "TD3", "Agent", "Learned"]

"""Agents that learn from a replay memory: DDPG, TD3 and SAC."""

from lser.agents.base import Agent, Learned
from lser.agents.ddpg import DDPG

__all__ = ["DDPG", "Agent", "Learned"]

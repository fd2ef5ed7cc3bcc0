"""Policies as serving sees them: immutable, from an observation to candidates.

One kind points in a direction, and the items nearest to it are the candidates; the other ranks the
catalogue as it is, whoever asks.
"""

import threading
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from lser.online import tower
from lser.online.items import Found
from lser.online.nearest import Nearest
from lser.online.store import Shelf
from lser.types import Bool, Float32, Int64

ROOM = "policies"
NEWEST = 20  # versions of every learner that stay


class Directed(ABC):
    """A policy that says where the page should lie; never changes."""

    kind: str

    @abstractmethod
    def direction(self, observation: Float32) -> Float32:
        """A vector (d,) in the space of the items."""


class Ranked(ABC):
    """A policy that ranks without a direction; never changes."""

    kind: str

    @abstractmethod
    def rank(self, nearest: Nearest, count: int, mask: Bool | None) -> Found:
        """The best `count` items among those that `mask` allows."""


Policy = Directed | Ranked


class TowerPolicy(Directed):
    """A user tower's direction."""

    kind = "tower"

    def __init__(self, parameters: dict[str, Float32]) -> None:
        """Serve these parameters, which nobody changes any more."""
        self._parameters = parameters

    def direction(self, observation: Float32) -> Float32:
        """f(o), (d,)."""
        return tower.direction(self._parameters, observation)


class BanditPolicy(TowerPolicy):
    """The linear bandit's direction: a tower whose parameters are W."""

    kind = "bandit"


class AgentPolicy(Directed):
    """The action of an agent of `lser.agents`, as a direction."""

    kind = "agent"

    def __init__(self, agent: Any) -> None:
        """Serve an agent that nobody trains any more."""
        self._agent = agent
        self._lock = threading.Lock()  # acting uses the agent's buffers

    def direction(self, observation: Float32) -> Float32:
        """The action, (d,)."""
        with self._lock:
            action: Float32 = self._agent.act(observation[None])[0]
        return action


class PopularPolicy(Ranked):
    """The items clicked most often for how often they were shown."""

    kind = "popular"

    def __init__(self, scores: Float32) -> None:
        """Serve scores by row; rows that came later have the score of an item never shown."""
        self._scores = scores

    def rank(self, nearest: Nearest, count: int, mask: Bool | None) -> Found:
        """The items of highest score."""
        return nearest.top(self._scores, count, mask)


class RandomPolicy(Ranked):
    """No preference: every page is drawn at random."""

    kind = "random"

    def rank(self, nearest: Nearest, count: int, mask: Bool | None) -> Found:
        """No candidates."""
        return Found(np.zeros(0, np.int64), np.zeros(0, np.float32))


def popularity(clicks: Int64, shown: Int64, strength: float = 100.0) -> Float32:
    """Clicks per showing, drawn towards the mean of all items as if by `strength` showings."""
    mean = clicks.sum() / max(int(shown.sum()), 1)
    score: Float32 = ((clicks + strength * mean) / (shown + strength)).astype(np.float32)
    return score


def save_policy(shelf: Shelf, arm: str, version: int, tree: dict[str, Any]) -> None:
    """File a policy; the same version again replaces it by the same."""
    shelf.save(f"{ROOM}/{arm}", version, tree)


def load_policy(shelf: Shelf, arm: str, version: int) -> Policy:
    """Read a policy back; ValueError or OSError where there is none."""
    return policy_of(shelf.load(f"{ROOM}/{arm}", version))


def forget_policies(shelf: Shelf, arm: str, keep: set[int]) -> None:
    """Delete old versions, except the newest and those in `keep`."""
    shelf.forget(f"{ROOM}/{arm}", newest=NEWEST, keep=keep)


def policy_of(tree: dict[str, Any]) -> Policy:
    """The policy that a learner described."""
    match tree["kind"]:
        case "tower":
            return TowerPolicy(tree["parameters"])
        case "bandit":
            return BanditPolicy({"linear": tree["parameters"]["linear"]})
        case "popular":
            return PopularPolicy(popularity(tree["clicks"], tree["shown"]))
        case "agent":
            from lser.online.agent_learner import build_agent

            agent = build_agent(tree["observation_dim"], tree["item_dim"], seed=0)
            agent.load_state_dict(tree["agent"])
            return AgentPolicy(agent)
    raise ValueError(f"unknown kind of policy: {tree['kind']!r}")

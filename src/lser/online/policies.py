"""Policies as serving sees them: immutable, one file each, from an observation to candidates."""

import threading
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lser.online import tower
from lser.online.items import Found
from lser.online.nearest import Nearest
from lser.training import checkpoint
from lser.types import Bool, Float32, Int64

FOLDER = "policies"


class Policy(Protocol):
    """Chooses candidates; never changes."""

    kind: str

    def direction(self, observation: Float32) -> Float32 | None:
        """Where the page should lie, (d,); None for a policy that ranks without a direction."""
        ...

    def rank(self, nearest: Nearest, count: int, mask: Bool | None) -> Found:
        """Candidates of a policy without a direction."""
        ...


class TowerPolicy:
    """A user tower's direction."""

    kind = "tower"

    def __init__(self, parameters: dict[str, Float32]) -> None:
        """Serve these parameters, which nobody changes any more."""
        self._parameters = parameters

    def direction(self, observation: Float32) -> Float32:
        """f(o), (d,)."""
        found: Float32 = tower.direction(self._parameters, observation[None])[0]
        return found

    def rank(self, nearest: Nearest, count: int, mask: Bool | None) -> Found:
        """Not asked of a policy with a direction."""
        raise NotImplementedError


class BanditPolicy(TowerPolicy):
    """The linear bandit's direction: a tower whose parameters are W."""

    kind = "bandit"


class AgentPolicy:
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

    def rank(self, nearest: Nearest, count: int, mask: Bool | None) -> Found:
        """Not asked of a policy with a direction."""
        raise NotImplementedError


class PopularPolicy:
    """The items clicked most often for how often they were shown."""

    kind = "popular"

    def __init__(self, scores: Float32) -> None:
        """Serve scores by row; rows that came later have the score of an item never shown."""
        self._scores = scores

    def direction(self, observation: Float32) -> None:
        """It has none."""
        return

    def rank(self, nearest: Nearest, count: int, mask: Bool | None) -> Found:
        """The items of highest score."""
        return nearest.top(self._scores, count, mask)


class RandomPolicy:
    """No preference: every page is drawn at random."""

    kind = "random"

    def direction(self, observation: Float32) -> None:
        """It has none."""
        return

    def rank(self, nearest: Nearest, count: int, mask: Bool | None) -> Found:
        """No candidates."""
        return Found(np.zeros(0, np.int64), np.zeros(0, np.float32))


def popularity(clicks: Int64, shown: Int64, strength: float = 100.0) -> Float32:
    """Clicks per showing, drawn towards the mean of all items as if by `strength` showings."""
    mean = clicks.sum() / max(int(shown.sum()), 1)
    score: Float32 = ((clicks + strength * mean) / (shown + strength)).astype(np.float32)
    return score


def save_policy(folder: Path, arm: str, version: int, tree: dict[str, Any]) -> None:
    """File a policy; the same version again replaces the file by the same."""
    checkpoint.save(folder / FOLDER / arm / f"{version:08d}", version, tree)


def load_policy(folder: Path, arm: str, version: int) -> Policy:
    """Read a policy back; ValueError or OSError where there is none."""
    return policy_of(checkpoint.load(_file(folder, arm, version)))


def _file(folder: Path, arm: str, version: int) -> Path:
    return folder / FOLDER / arm / f"{version:08d}" / f"{version:012d}.lser"


def forget_policies(folder: Path, arm: str, keep: set[int], newest: int = 20) -> None:
    """Delete the files of old versions, except the newest and those in `keep`."""
    versions = sorted((folder / FOLDER / arm).glob("*"))
    for old in versions[:-newest]:
        if int(old.name) not in keep:
            for file in old.iterdir():
                file.unlink()
            old.rmdir()


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

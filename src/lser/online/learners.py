"""What learns: one object per arm, fed with closed pages in the order of the log."""

import json
from typing import Any, Protocol

import numpy as np

from lser.online.bandit import Bandit
from lser.online.items import Items
from lser.online.policies import popularity
from lser.online.seen import Seen
from lser.online.settings import Settings
from lser.online.tower import Tower, sigmoid
from lser.replay import LocalityReplay, Replay, State, UniformReplay
from lser.types import Float32

GREEDY = (
    0.1  # share of a batch that is the best of the visitor's bucket; more cost clicks on Bazaar
)
NEWEST = 8  # places of a batch for the newest pages
# memories are fastest with arrays as they keep them
_TRUE, _FALSE = np.ones(1, np.bool_), np.zeros(1, np.bool_)


class Learner(Protocol):
    """Learns from pages and describes a policy; its state is exact."""

    updates: int

    def see(self, page: Seen, updates: int) -> None:
        """Do so many updates for the page, then store it."""
        ...

    def policy(self) -> dict[str, Any] | None:
        """The policy as it stands, for `policies.policy_of`; None before there is one."""
        ...

    def stats(self) -> dict[str, float]:
        """Plain numbers."""
        ...

    def state(self) -> dict[str, Any]:
        """Everything needed to continue exactly."""
        ...

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state()`."""
        ...


def memory_for(arm: str, settings: Settings, observation_dim: int, action_dim: int) -> Replay:
    """The replay memory of an arm.

    A full one lets its oldest page go, whatever it earned: of pages that are kept for their clicks
    nobody could learn how likely a click is.
    """
    size = (settings.capacity, observation_dim, action_dim)
    if arm == "uniform":
        return UniformReplay(*size, newest=NEWEST, seed=settings.seed)
    return LocalityReplay(
        *size,
        bits=6,
        greedy=GREEDY,
        greedy_per="item",
        random_from="memory",
        store="fifo",
        newest=NEWEST if arm == "lser-steady" else 0,
        seed=settings.seed,
    )


class TowerLearner:
    """A user tower that learns from replayed pages; a page's action is which items it showed.

    The memory decides which pages are replayed; the likelihood is of every item on them.
    """

    def __init__(self, arm: str, settings: Settings, width: int, items: Items) -> None:
        """Learn for `arm` from observations of `width` numbers."""
        self._items, self._settings, self._places = items, settings, settings.k
        self._tower = Tower(width, settings.dim, places=settings.k, seed=settings.seed)
        self._memory: Any = memory_for(arm, settings, width, 2 * settings.k)
        self.updates = 0
        self._expected = 0.0  # running mean of the clicks expected on a replayed page
        self._loss = 0.0

    def see(self, page: Seen, updates: int) -> None:
        """Do so many updates for the page, then store it."""
        if len(self._memory) >= self._settings.learning_starts:
            for _ in range(updates):
                self._update(page.observation)
        k = min(self._places, len(page.rows))
        action = np.full(2 * self._places, -1, np.float32)
        action[:k] = page.rows[:k]
        action[self._places : self._places + k] = page.clicked[:k]
        observation = page.observation[None]
        reward = page.clicked.sum(keepdims=True)
        self._memory.extend(observation, action[None], reward, observation, _TRUE, _FALSE)

    def _update(self, query: Float32) -> None:
        batch = self._memory.sample(self._settings.batch_size, query=query)
        rows = batch.action[:, : self._places].astype(np.int64)
        shown = (rows >= 0).astype(np.float32)
        clicked = np.maximum(batch.action[:, self._places :], 0)
        vectors = self._items.vectors[np.maximum(rows, 0)]
        surprise = self._tower.learn(batch.observation, vectors, clicked, shown)
        self._memory.update(batch.ids, surprise)
        self.updates += 1
        self._expected += 0.01 * (float((clicked.sum(axis=1) - surprise).mean()) - self._expected)
        self._loss += 0.01 * (float(np.abs(surprise).mean()) - self._loss)

    def policy(self) -> dict[str, Any] | None:
        """The tower's parameters."""
        if not self.updates:
            return None
        parameters = {name: value.copy() for name, value in self._tower.parameters.items()}
        return {"kind": "tower", "parameters": parameters}

    def stats(self) -> dict[str, float]:
        """The memory's numbers and the tower's."""
        top = float(sigmoid(self._tower.parameters["places"].max(keepdims=True))[0])
        memory = {f"memory_{name}": value for name, value in self._memory.stats().items()}
        return {
            "updates": float(self.updates),
            "expected_clicks": self._expected,
            "bound_clicks": float(self._places),
            "error": self._loss,
            "base_rate": top,
            **memory,
        }

    def state(self) -> dict[str, Any]:
        """Everything needed to continue exactly."""
        memory = self._memory.state()
        return {
            "tower": self._tower.state(),
            "memory": {"config": json.dumps(memory.config), "arrays": dict(memory.arrays)},
            "updates": self.updates,
            "expected": self._expected,
            "loss": self._loss,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state()`."""
        self._tower.load(state["tower"])
        memory = State(json.loads(state["memory"]["config"]), state["memory"]["arrays"])
        self._memory = type(self._memory).from_state(memory)
        self.updates = state["updates"]
        self._expected, self._loss = state["expected"], state["loss"]


class BanditLearner:
    """The linear bandit, solved anew for every policy."""

    def __init__(self, settings: Settings, width: int, items: Items) -> None:
        """Learn from observations of `width` numbers."""
        self._items = items
        self._bandit = Bandit(width, settings.dim)
        self._starts = settings.learning_starts
        self.updates = 0

    def see(self, page: Seen, updates: int) -> None:
        """Add the page to the sums."""
        vectors = self._items.vectors[page.rows]
        self._bandit.see(page.observation, vectors, page.clicked)
        self.updates += 1

    def policy(self) -> dict[str, Any] | None:
        """The solution of the normal equations."""
        if self.updates < self._starts:
            return None
        return {"kind": "bandit", "parameters": {"linear": self._bandit.solve()}}

    def stats(self) -> dict[str, float]:
        """How many pages it is made of."""
        return {"updates": float(self.updates)}

    def state(self) -> dict[str, Any]:
        """Everything needed to continue exactly."""
        return {"bandit": self._bandit.state(), "updates": self.updates}

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state()`."""
        self._bandit.load(state["bandit"])
        self.updates = state["updates"]


class PopularLearner:
    """Clicks and showings of every item."""

    def __init__(self) -> None:
        """Start without any."""
        self.clicks = np.zeros(64, np.int64)
        self.shown = np.zeros(64, np.int64)
        self.updates = 0

    def see(self, page: Seen, updates: int) -> None:
        """Count the page."""
        if len(page.rows):
            top = int(page.rows.max()) + 1
            if top > len(self.shown):
                more = np.zeros(max(top, 2 * len(self.shown)) - len(self.shown), np.int64)
                self.clicks = np.concatenate((self.clicks, more))
                self.shown = np.concatenate((self.shown, more))
            self.shown[page.rows] += 1
            self.clicks[page.rows] += page.clicked.astype(np.int64)
        self.updates += 1

    def policy(self) -> dict[str, Any] | None:
        """The counts."""
        if not self.clicks.any():
            return None
        return {"kind": "popular", "clicks": self.clicks.copy(), "shown": self.shown.copy()}

    def stats(self) -> dict[str, float]:
        """How many pages, and the highest smoothed rate."""
        best = float(popularity(self.clicks, self.shown).max())
        return {"updates": float(self.updates), "best_rate": best}

    def state(self) -> dict[str, Any]:
        """The counts."""
        return {"clicks": self.clicks.copy(), "shown": self.shown.copy(), "updates": self.updates}

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state()`."""
        self.clicks, self.shown = np.array(state["clicks"]), np.array(state["shown"])
        self.updates = state["updates"]


def learner_for(arm: str, settings: Settings, width: int, items: Items) -> Learner:
    """The learner of an arm."""
    match arm:
        case "bandit":
            return BanditLearner(settings, width, items)
        case "popular":
            return PopularLearner()
        case "lser-ddpg":
            from lser.online.agent_learner import AgentLearner

            return AgentLearner(arm, settings, width, items)
    return TowerLearner(arm, settings, width, items)

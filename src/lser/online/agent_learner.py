"""An arm that looks ahead: an agent of `lser.agents` on sessions as transitions."""

import json
from typing import Any

import numpy as np

from lser.agents import DDPG
from lser.online.items import Items
from lser.online.learners import memory_for
from lser.online.seen import Seen
from lser.online.settings import Settings
from lser.replay import State

DISCOUNT = 0.9


def build_agent(observation_dim: int, item_dim: int, *, seed: int) -> DDPG:
    """The agent: its action is a direction in the space of item vectors."""
    low, high = -np.ones(item_dim, np.float32), np.ones(item_dim, np.float32)
    return DDPG(observation_dim, low, high, discount=DISCOUNT, seed=seed)


class AgentLearner:
    """DDPG on pages: the action is the direction, the reward the page's clicks and values.

    A page's transition is complete when the visit's next page has closed too, or when the visit
    has timed out, which ends it.
    """

    def __init__(self, arm: str, settings: Settings, width: int, items: Items) -> None:
        """Learn for `arm` from observations of `width` numbers."""
        self._settings, self._width, self._items = settings, width, items
        self._agent = build_agent(width, settings.dim, seed=settings.seed)
        self._memory: Any = memory_for(arm, settings, width, settings.dim)
        self._waiting: dict[str, Seen] = {}
        self.updates = 0
        self._owed = 0
        self._value = 0.0

    def see(self, page: Seen, updates: int) -> None:
        """Complete the transitions that the page completes, with an update for each."""
        self._owed += updates
        timeout = max(self._settings.session_timeout, self._settings.window)
        while self._waiting:  # oldest first: pages close in order
            session, first = next(iter(self._waiting.items()))
            if first.at + timeout > page.at and session != page.session:
                break
            del self._waiting[session]
            ended = session != page.session
            self._store(first, first.observation if ended else page.observation, ended)
        if page.session in self._waiting:
            self._store(self._waiting.pop(page.session), page.observation, False)
        if page.direction is None and len(page.rows):  # drawn at random: where it lay
            page = page._replace(direction=self._items.vectors[page.rows].mean(axis=0))
        if page.direction is not None:
            self._waiting[page.session] = page

    def _store(self, page: Seen, following: Any, ended: bool) -> None:
        if len(self._memory) >= self._settings.learning_starts:
            while self._owed > 0:
                self._owed -= 1
                batch = self._memory.sample(self._settings.batch_size, query=page.observation)
                learned = self._agent.learn(batch)
                self._memory.update(batch.ids, learned.td_errors)
                self.updates += 1
                self._value += 0.01 * (-learned.losses["actor"] - self._value)
        self._owed = 0
        assert page.direction is not None
        action = np.clip(page.direction, -1, 1)
        self._memory.extend(
            page.observation[None],
            action[None].astype(np.float32),
            np.array([page.reward], np.float32),
            following[None],
            np.array([ended]),
            np.zeros(1, np.bool_),
        )

    def policy(self) -> dict[str, Any] | None:
        """The agent as it stands."""
        if not self.updates:
            return None
        return {
            "kind": "agent",
            "agent": self._agent.state_dict(),
            "observation_dim": self._width,
            "item_dim": self._settings.dim,
        }

    def stats(self) -> dict[str, float]:
        """The mean value beside the most that rewards allow, and the memory's numbers."""
        memory = {f"memory_{name}": value for name, value in self._memory.stats().items()}
        bound = self._settings.k / (1 - DISCOUNT)
        return {
            "updates": float(self.updates), "value": self._value, "bound_value": bound, **memory
        }  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Everything needed to continue exactly."""
        memory = self._memory.state()
        return {
            "agent": self._agent.state_dict(),
            "memory": {"config": json.dumps(memory.config), "arrays": dict(memory.arrays)},
            "waiting": [list(page) for page in self._waiting.values()],
            "updates": self.updates,
            "owed": self._owed,
            "value": self._value,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state()`."""
        self._agent.load_state_dict(state["agent"])
        memory = State(json.loads(state["memory"]["config"]), state["memory"]["arrays"])
        self._memory = type(self._memory).from_state(memory)
        self._waiting = {page[1]: Seen(*page) for page in state["waiting"]}
        self.updates, self._owed, self._value = state["updates"], state["owed"], state["value"]

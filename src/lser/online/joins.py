"""Which feedback belongs to which decision: joined by id, closed by the time of the log.

A decision is open for `window` seconds of the log's time. Feedback within it counts; a decision
without any closes as not clicked; feedback later than that is counted and otherwise ignored. An
item is clicked once at most.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from lser.online.log import Event


@dataclass(slots=True)
class Decision:
    """A page that was shown, and what came back so far.

    Many are open at a time, so the event's body stays the text that it is in the log.
    """

    id: str
    at: float
    user: str | None
    session: str
    arm: str
    version: int
    cold: bool
    places: int
    text: bytes = field(repr=False)
    clicked: frozenset[str] = frozenset()
    value: float = 0.0

    @property
    def body(self) -> dict[str, Any]:
        """What the log has, read anew."""
        body: dict[str, Any] = orjson.loads(self.text)
        return body

    @property
    def items(self) -> list[str]:
        """The items shown, read anew."""
        items: list[str] = self.body["items"]
        return items

    @property
    def reward(self) -> float:
        """Clicks plus the values reported."""
        return len(self.clicked) + self.value


class Joins:
    """Open decisions, oldest first."""

    def __init__(self, window: float) -> None:
        """Close decisions `window` seconds after they were made."""
        self.window = window
        self.water = 0.0  # the log's time
        self.late = self.closed = 0
        self._open: dict[str, Decision] = {}
        self._order: deque[str] = deque()

    def __len__(self) -> int:
        return len(self._open)

    def find(self, id: str) -> Decision | None:
        """A decision that is open."""
        return self._open.get(id)

    def open_ones(self) -> list[Decision]:
        """The decisions that are open, oldest first."""
        return [self._open[id] for id in self._order]

    def pass_time(self, at: float) -> Iterator[Decision]:
        """Move the log's time; yields the decisions that it closes, oldest first."""
        self.water = max(self.water, at)
        yield from self._close()

    def fold(self, event: Event) -> Iterator[Decision]:
        """Take in an event of any kind; yields the decisions that its time closes, oldest first."""
        yield from self.pass_time(event.at)
        if event.kind == "decision":
            self.decide(event, orjson.loads(event.body))
        elif event.kind == "feedback":
            self.feedback(orjson.loads(event.body))

    def decide(self, event: Event, body: Mapping[str, Any]) -> Decision:
        """Open a decision; `body` is what the event's says."""
        assert event.id is not None
        decision = _decision(event.id, event.at, body, event.body)
        self._open[decision.id] = decision
        self._order.append(decision.id)
        return decision

    def feedback(self, body: Mapping[str, Any]) -> tuple[Decision, list[str]] | None:
        """Count feedback; returns its decision and the items newly clicked, None if too late."""
        decision = self._open.get(body["decision"])
        if decision is None:
            self.late += 1
            return None
        shown = set(decision.items)
        fresh = [i for i in body.get("clicks", ()) if i in shown and i not in decision.clicked]
        fresh = list(dict.fromkeys(fresh))
        decision.clicked |= frozenset(fresh)
        decision.value += body.get("value") or 0.0
        return decision, fresh

    def _close(self) -> Iterator[Decision]:
        while self._order:
            decision = self._open[self._order[0]]
            if decision.at + self.window > self.water:
                return
            self._order.popleft()
            del self._open[decision.id]
            self.closed += 1
            yield decision

    def state(self) -> dict[str, Any]:
        """The open decisions and counters, as plain values."""
        opened = self.open_ones()
        return {
            "window": self.window,
            "water": self.water,
            "late": self.late,
            "closed": self.closed,
            "open": orjson.dumps(
                [[d.id, d.at, orjson.Fragment(d.text), sorted(d.clicked), d.value] for d in opened]
            ).decode(),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from `state()`."""
        self.window, self.water = state["window"], state["water"]
        self.late, self.closed = state["late"], state["closed"]
        self._open, self._order = {}, deque()
        for id, at, body, clicked, value in orjson.loads(state["open"]):
            decision = _decision(id, at, body, orjson.dumps(body))
            decision.clicked, decision.value = frozenset(clicked), value
            self._open[id] = decision
            self._order.append(id)


def _decision(id: str, at: float, body: Mapping[str, Any], text: bytes) -> Decision:
    return Decision(
        id=id,
        at=at,
        user=body["user"],
        session=body["session"],
        arm=body["arm"],
        version=body["version"],
        cold=body.get("cold", False),
        places=len(body["items"]),
        text=bytes(
            memoryview(text)
        ),  # a copy: what orjson wrote holds kilobytes more than it shows
    )

"""The server's books: visitors, open decisions, arms and the catalogue, folded from the log.

`fold` runs on the log's writer thread after every commit, so the books hold exactly what is
durable, in its order; a server that starts anew reads a snapshot and folds what came after.
"""

import json
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson

from lser.online.arms import Arms
from lser.online.items import Items, unpacked
from lser.online.joins import Decision, Joins
from lser.online.log import Event, Reader
from lser.online.nearest import Nearest
from lser.online.observation import Layout, Visitors
from lser.online.settings import Settings
from lser.online.store import Shelf
from lser.types import Float32

SNAPSHOTS = "books"
VERSION = 2
KEPT = 2  # snapshots
LATEST = 256  # pages kept for people to look at


class Books:
    """Everything that serving knows."""

    def __init__(self, settings: Settings) -> None:
        """Start at the beginning of a log with these settings."""
        self.settings = settings
        self.layout = Layout(settings.features, settings.dim, settings.layout)
        self.items = Items(settings.dim)
        self.nearest = Nearest(self.items)
        self.visitors = Visitors(self.layout, settings.visitors)
        self.joins = Joins(settings.window)
        self.arms = Arms(settings)
        self.cursor = 0
        self.at = 0.0
        self.counts = {"decisions": 0, "feedback": 0, "clicks": 0, "late": 0, "past": 0}
        self.latest: deque[Decision] = deque(maxlen=LATEST)
        self.changes = 0  # of policies; serving loads them when it moves
        self.lock = threading.RLock()

    def fold(self, events: Sequence[Event]) -> None:
        """Take in events in the order of the log."""
        with self.lock:
            for event in events:
                self._fold(event)

    def _fold(self, event: Event) -> None:
        for closed in self.joins.pass_time(event.at):
            self.arms.close(closed)
        match event.kind:
            case "decision":
                self._decide(event)
            case "feedback":
                self._feedback(event)
            case "items":
                self.nearest.note(self.items.apply(orjson.loads(event.body)))
            case "past":
                self._recall(orjson.loads(event.body))
            case "settings":
                self.settings = Settings.from_json(orjson.loads(event.body))
                self.arms.settings, self.joins.window = self.settings, self.settings.window
                self.changes += 1
            case "policy":
                self.arms.candidate(orjson.loads(event.body))
                self.changes += 1
            case "release":
                self.arms.release(orjson.loads(event.body))
                self.changes += 1
            case "handover":
                self.arms.handover(orjson.loads(event.body))
                self.changes += 1
        self.cursor, self.at = event.seq, event.at

    def _vectors(self, ids: Sequence[str]) -> Float32:
        rows = [self.items.row[id] for id in ids if id in self.items.row]
        return self.items.vectors[rows]

    def _decide(self, event: Event) -> None:
        body = orjson.loads(event.body)
        decision = self.joins.decide(event, body)
        self.counts["decisions"] += 1
        self.latest.append(decision)
        if decision.user is not None:
            features = None
            if self.layout.features and body.get("given", True):
                features = unpacked(body["observation"])[: self.layout.features]
            self.visitors.show(
                decision.user, features, self._vectors(body["items"]), body["visit"], event.at
            )

    def _feedback(self, event: Event) -> None:
        self.counts["feedback"] += 1
        joined = self.joins.feedback(orjson.loads(event.body))
        if joined is None:
            self.counts["late"] += 1
            return
        decision, fresh = joined
        self.counts["clicks"] += len(fresh)
        if decision.user is not None and fresh:
            share = len(fresh) / max(decision.places, 1)
            self.visitors.click(decision.user, self._vectors(fresh), share)

    def _recall(self, body: dict[str, Any]) -> None:
        for page in body["pages"]:
            self.counts["past"] += 1
            clicked = [i for i, hit in zip(page["items"], page["clicked"], strict=True) if hit]
            features = unpacked(page["observation"])[: self.layout.features]
            shown = self._vectors(page["items"])
            self.visitors.show(page["user"], features, shown, 1, page["at"])
            share = len(clicked) / max(len(page["items"]), 1)
            self.visitors.click(page["user"], self._vectors(clicked), share)

    def state(self) -> dict[str, Any]:
        """Everything but the catalogue, which is folded anew; copied."""
        with self.lock:
            visitors = self.visitors.state()
            return {
                "version": VERSION,
                "cursor": self.cursor,
                "at": self.at,
                "counts": dict(self.counts),
                "visitors": {**visitors, "users": orjson.dumps(visitors["users"]).decode()},
                "joins": self.joins.state(),
                "arms": orjson.dumps(self.arms.state()).decode(),
            }

    def save(self, shelf: Shelf) -> None:
        """Write a snapshot; folding waits only while it is copied."""
        tree = self.state()
        shelf.save(SNAPSHOTS, tree["cursor"], tree)
        shelf.forget(SNAPSHOTS, newest=KEPT)

    @classmethod
    def open(cls, shelf: Shelf, reader: Reader) -> "Books":
        """The books of a log: from the newest snapshot, if any, and all that came after."""
        found = None
        for event in reader.of_kind("settings"):
            found = event
        if found is None:
            raise ValueError("the log has no settings")
        tree = shelf.latest(SNAPSHOTS)
        if tree is not None and tree["version"] == VERSION and tree["cursor"] <= reader.head():
            for event in reader.of_kind("settings", up_to=tree["cursor"]):
                found = event
            books = cls(Settings.from_json(orjson.loads(found.body)))
            books._load(tree, reader)
        else:
            first = next(reader.of_kind("settings"))
            books = cls(Settings.from_json(orjson.loads(first.body)))
        while events := reader.read(books.cursor):
            books.fold(events)
        return books

    def _load(self, tree: dict[str, Any], reader: Reader) -> None:
        for event in reader.of_kind("items", up_to=tree["cursor"]):
            self.items.apply(orjson.loads(event.body))
        visitors = tree["visitors"]
        self.visitors.load({**visitors, "users": json.loads(visitors["users"])})
        self.joins.load(tree["joins"])
        self.arms.load(orjson.loads(tree["arms"]))
        self.counts, self.cursor, self.at = dict(tree["counts"]), tree["cursor"], tree["at"]
        self.latest.extend(self.joins.open_ones()[-LATEST:])


def finite(value: float) -> float | None:
    """A number for JSON: None where there is none."""
    return float(value) if np.isfinite(value) else None

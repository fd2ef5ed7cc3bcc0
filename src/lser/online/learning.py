"""The learner: a function of the log, from events to policies, in any process.

Everything it does follows from the events in their order: when a page closes, how many updates
it brings, when a policy is published. Its state, cursor and generators are one file, replaced
atomically; a learner that is killed goes on from the last one to the same bits.
"""

import contextlib
import json
import time
from typing import Any

import numpy as np
import orjson

from lser.online.covisits import Covisits
from lser.online.items import Items
from lser.online.joins import Decision, Joins
from lser.online.learners import Learner, learner_for
from lser.online.log import Event, Reader
from lser.online.nearest import Nearest
from lser.online.observation import Layout
from lser.online.outbox import Outbox
from lser.online.policies import Policy, load_policy, policy_of, save_policy
from lser.online.seen import Seen, closed, recalled
from lser.online.settings import LEARNED, Settings
from lser.online.shadow import inspect
from lser.online.store import Shelf

SNAPSHOTS = "learner"
KEPT = 2  # snapshots
RECENT = 256  # observations kept for shadow checks
SLOWEST = 1 / 64  # of the declared pace
VERSION = 1


class Learning:
    """Folds a shop's log into learners and publishes their policies."""

    def __init__(
        self, shelf: Shelf, reader: Reader, outbox: Outbox, *, own_pace: bool = True
    ) -> None:
        """Continue from the newest snapshot on the shelf, or start at the log's beginning.

        Without `own_pace` it replays the log: changes of pace are those that the log has.
        """
        self._shelf, self._reader, self._outbox = shelf, reader, outbox
        self._own_pace, self._sent = own_pace, False
        first = next(reader.of_kind("settings"), None)
        if first is None:
            raise ValueError("the log has no settings")
        self._begin(Settings.from_json(orjson.loads(first.body)))
        tree = shelf.latest(SNAPSHOTS)
        if tree is not None:
            self._load(tree)
        self._reached = 0  # newest cursor at which a policy was published, by the log
        for event in reader.of_kind("policy"):
            self._reached = max(self._reached, orjson.loads(event.body).get("cursor", 0))
        self._paces: dict[int, float] = {}
        for event in reader.of_kind("pace"):
            self._note_pace(event)
        self._began = (time.monotonic(), self.pages)

    def _begin(self, settings: Settings) -> None:
        self.settings = settings
        self.width = Layout(settings.features, settings.dim, settings.layout).width
        self.items = Items(settings.dim)
        self.nearest = Nearest(self.items)
        self.joins = Joins(settings.window)
        self.learners: dict[str, Learner] = {}
        self.cursor = self.pages = self.snapshots = self.snapshot = 0
        self.pace, self._owed = settings.pace, 0.0
        self._asked: dict[str, Any] | None = None  # the change of pace that is awaited
        self._published = self._saved = 0.0  # log times
        self.versions: dict[str, int] = {}
        self._described: dict[str, int] = {}  # updates at the last policy
        self._serving: dict[str, Policy] = {}  # the last sound one of each learner
        self._served: dict[str, int] = {}  # its version
        self._recent = np.zeros((0, self.width), np.float32)
        self._covisits = Covisits(settings.dim, settings.seed) if settings.learned_vectors else None
        self._configure(settings)

    def _configure(self, settings: Settings) -> None:
        self.settings, self.joins.window = settings, settings.window
        self.pace = settings.pace
        wanted = [name for name, _ in settings.arms if name in LEARNED]
        if settings.cold != "none" and any(name not in ("popular", "bandit") for name in wanted):
            wanted.append(settings.cold)
        for name in dict.fromkeys(wanted):
            if name not in self.learners:
                self.learners[name] = learner_for(name, settings, self.width, self.items)

    def step(self, limit: int = 2_000) -> int:
        """Fold in the next events; returns how many there were."""
        if self._own_pace and not self._keep_up():
            return 0
        events = self._reader.read(self.cursor, limit)
        for event in events:
            self._fold(event)
        return len(events)

    def _fold(self, event: Event) -> None:
        if event.seq in self._paces:
            self.pace = self._paces[event.seq]
        for decision in self.joins.fold(event):
            self._learn(decision)
        match event.kind:
            case "settings":
                self._configure(Settings.from_json(orjson.loads(event.body)))
            case "items":
                self.items.apply(orjson.loads(event.body))
            case "past":
                self._recall(orjson.loads(event.body))
            case "pace":
                self._note_pace(event)
        self.cursor = event.seq
        if not self._published:
            self._published = self._saved = event.at
        if event.at - self._published >= self.settings.publish_every:
            self._published = event.at
            self.publish()
        if event.at - self._saved >= self.settings.snapshot_every:
            self._saved = event.at
            self.save()

    def _learn(self, decision: Decision) -> None:
        """One closed page to every learner that may see it."""
        page = closed(decision, self.items)
        names = set(self.learners)
        if self.settings.learn_from == "own":
            names = {decision.arm, self.settings.cold} if decision.cold else {decision.arm}
        self._teach(page, decision.user or decision.session, names)

    def _recall(self, body: dict[str, Any]) -> None:
        """Pages of the past, imported: every learner sees them."""
        for page in body["pages"]:
            self._teach(recalled(page, self.items), page["user"], set(self.learners))

    def _teach(self, page: Seen, visitor: str, names: set[str]) -> None:
        self.pages += 1
        self._owed += self.pace
        updates = int(self._owed)
        self._owed -= updates
        for name, learner in self.learners.items():
            if name in names:
                learner.see(page, updates)
        self._recent = np.concatenate((self._recent[-RECENT + 1 :], page.observation[None]))
        if self._covisits is not None:
            self._covisits.see(visitor, page.rows[page.clicked > 0])
            self._refresh()

    def _refresh(self) -> None:
        """Vectors from co-clicks, where there is enough that is new."""
        assert self._covisits is not None
        if self._covisits.due:
            learned = self._covisits.vectors(self.items.vectors, self.items.live)
            for number, body in enumerate(learned.bodies(self.items)):
                self._outbox.send("items", f"covisits-{self._covisits.refreshes}-{number}", body)

    def publish(self) -> None:
        """A new policy for every learner that has learned since its last."""
        for name, learner in self.learners.items():
            if learner.updates == self._described.get(name, 0):
                continue
            tree = learner.policy()
            if tree is None:
                continue
            self._described[name] = learner.updates
            version = self.versions[name] = self.versions.get(name, 0) + 1
            candidate = policy_of(tree)
            stats = learner.stats()
            values = (stats["value"], stats["bound_value"]) if "value" in stats else None
            verdict = inspect(
                candidate, self._serving.get(name), self._recent[-64:], self.nearest,
                self.settings.k, values=values,
            )  # fmt: skip
            if not verdict.problems:
                self._serving[name], self._served[name] = candidate, version
            save_policy(self._shelf, name, version, tree)
            about = {
                "arm": name,
                "version": version,
                "cursor": self.cursor,
                "pages": self.pages,
                "updates": learner.updates,
                "kind": tree["kind"],
                "sound": not verdict.problems,
                "shadow": verdict._asdict(),
            }
            self._outbox.send("policy", f"{name}-{version}", orjson.dumps(about))
            self._reached = max(self._reached, self.cursor)

    def _keep_up(self) -> bool:
        """Change the pace by an event where the log runs away; False while that is awaited.

        What is asked for is saved before it is sent. A learner may die and its event come late:
        whoever goes on from the snapshot asks for the same at the same place of the log, and
        waits for it too.
        """
        if self._asked is None:
            self._asked = self._change_of_pace()
            if self._asked is None:
                return True
            self.save()
        id = f"{self._asked['from']}"
        found = self._reader.find("pace", id)
        if found is not None:
            self._note_pace(found)
            self._asked, self._sent = None, False
            return True
        if not self._sent:
            self._outbox.send("pace", id, orjson.dumps(self._asked))
            self._sent = True
        return False

    def _change_of_pace(self) -> dict[str, Any] | None:
        """The event that is due here, if any."""
        lag = self._reader.head() - self.cursor
        slower = lag > self.settings.lag_limit and self.pace > self.settings.pace * SLOWEST
        faster = lag < self.settings.lag_limit // 20 and self.pace < self.settings.pace
        start = self.cursor + 1
        if not (slower or faster) or self.cursor < self._reached:
            return None
        if any(place >= start for place in self._paces):
            return None  # this one or a later one is logged: this stretch was learned before
        pace = self.pace / 2 if slower else min(2 * self.pace, self.settings.pace)
        return {"from": start, "pace": pace, "lag": lag}

    def _note_pace(self, event: Event) -> None:
        body = orjson.loads(event.body)
        self._paces[int(body["from"])] = float(body["pace"])

    def save(self) -> None:
        """Write the snapshot."""
        self.snapshots += 1
        tree = {
            "version": VERSION,
            "settings": orjson.dumps(self.settings.as_json()).decode(),
            "cursor": self.cursor,
            "pages": self.pages,
            "pace": self.pace,
            "asked": orjson.dumps(self._asked).decode(),
            "owed": self._owed,
            "published": self._published,
            "saved": self._saved,
            "snapshots": self.snapshots,
            "versions": self.versions,
            "described": self._described,
            "recent": self._recent,
            "joins": self.joins.state(),
            "learners": {name: learner.state() for name, learner in self.learners.items()},
            "covisits": self._covisits.state() if self._covisits else None,
            "served": self._served,
        }
        self._shelf.save(SNAPSHOTS, self.cursor, tree)
        self._shelf.forget(SNAPSHOTS, newest=KEPT)
        self.snapshot = self.cursor

    def _load(self, tree: dict[str, Any]) -> None:
        if tree["version"] != VERSION:
            raise ValueError(f"the learner's snapshot has version {tree['version']}, not {VERSION}")
        self._configure(Settings.from_json(json.loads(tree["settings"])))
        self.cursor, self.pages, self.pace = tree["cursor"], tree["pages"], tree["pace"]
        self._asked = json.loads(tree.get("asked", "null"))
        self._owed, self._published = tree["owed"], tree["published"]
        self._saved, self.snapshots = tree["saved"], tree["snapshots"]
        self.snapshot = self.cursor
        self.versions, self._described = dict(tree["versions"]), dict(tree["described"])
        self._recent = np.array(tree["recent"])
        self.joins.load(tree["joins"])
        for event in self._reader.of_kind("items", up_to=self.cursor):
            self.items.apply(orjson.loads(event.body))
        for name, state in tree["learners"].items():
            if name in self.learners:
                self.learners[name].load(state)
        if self._covisits is not None:
            self._covisits.load(tree["covisits"])
        self._served = dict(tree["served"])
        for name, version in self._served.items():
            with contextlib.suppress(OSError, ValueError):  # only distances are told by it
                self._serving[name] = load_policy(self._shelf, name, version)

    def status(self) -> dict[str, Any]:
        """Where it stands, as plain numbers."""
        began, pages = self._began
        passed = max(time.monotonic() - began, 1e-9)
        return {
            "cursor": self.cursor,
            "lag": max(0, self._reader.head() - self.cursor),
            "pages": self.pages,
            "pages_per_second": (self.pages - pages) / passed,
            "pace": self.pace,
            "declared_pace": self.settings.pace,
            "open": len(self.joins),
            "late": self.joins.late,
            "items": len(self.items),
            "snapshots": self.snapshots,
            "snapshot": self.snapshot,
            "versions": self.versions,
            "learners": {name: learner.stats() for name, learner in self.learners.items()},
            "at": self.joins.water,
        }

    def report(self) -> None:
        """Leave the status for the servers."""
        self._shelf.report(self.status())

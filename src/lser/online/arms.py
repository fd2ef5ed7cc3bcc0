"""Arms and their policies: who sees which, what came of it, and what goes live or back.

All of it is a fold of the log: candidates (`policy`), promotions and rollbacks (`release`), and
hand-overs from the cold start (`handover`) are events.
"""

import hashlib
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lser.online.intervals import Tally, below
from lser.online.joins import Decision
from lser.online.settings import Settings
from lser.online.versions import Versions

BIN = 1.0  # seconds; the finest of the curves' bins
BINS = 600  # kept for the curve; older ones are merged in pairs
DIRECT = ("popular", "bandit", "random")  # arms that need no cold start


def unit(*parts: str) -> float:
    """A number in [0, 1) that is a function of texts."""
    digest = hashlib.blake2b("\x1f".join(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") / 2**64


def arm_of(settings: Settings, visitor: str) -> str:
    """The arm of a visitor."""
    place, edge = unit(settings.salt, visitor), 0.0
    for name, share in settings.arms:
        edge += share
        if place < edge:
            return name
    return settings.arms[-1][0]


@dataclass
class Bin:
    """Closed pages of one stretch of time."""

    start: float
    clicks: float = 0.0
    shown: float = 0.0
    pages: int = 0


class Arms:
    """Counters and policies of every arm."""

    def __init__(self, settings: Settings) -> None:
        """Start without evidence."""
        self.settings = settings
        self.versions: dict[str, Versions] = {}
        self.total: dict[str, Tally] = {}
        self.probes: dict[str, tuple[Tally, Tally]] = {}  # cold start: learner's, cold's
        self.trials: dict[str, tuple[Tally, Tally]] = {}  # since the last release: arm's, control's
        self.canaries: dict[str, tuple[Tally, Tally]] = {}  # on trial: the new one's, the current's
        self.live: set[str] = set()  # arms whose learner has taken over
        self.curve: dict[str, deque[Bin]] = {}
        self.width = BIN

    @property
    def control(self) -> str:
        """The arm that others are compared with: the first."""
        return self.settings.arms[0][0]

    def cold(self, arm: str) -> bool:
        """Whether an arm still shows the cold start to some."""
        return self.settings.cold != "none" and arm not in DIRECT and arm not in self.live

    def policy_for(self, visitor: str) -> tuple[str, str, int, bool]:
        """Arm, learner, version (0: random pages) and whether it is the cold start's page."""
        arm = arm_of(self.settings, visitor)
        own = self.versions.get(arm)
        version = own.current if own else 0
        if self.cold(arm) and (not version or unit(self.settings.salt, "probe", visitor) < 0.5):
            learner = str(self.settings.cold)
            other = self.versions.get(learner)
            return arm, learner, other.current if other else 0, True
        if own and own.held and not version and arm != self.control:  # rolled back to control
            control = self.versions.get(self.control)
            return arm, self.control, control.current if control else 0, False
        if (
            own
            and own.canary
            and unit(self.settings.salt, "canary", visitor) < self.settings.canary
        ):
            version = own.canary
        return arm, arm, version, False

    def candidate(self, body: dict[str, Any]) -> None:
        """Fold in a `policy` event."""
        versions = self.versions.setdefault(body["arm"], Versions())
        versions.candidate(
            body, auto=self.settings.release == "auto", canary=self.settings.canary > 0
        )

    def release(self, body: Mapping[str, Any]) -> None:
        """Fold in a `release` event; its trial begins anew."""
        self.versions.setdefault(body["arm"], Versions()).release(body)
        self.trials.pop(body["arm"], None)
        self.canaries.pop(body["arm"], None)

    def handover(self, body: Mapping[str, Any]) -> None:
        """Fold in a `handover` event."""
        self.live.add(body["arm"])
        self.trials.pop(body["arm"], None)

    def close(self, decision: Decision) -> None:
        """Count a page whose window is over."""
        arm, clicks, shown = decision.arm, float(len(decision.clicked)), float(decision.places)
        page = (decision.user, clicks, shown, decision.reward)
        self._tally(self.total, arm).add(*page)
        if self.cold(arm):
            self._pair(self.probes, arm)[decision.cold].add(*page)
        elif arm != self.control:
            self._pair(self.trials, arm)[0].add(*page)
        versions = self.versions.get(arm)
        if versions and versions.tries(decision.version) and not decision.cold:
            place = int(decision.version == versions.current)
            self._pair(self.canaries, arm)[place].add(*page)
        if arm == self.control:
            for other in [name for name, _ in self.settings.arms if name != arm]:
                self._pair(self.trials, other)[1].add(*page)
        self._draw(arm, decision.at, clicks, shown)

    def _tally(self, where: dict[str, Tally], arm: str) -> Tally:
        if arm not in where:
            where[arm] = Tally(self.settings.visitors)
        return where[arm]

    def _pair(self, where: dict[str, tuple[Tally, Tally]], arm: str) -> tuple[Tally, Tally]:
        if arm not in where:
            where[arm] = (Tally(self.settings.visitors), Tally(self.settings.visitors))
        return where[arm]

    def _draw(self, arm: str, at: float, clicks: float, shown: float) -> None:
        """Add to the curve; when it is long, bins double in width."""
        bins = self.curve.setdefault(arm, deque())
        start = at - at % self.width
        if not bins or bins[-1].start < start:
            bins.append(Bin(start))
        last = bins[-1]
        last.clicks += clicks
        last.shown += shown
        last.pages += 1
        if len(bins) > BINS:
            self.width *= 2
            for name, old in self.curve.items():
                self.curve[name] = _merged(old, self.width)

    def due(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Events that the evidence asks for: hand-overs and rollbacks, by kind, id and body.

        Every server of a shop comes to them; the ids make one of what several say.
        """
        found: list[tuple[str, str, dict[str, Any]]] = []
        for arm, (own, cold) in self.probes.items():
            if self.cold(arm) and below(cold, own):
                evidence = {"learner": [*own.interval()], "cold": [*cold.interval()]}
                told = {"arm": arm, "by": "evidence", "evidence": evidence}
                found.append(("handover", arm, told))
        for arm, (own, current) in self.canaries.items():
            tried = self.versions[arm]
            worse = below(own, current)
            if tried.canary and (worse or own.pages >= self.settings.canary_pages):
                evidence = {"canary": [*own.interval()], "current": [*current.interval()]}
                action = "drop" if worse else "advance"
                body = {"arm": arm, "version": tried.canary, "action": action, "by": "evidence"}
                id = f"{arm}-{tried.releases + 1}"
                found.append(("release", id, {**body, "evidence": evidence}))
        for arm, (own, control) in self.trials.items():
            versions = self.versions.get(arm)
            if versions and versions.current and below(own, control) and arm not in DIRECT:
                target = versions.stable if versions.stable != versions.current else 0
                evidence = {"arm": [*own.interval()], "control": [*control.interval()]}
                body = {"arm": arm, "version": target, "action": "rollback", "by": "evidence"}
                id = f"{arm}-{versions.releases + 1}"
                found.append(("release", id, {**body, "evidence": evidence}))
        return found

    def state(self) -> dict[str, Any]:
        """Plain values."""
        pairs = {"probes": self.probes, "trials": self.trials, "canaries": self.canaries}
        return {
            "versions": {
                arm: {
                    "about": [[number, about] for number, about in v.about.items()],
                    "current": v.current, "stable": v.stable, "held": v.held,
                    "releases": v.releases, "canary": v.canary,
                }
                for arm, v in self.versions.items()
            },
            "total": {arm: tally.state() for arm, tally in self.total.items()},
            **{name: {arm: [t.state() for t in pair] for arm, pair in where.items()}
               for name, where in pairs.items()},
            "live": sorted(self.live),
            "curve": {
                arm: [[b.start, b.clicks, b.shown, b.pages] for b in bins]
                for arm, bins in self.curve.items()
            },
            "width": self.width,
        }  # fmt: skip

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from `state()`."""
        for arm, values in state["versions"].items():
            about = OrderedDict((int(number), dict(value)) for number, value in values["about"])
            kept = {name: value for name, value in values.items() if name != "about"}
            self.versions[arm] = Versions(about, **kept)
        for arm, sums in state["total"].items():
            self._tally(self.total, arm).load(sums)
        pairs = {"probes": self.probes, "trials": self.trials, "canaries": self.canaries}
        for name, where in pairs.items():
            for arm, saved in state[name].items():
                for tally, sums in zip(self._pair(where, arm), saved, strict=True):
                    tally.load(sums)
        self.live, self.width = set(state["live"]), state["width"]
        self.curve = {arm: deque(Bin(*b) for b in bins) for arm, bins in state["curve"].items()}


def _merged(bins: "deque[Bin]", width: float) -> "deque[Bin]":
    merged: deque[Bin] = deque()
    for old in bins:
        start = old.start - old.start % width
        if not merged or merged[-1].start < start:
            merged.append(Bin(start))
        merged[-1].clicks += old.clicks
        merged[-1].shown += old.shown
        merged[-1].pages += old.pages
    return merged

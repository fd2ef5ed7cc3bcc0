"""The policies of one learner: which is current, which is on trial, and where a rollback goes."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

KEPT = 50  # versions that are remembered


@dataclass
class Versions:
    """The policies of one learner."""

    about: "OrderedDict[int, dict[str, Any]]" = field(default_factory=OrderedDict)
    current: int = 0  # 0: none, the cold start or random pages are shown
    stable: int = 0  # where a rollback goes
    held: bool = False  # whether candidates wait for a promotion
    releases: int = 0  # promotions and rollbacks so far
    canary: int = 0  # a version that some see, on trial beside the current one

    @property
    def serving(self) -> set[int]:
        """The versions that pages may be made with."""
        return {self.current, self.stable, self.canary}

    def tries(self, version: int) -> bool:
        """Whether a page of that version is evidence in a trial."""
        return self.canary > 0 and version in (self.canary, self.current)

    def candidate(self, body: dict[str, Any], *, auto: bool, canary: bool) -> None:
        """Take in a candidate; a sound one goes live by itself unless they are held.

        With `canary` it goes live for some, where no other is on trial, and there is a current one.
        """
        version = int(body["version"])
        self.about[version] = {**body, "state": "candidate" if body["sound"] else "rejected"}
        while len(self.about) > KEPT:
            self.about.popitem(last=False)
        if not body["sound"] or not auto or self.held:
            return
        if not canary or not self.current:
            self._go(version)
        elif not self.canary:
            self.canary = version
            self.about[version]["state"] = "canary"

    def release(self, body: Mapping[str, Any]) -> None:
        """Promote a version or go back to one, or end a canary's trial."""
        version = int(body["version"])
        self.releases += 1
        tried, self.canary = self.canary, 0
        match body["action"]:
            case "drop":
                if tried in self.about:
                    self.about[tried]["state"] = "rolled back"
                return
            case "advance":
                pass
            case "promote":
                self.stable, self.held = version, bool(body.get("hold", False))
            case _:
                if self.current in self.about:
                    self.about[self.current]["state"] = "rolled back"
                self.held = True
        if tried != version and tried in self.about:
            self.about[tried]["state"] = "retired"
        self._go(version)

    def _go(self, version: int) -> None:
        if self.current in self.about and self.about[self.current]["state"] == "current":
            self.about[self.current]["state"] = "retired"
        self.current = version
        if version in self.about:
            self.about[version]["state"] = "current"

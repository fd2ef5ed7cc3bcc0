"""What a shop is set to; the first event of every log, so that learning is a function of it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, Self

from lser.checks import check_count, check_fields, check_fraction, check_number

LEARNED = ("lser-steady", "lser", "uniform", "lser-ddpg", "bandit", "popular")
ARMS = (*LEARNED, "random")
FIXED = ("features", "dim", "layout", "seed", "salt", "scale", "learned_vectors", "k")
_SHARE = re.compile(r"^([a-z0-9-]+)(?:=([0-9.]+))?$")
Cold = Literal["popular", "bandit", "none"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one shop."""

    features: int = 0  # numbers about the visitor that the caller gives
    dim: int = 16  # of the item vectors
    layout: int = 1  # of the observation
    k: int = 10  # the usual page, and the most places of a page that are learned from
    arms: tuple[tuple[str, float], ...] = (("lser-steady", 1.0),)  # first: the control
    salt: str = "lser"  # with the user, decides the arm
    seed: int = 0
    scale: float = 1.0  # item vectors are multiplied by it
    learned_vectors: bool = False  # from co-clicks
    # pages
    candidates: int = 50  # nearest items that a page is drawn from
    temperature: float = 0.1  # of the draw, in deviations of the candidates' scores
    random_share: float = 0.02  # of pages that are drawn at random
    exploration: float = 0.1  # length of the noise on the direction, one draw per visit
    # joining
    window: float = 1_800.0  # seconds in which feedback counts
    session_timeout: float = 1_800.0  # seconds without a page that end a visit
    visitors: int = 100_000  # whose states are kept
    # learning
    cold: Cold = "popular"  # what an arm shows before its learner has proved better
    learning_starts: int = 200  # pages before the first update
    learn_from: Literal["all", "own"] = "all"  # whose pages an arm's learner sees
    pace: float = 1.0  # updates per page
    lag_limit: int = 20_000  # events behind, from which on the pace is halved
    batch_size: int = 64
    capacity: int = 50_000  # pages in memory
    publish_every: float = 5.0  # seconds between policies
    snapshot_every: float = 60.0  # seconds between snapshots of the learner
    release: Literal["auto", "manual"] = "auto"  # whether a sound candidate goes live by itself
    canary: float = 0.0  # share of an arm's visitors who see a new version first; 0: all at once
    canary_pages: int = 500  # of a new version, after which it is for all unless it lies below
    # keeping
    retention_days: float = 90.0
    retention_events: int = 50_000_000

    def __post_init__(self) -> None:
        """Refuse values of another kind or outside their range."""
        check_fields(self)
        for name, low in (
            *(("features", 0), ("dim", 1), ("k", 1), ("seed", 0), ("candidates", 1)),
            *(("visitors", 1), ("learning_starts", 1), ("lag_limit", 1), ("batch_size", 1)),
            *(("capacity", 1), ("retention_events", 1), ("canary_pages", 1)),
        ):
            check_count(name, getattr(self, name), low=low)
        for name in ("scale", "temperature", "window", "session_timeout", "pace"):
            check_number(name, getattr(self, name), low=0.0, above=True)
        for name in ("publish_every", "snapshot_every", "retention_days"):
            check_number(name, getattr(self, name), low=0.0, above=True)
        check_fraction("random_share", self.random_share)
        check_number("exploration", self.exploration, low=0.0)
        if not 0 <= self.canary < 1:
            raise ValueError(f"canary must be in [0, 1), got {self.canary}")
        self._check_arms()

    def _check_arms(self) -> None:
        if not isinstance(self.salt, str):
            raise ValueError(f"salt must be text, got {self.salt!r}")
        try:
            arms = [(str(name), check_number("share", share)) for name, share in self.arms]
        except (TypeError, ValueError):
            raise ValueError(f"arms must be names with shares, got {self.arms!r}") from None
        names = [name for name, _ in arms]
        for name, share in arms:
            if name not in ARMS:
                raise ValueError(f"arm must be one of {', '.join(ARMS)}, got {name!r}")
            if not 0 < share <= 1:
                raise ValueError(f"the share of arm {name!r} must be in (0, 1], got {share}")
        if not names or len(set(names)) < len(names):
            raise ValueError(f"arms must be named once each, got {names}")
        if abs(sum(share for _, share in arms) - 1) > 1e-6:
            raise ValueError(f"the arms' shares must add up to 1, got {dict(self.arms)}")

    def as_json(self) -> dict[str, Any]:
        """Plain values, for the log."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The settings of `as_json`; those of a later release that are unknown here are refused."""
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise ValueError(f"the log has settings that this release does not know: {unknown}")
        arms = tuple((str(name), float(share)) for name, share in values["arms"])
        return cls(**{**values, "arms": arms})

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """These settings with some replaced; ValueError where one is fixed for good."""
        after = replace(self, **changes)
        for name in FIXED:
            if getattr(after, name) != getattr(self, name):
                raise ValueError(
                    f"{name} is {getattr(self, name)!r} in this log and cannot become "
                    f"{getattr(after, name)!r}; start another log"
                )
        return after


def parse_arms(texts: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """Arms as the command line has them: ``lser``, ``bandit=.1``; the rest is shared equally."""
    named: list[tuple[str, float | None]] = []
    for text in texts:
        match = _SHARE.match(text)
        if match is None:
            raise ValueError(f"an arm is NAME or NAME=SHARE, got {text!r}")
        named.append((match[1], float(match[2]) if match[2] else None))
    open_arms = sum(share is None for _, share in named)
    left = 1.0 - sum(share or 0.0 for _, share in named)
    if open_arms and left <= 0:
        raise ValueError(f"the shares of {', '.join(texts)} leave nothing for the other arms")
    return tuple((name, left / open_arms if share is None else share) for name, share in named)

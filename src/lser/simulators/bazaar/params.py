"""The dials of Bazaar; docs/simulators/bazaar.md has the model that they turn."""

from dataclasses import dataclass
from typing import Literal

from lser.checks import check_fields
from lser.simulators.item_index import Kind


@dataclass(frozen=True, kw_only=True)
class Params:
    """The dials of Bazaar."""

    items: int = 1_000  # M
    features: int = 8  # d, of which the last is the item's quality
    topics: int = 20
    topic_spread: float = 0.7  # how far items lie from their topic's centre
    slate: int = 10  # k, items on a page
    demographics: tuple[int, ...] = (2, 6, 8, 4)  # values of each observed attribute
    sparsity: float = 0.02  # CTR of random actions
    state_dependence: float = 0.5  # s: 0 one action suits everybody, 1 only the right one works
    individuality: float = 0.1  # share of a personal taste that demographics do not tell
    drift: float = 0.05  # angle a personal taste turns per page, in right angles
    patience: float = 3.0  # e-folds by which full satisfaction lowers the chance of leaving
    pages: float = 8.0  # mean session of a user who is never satisfied
    memory: float = 0.3  # weight of the newest page in satisfaction and click profile
    sharpness: float = 4.0  # slope of the logistic choice
    generosity: float = 0.0  # how far the attribute of most values shifts the logit of a click
    position_bias: float = 0.2  # place j is looked at with chance j ** -position_bias
    actions: Literal["continuous", "slate", "discrete"] = "continuous"
    index: Kind = "auto"  # how the best items are found
    world_seed: int = 0  # draws the catalogue and the tastes of the demographics

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        check_fields(self)
        for name in ("state_dependence", "individuality", "drift"):
            _check(self, name, 0 <= getattr(self, name) <= 1, "in [0, 1]")
        for name in ("patience", "topic_spread", "position_bias", "generosity", "world_seed"):
            _check(self, name, getattr(self, name) >= 0, "at least 0")
        _check(self, "sparsity", 0 < self.sparsity < 0.5, "in (0, .5)")
        _check(self, "memory", 0 < self.memory <= 1, "in (0, 1]")
        _check(self, "sharpness", self.sharpness > 0, "positive")
        _check(self, "pages", self.pages >= 1, "at least 1")
        _check(self, "features", self.features >= 3, "at least 3")
        _check(self, "topics", self.topics >= 1, "at least 1")
        _check(self, "slate", 1 <= self.slate <= self.items, f"in 1..items ({self.items})")
        sizes = self.demographics
        whole = isinstance(sizes, tuple | list) and all(isinstance(size, int) for size in sizes)
        good = whole and bool(sizes) and min(sizes) >= 2
        _check(self, "demographics", good, "whole sizes of at least 2")
        for name, known in (
            ("actions", ("continuous", "slate", "discrete")),
            ("index", ("auto", "exact", "faiss")),
        ):
            _check(self, name, getattr(self, name) in known, f"one of {', '.join(known)}")

    @property
    def shown(self) -> int:
        """Items on a page: one where the action names one item."""
        return 1 if self.actions == "discrete" else self.slate


def _check(params: Params, name: str, good: bool, meaning: str) -> None:
    if not good:
        raise ValueError(f"{name} must be {meaning}, got {getattr(params, name)!r}")

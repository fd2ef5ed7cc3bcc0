"""The world of Bazaar: its dials, the catalogue and tastes they draw, and the laws of choice.

docs/simulators/bazaar.md states the model; the symbols in comments here are those of that page.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lser.simulators.item_index import Ids, ItemIndex, Kind, build_index
from lser.types import Float32

Rng = np.random.Generator


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
    position_bias: float = 0.2  # place j is looked at with chance j ** -position_bias
    actions: Literal["continuous", "slate", "discrete"] = "continuous"
    index: Kind = "auto"  # how the best items are found
    world_seed: int = 0  # draws the catalogue and the tastes of the demographics

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        for name in ("state_dependence", "individuality", "drift"):
            _check(self, name, 0 <= getattr(self, name) <= 1, "in [0, 1]")
        for name in ("patience", "topic_spread", "position_bias", "world_seed"):
            _check(self, name, getattr(self, name) >= 0, "at least 0")
        _check(self, "sparsity", 0 < self.sparsity < 0.5, "in (0, .5)")
        _check(self, "memory", 0 < self.memory <= 1, "in (0, 1]")
        _check(self, "sharpness", self.sharpness > 0, "positive")
        _check(self, "pages", self.pages >= 1, "at least 1")
        _check(self, "features", self.features >= 3, "at least 3")
        _check(self, "topics", self.topics >= 1, "at least 1")
        _check(self, "slate", 1 <= self.slate <= self.items, f"in 1..items ({self.items})")
        sizes = self.demographics
        _check(self, "demographics", bool(sizes) and min(sizes) >= 2, "sizes of at least 2")
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


def normalised(vectors: NDArray[np.floating]) -> Float32:
    """Rows scaled to unit length."""
    length = np.sqrt(np.einsum("...d,...d->...", vectors, vectors))[..., None]
    unit: Float32 = (vectors / np.maximum(length, 1e-12)).astype(np.float32)
    return unit


class World:
    """What all users of one Bazaar share; drawn once from ``world_seed`` and never changed."""

    def __init__(self, params: Params) -> None:
        self.params = params
        rng = np.random.default_rng(params.world_seed)
        tastes = params.features - 1
        self.scale = np.float32(np.sqrt(tastes))  # makes appeal's deviation over items about 1
        centres = normalised(rng.standard_normal((params.topics, tastes)))
        self.shared = normalised(rng.standard_normal(tastes))  # m
        self.offsets = np.concatenate(([0], np.cumsum(params.demographics)[:-1]))
        self.embedding = np.concatenate(  # (D, d - 1), centred within each attribute
            [_centred(rng.standard_normal((size, tastes))) for size in params.demographics]
        ).astype(np.float32)
        self.topic = rng.integers(params.topics, size=params.items)
        noise = rng.standard_normal((params.items, tastes), dtype=np.float32)
        spread = np.float32(params.topic_spread) / self.scale
        self.taste = normalised(centres[self.topic] + spread * noise)  # x, (M, d - 1)
        self.quality = rng.random(params.items, dtype=np.float32)  # e in [0, 1)
        self.attention = np.arange(1, params.shown + 1, dtype=np.float32) ** np.float32(
            -params.position_bias
        )

    @cached_property
    def features(self) -> Float32:
        """Item features (M, d): taste, then quality brought to the same mean square."""
        level = (2 * self.quality - 1) * np.float32(np.sqrt(3)) / self.scale
        return np.concatenate((self.taste, level[:, None]), axis=1)

    @cached_property
    def index(self) -> ItemIndex:
        """Finds the items that score highest for a weight vector over `features`."""
        return build_index(self.features, self.params.index)

    def groups(self, rng: Rng, n: int) -> NDArray[np.int64]:
        """Demographics of `n` newcomers (n, attributes); every value is equally likely."""
        return rng.integers(self.params.demographics, size=(n, len(self.params.demographics)))

    def group_taste(self, groups: NDArray[np.int64]) -> Float32:
        """The personal taste that demographics point to, unit vectors (n, d - 1)."""
        return normalised(self.embedding[groups + self.offsets].sum(axis=1))

    def personal_taste(self, groups: NDArray[np.int64], rng: Rng) -> Float32:
        """A newcomer's own taste: mostly what the demographics tell, partly their own."""
        told = np.sqrt(1 - self.params.individuality)
        own = np.sqrt(self.params.individuality)
        towards = self.group_taste(groups)
        alone = normalised(rng.standard_normal(towards.shape, dtype=np.float32))
        return normalised(told * towards + own * alone)

    def drifted(self, personal: Float32, rng: Rng) -> Float32:
        """Personal tastes after one page: turned by exactly ``drift`` right angles."""
        angle = self.params.drift * np.pi / 2
        noise = rng.standard_normal(personal.shape, dtype=np.float32)
        along = np.einsum("nd,nd->n", noise, personal)[:, None]
        aside = normalised(noise - along * personal)
        return normalised(np.cos(angle) * personal + np.sin(angle) * aside)

    def interest(self, personal: Float32) -> Float32:
        """The hidden interest z, unit vectors: the shared taste blended with the personal one."""
        s = np.float32(self.params.state_dependence)
        return normalised((1 - s) * self.shared + s * personal)

    def appeal(self, interest: Float32, slates: Ids) -> Float32:
        """How much each shown item (n, k) suits each user."""
        fit: Float32 = np.matmul(self.taste[slates], interest[:, :, None])[:, :, 0]
        return self.scale * fit

    def click_chance(self, appeal: Float32, offset: float) -> Float32:
        """Chance of a click on each place: looked at, then logistic in the item's appeal."""
        logit = np.float32(self.params.sharpness) * appeal + np.float32(offset)
        chance: Float32 = self.attention / (1 + np.exp(-logit))
        return chance

    def satisfaction(self, before: Float32, slates: Ids, clicked: NDArray[np.bool_]) -> Float32:
        """Running mean of the quality of what was clicked, per place of the page; in [0, 1]."""
        page = (clicked * self.quality[slates]).mean(axis=1)
        memory = np.float32(self.params.memory)
        after: Float32 = (1 - memory) * before + memory * page
        return after

    def leave_chance(self, satisfaction: Float32) -> Float32:
        """Chance that the session ends after this page."""
        exponent = np.float32(-self.params.patience) * satisfaction
        chance: Float32 = np.exp(exponent) / np.float32(self.params.pages)
        return chance


def _centred(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    centred: NDArray[np.float64] = vectors - vectors.mean(axis=0)
    return centred


def first_places(slates: Ids) -> NDArray[np.bool_]:
    """Where a slate (n, k) shows an item for the first time."""
    same = slates[:, :, None] == slates[:, None, :]
    earlier = np.tri(slates.shape[1], k=-1, dtype=np.bool_)
    first: NDArray[np.bool_] = ~(same & earlier).any(axis=2)
    return first

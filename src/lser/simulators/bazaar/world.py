"""The world of Bazaar: the catalogue and tastes that its dials draw, and the laws of choice.

docs/simulators/bazaar.md states the model; the symbols in comments here are those of that page.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lser.simulators.bazaar.params import Params
from lser.simulators.item_index import Ids, ItemIndex, build_index
from lser.types import Bool, Float32, Float64, Int64

Rng = np.random.Generator


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

    def groups(self, rng: Rng, n: int) -> Int64:
        """Demographics of `n` newcomers (n, attributes); every value is equally likely."""
        return rng.integers(self.params.demographics, size=(n, len(self.params.demographics)))

    def group_taste(self, groups: Int64) -> Float32:
        """The personal taste that demographics point to, unit vectors (n, d - 1)."""
        return normalised(self.embedding[groups + self.offsets].sum(axis=1))

    def personal_taste(self, groups: Int64, rng: Rng) -> Float32:
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

    def appeal(self, interest: Float32, slates: Ids, groups: Int64 | None = None) -> Float32:
        """How much each shown item (n, k) suits each user, generous ones of `groups` more."""
        fit: Float32 = np.matmul(self.taste[slates], interest[:, :, None])[:, :, 0]
        if groups is None or not self.params.generosity:
            return self.scale * fit
        return self.scale * fit + self.readiness(groups)[:, None]

    def readiness(self, groups: Int64) -> Float32:
        """How readily users (n,) click, in units of appeal: even steps from -1 to 1 times the dial.

        The attribute with the most values tells it.
        """
        sizes = self.params.demographics
        attribute = int(np.argmax(sizes))
        steps = np.linspace(-1, 1, sizes[attribute], dtype=np.float32)
        ready: Float32 = steps[groups[:, attribute]] * np.float32(
            self.params.generosity / self.params.sharpness
        )
        return ready

    def click_chance(self, appeal: Float32, offset: float) -> Float32:
        """Chance of a click on each place: looked at, then logistic in the item's appeal."""
        logit = np.float32(self.params.sharpness) * appeal + np.float32(offset)
        chance: Float32 = self.attention / (1 + np.exp(-logit))
        return chance

    def satisfaction(self, before: Float32, slates: Ids, clicked: Bool) -> Float32:
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


def _centred(vectors: Float64) -> Float64:
    centred: Float64 = vectors - vectors.mean(axis=0)
    return centred


def first_places(slates: Ids) -> Bool:
    """Where a slate (n, k) shows an item for the first time."""
    same = slates[:, :, None] == slates[:, None, :]
    earlier = np.tri(slates.shape[1], k=-1, dtype=np.bool_)
    first: Bool = ~(same & earlier).any(axis=2)
    return first

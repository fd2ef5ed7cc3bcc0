"""Drawing a page, with its exact probability.

With probability 1 - `random_share` the page is a Plackett-Luce draw from the candidates: place
after place, an item is taken with probability proportional to exp(score / temperature) among
those left. Otherwise it is uniform over all eligible items. Both are drawn without replacement,
and the logged propensities are those of the mixture: whichever branch drew the page, the
propensity of place j is the chance of its item given the items above it.
"""

import hashlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lser.online import page_kernels as kernels
from lser.types import Bool, Float32, Int64

Float64 = NDArray[np.float64]


class Slate(NamedTuple):
    """A drawn page: rows of items, and the chance of each given those above it."""

    rows: Int64  # (k,)
    propensities: Float64  # (k,)
    random: bool  # drawn by the uniform branch


def seed_of(*parts: str) -> int:
    """A seed that is a function of texts: the same page for the same decision."""
    digest = hashlib.blake2b("\x1f".join(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def logits(scores: Float32, temperature: float) -> Float64:
    """Scores over their own spread and the temperature: the scale of item vectors drops out."""
    values = scores.astype(np.float64)
    spread = values.std()
    if not spread > 0:
        return np.zeros(len(values))
    scaled: Float64 = (values - values.max()) / (temperature * spread)
    return scaled


def plackett_luce(logit: Float64, chosen: Int64) -> Float64:
    """The chance of each chosen place (positions in `logit`, in order) given those before."""
    weight = np.exp(logit - logit.max())
    picked = weight[chosen]
    weight[chosen] = 0.0
    left = weight.sum() + np.cumsum(picked[::-1])[::-1]  # sums only: nothing cancels
    chance: Float64 = picked / left
    return chance


def uniform(eligible: int, k: int) -> Float64:
    """The chance of each place of a uniformly random page of `k` among `eligible` items."""
    return 1.0 / (eligible - np.arange(k, dtype=np.float64))


def mixture(greedy: Float64, random: Float64, random_share: float) -> Float64:
    """The chance of each place given those above it, where a coin decides between two draws.

    The chance of the first j places is (1 - ε) Π greedy + ε Π random; a place's chance is the
    ratio of two of these. Worked with logarithms: the products of long pages are tiny.
    """
    with np.errstate(divide="ignore"):
        first = np.log1p(-random_share) + np.cumsum(np.log(greedy)) if random_share < 1 else None
        second = np.log(random_share) + np.cumsum(np.log(random)) if random_share > 0 else None
    if first is None or second is None:
        return random if first is None else greedy
    prefix = np.logaddexp(first, second)
    chance: Float64 = np.exp(np.diff(prefix, prepend=0.0))
    return chance


def draw(
    seed: int,
    candidates: Int64,
    scores: Float32,
    k: int,
    *,
    temperature: float,
    random_share: float,
    eligible: int,
    live: Bool,
) -> Slate:
    """Draw a page of `k` rows; `live` marks the eligible rows, `eligible` is their number."""
    k = min(k, eligible)
    few = len(candidates) < k or k == 0
    key = np.uint64(seed)
    if not few and not kernels.coin(key, random_share):
        chosen, chance = kernels.draw(scores, k, temperature, eligible, random_share, key)
        return Slate(candidates[chosen], chance, False)
    rows = _uniform_rows(np.random.default_rng(seed), k, eligible, live)
    place = {} if few else {row: index for index, row in enumerate(candidates.tolist())}
    chosen = np.array([place.get(row, -1) for row in rows.tolist()], np.int64)
    logit = np.zeros(0) if few else kernels.logits(scores, temperature)
    share = 1.0 if few else random_share
    return Slate(rows, kernels.chances(logit, chosen, eligible, share), True)


def warm_up() -> None:
    """Compile or load the kernels now, not at the first visitor's request."""
    scores, live = np.arange(3, dtype=np.float32), np.ones(3, np.bool_)
    for share in (0.0, 1.0):
        draw(
            0, np.arange(3), scores, 2,
            temperature=1.0, random_share=share, eligible=3, live=live,
        )  # fmt: skip
    kernels.explored(scores, 0.1, np.uint64(0))
    kernels.best_first(np.eye(3, dtype=np.float32), np.arange(3), scores)


def propensities(
    rows: Int64, candidates: Int64, logit: Float64, eligible: int, random_share: float
) -> Float64:
    """The mixture's chance of each place of a page given those above it."""
    k = len(rows)
    greedy = np.zeros(k)
    if k and random_share < 1:
        place = {int(row): index for index, row in enumerate(candidates)}
        chosen = [place.get(int(row), -1) for row in rows]
        known = next((j for j, index in enumerate(chosen) if index < 0), k)
        greedy[:known] = plackett_luce(logit, np.array(chosen[:known], np.int64))
    return mixture(greedy, uniform(eligible, k), random_share)


def _uniform_rows(rng: np.random.Generator, k: int, eligible: int, live: Bool) -> Int64:
    """`k` of the marked rows, every ordered page equally likely."""
    rows = len(live)
    if eligible * 2 > rows and k * 4 < eligible:  # most rows are marked: draw and reject
        found: dict[int, None] = {}
        while len(found) < k:
            row = int(rng.integers(rows))
            if live[row]:
                found[row] = None
        return np.fromiter(found, np.int64, k)
    return rng.permutation(np.flatnonzero(live))[:k].astype(np.int64)

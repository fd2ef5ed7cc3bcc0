"""Exact returns of long-term satisfaction by backward induction over the hidden exposure.

The exposure is the whole state, so the value of random documents and of the best policy follow
from V_t(x) = E over candidates of [mean or max over documents k of r(x, k) + E V_t+1(x')], with
x' = m x - 2 (k - 1/2) + noise. Exposure and clickbait lie on grids; the maximum over freshly drawn
candidates is the mean of the best of as many uniform draws, from the ranks of r + V on the grid.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lser.simulators.recsim.long_term_satisfaction.dynamics import exposed, satisfied
from lser.simulators.recsim.long_term_satisfaction.params import (
    Params,
    draw_catalogue,
)
from lser.types import Float64


def _documents(params: Params, points: int) -> Float64:
    if params.resample_documents:
        return (np.arange(points) + 0.5) / points
    return np.array(params.catalogue or draw_catalogue(params))


def _expected_engagement(params: Params, exposure: Float64, bait: Float64) -> Float64:
    """Mean engagement, that of a log-normal; exposure and clickbait broadcast."""
    loc = bait * params.choc_mean + (1 - bait) * params.kale_mean
    scale = bait * params.choc_stddev + (1 - bait) * params.kale_stddev
    mean: Float64 = np.exp(satisfied(exposure, params.sensitivity) * loc + scale**2 / 2)
    return mean


class Values(NamedTuple):
    """What is to be had from an exposure on a grid."""

    exposure: Float64  # (x,)
    random: Float64  # (x,) from a whole session with random documents
    best: Float64  # (t, x) with the best policy and t pages to go, none to begin with


@lru_cache(maxsize=32)
def values(params: Params, *, points: int = 301) -> Values:
    """The expected returns of random documents and of the best policy."""
    bait = _documents(params, points)
    # noise moves the exposure out of the noiseless range by a few standard deviations at most
    reach = (1.0 + 6.0 * params.innovation_stddev) / (1.0 - params.memory_discount)
    exposure = np.linspace(-reach, reach, points)
    following = _following(params, exposure[:, None], bait)
    reward = _expected_engagement(params, exposure[:, None], bait)
    share = np.arange(len(bait) + 1) / len(bait)
    chance = np.diff(share**params.num_candidates)  # of the best being the r-th lowest
    random, best = np.zeros(points), [np.zeros(points)]
    for _ in range(int(np.ceil(params.time_budget))):
        random = (reward + _ahead(following, exposure, random)).mean(axis=1)
        total = reward + _ahead(following, exposure, best[-1])
        fresh = params.resample_documents
        best.append(np.sort(total, axis=1) @ chance if fresh else total.max(axis=1))
    return Values(exposure, random, np.array(best))


def expected_returns(params: Params, *, points: int = 301) -> tuple[float, float]:
    """The expected return of a session with random documents and with the best policy."""
    found = values(params, points=points)
    half = 0.5 / (1.0 - params.memory_discount)
    start = np.linspace(-half, half, len(found.exposure))
    both = (found.random, found.best[-1])
    random, best = (float(np.interp(start, found.exposure, one).mean()) for one in both)
    return random, best


def best_document(
    params: Params, exposure: Float64, pages: Float64, clickbait: Float64
) -> NDArray[np.intp]:
    """The best of every user's candidates (n, k), by the exposure (n,) and the pages (n,) to go."""
    found = values(params)
    total = _expected_engagement(params, exposure[:, None], clickbait)
    to_go = np.clip(np.ceil(pages).astype(np.int64), 1, len(found.best) - 1)
    following = _following(params, exposure[:, None], clickbait)
    for left in np.unique(to_go):
        here = to_go == left
        some = [(weight, x[here]) for weight, x in following]
        total[here] += _ahead(some, found.exposure, found.best[left - 1])
    return np.asarray(total.argmax(axis=1))


def _following(params: Params, exposure: Float64, bait: Float64) -> list[tuple[float, Float64]]:
    """Where the exposure goes, at the nodes of the noise, with the weight of each."""
    node, weight = np.polynomial.hermite_e.hermegauss(5)
    decay, spread = params.memory_discount, params.innovation_stddev
    return [
        (float(w), exposed(exposure, bait, z, decay, spread))
        for w, z in zip(weight / weight.sum(), node, strict=True)
    ]


def _ahead(following: list[tuple[float, Float64]], exposure: Float64, value: Float64) -> Float64:
    """The mean value of where the exposure goes."""
    mean: Float64 = sum(w * np.interp(x, exposure, value) for w, x in following)  # type: ignore[assignment]
    return mean

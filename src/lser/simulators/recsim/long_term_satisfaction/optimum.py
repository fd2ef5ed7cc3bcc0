"""Exact returns of long-term satisfaction by backward induction over the hidden exposure.

The exposure is the whole state, so the value of random documents and of the best policy follow
from V_t(x) = E over candidates of [mean or max over documents k of r(x, k) + E V_t+1(x')], with
x' = m x - 2 (k - 1/2) + noise. Exposure and clickbait lie on grids; the maximum over freshly drawn
candidates is the mean of the best of as many uniform draws, from the ranks of r + V on the grid.
"""

from functools import lru_cache

import numpy as np

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
    """Mean engagement (x, k): that of a log-normal."""
    loc = bait * params.choc_mean + (1 - bait) * params.kale_mean
    scale = bait * params.choc_stddev + (1 - bait) * params.kale_stddev
    return np.exp(np.outer(satisfied(exposure, params.sensitivity), loc) + scale**2 / 2)


@lru_cache(maxsize=32)
def expected_returns(params: Params, *, points: int = 301) -> tuple[float, float]:
    """The expected return of a session with random documents and with the best policy."""
    bait = _documents(params, points)
    # noise moves the exposure out of the noiseless range by a few standard deviations at most
    reach = (1.0 + 6.0 * params.innovation_stddev) / (1.0 - params.memory_discount)
    exposure = np.linspace(-reach, reach, points)
    node, weight = np.polynomial.hermite_e.hermegauss(5)
    weight = weight / weight.sum()
    following = [
        exposed(exposure[:, None], bait, z, params.memory_discount, params.innovation_stddev)
        for z in node
    ]
    reward = _expected_engagement(params, exposure, bait)
    share = np.arange(len(bait) + 1) / len(bait)
    chance = np.diff(share**params.num_candidates)  # of the best being the r-th lowest
    random, best = np.zeros(points), np.zeros(points)
    for _ in range(int(np.ceil(params.time_budget))):
        ahead = sum(
            w * np.interp(x, exposure, random) for w, x in zip(weight, following, strict=True)
        )
        random = (reward + ahead).mean(axis=1)
        ahead = sum(
            w * np.interp(x, exposure, best) for w, x in zip(weight, following, strict=True)
        )
        total = reward + ahead
        best = np.sort(total, axis=1) @ chance if params.resample_documents else total.max(axis=1)
    half = 0.5 / (1.0 - params.memory_discount)
    start = np.linspace(-half, half, points)
    return (
        float(np.interp(start, exposure, random).mean()),
        float(np.interp(start, exposure, best).mean()),
    )

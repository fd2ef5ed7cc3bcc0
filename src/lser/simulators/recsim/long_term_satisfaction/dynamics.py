"""How a RecSim long-term-satisfaction user engages, and what exposure does to them.

The formulas are pure functions in float64 with the originals' order of operations; the same
functions, compiled, run in the batched step.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lser.compiled import kernel
from lser.top_k import offer
from lser.types import Bool, Float32, Float64, Int64


class Constants(NamedTuple):
    """The numbers of `Params` that the user's behaviour depends on."""

    memory_discount: float
    sensitivity: float
    innovation_stddev: float
    choc_mean: float
    choc_stddev: float
    kale_mean: float
    kale_stddev: float
    max_engagement: float
    exposure_memory: float
    time_budget: float


class Response(NamedTuple):
    """What a page brought, per user."""

    reward: Float32  # (n,)
    terminated: Bool  # (n,)
    engagement: Float64  # (n,) the reward in float64
    observed: Float64  # (n,) engagement as the recommender sees it, clipped
    clickbait: Float64  # (n,) of the document taken


def engagement(
    clickbait: Any,
    satisfaction: Any,
    z: Any,
    choc_mean: float,
    choc_stddev: float,
    kale_mean: float,
    kale_stddev: float,
) -> Any:
    """Log-normal engagement with a document; `z` is the N(0, 1) draw."""
    loc = (clickbait * choc_mean + (1 - clickbait) * kale_mean) * satisfaction
    scale = clickbait * choc_stddev + ((1 - clickbait) * kale_stddev)
    return np.exp(loc + scale * z)


def exposed(
    exposure: Any, clickbait: Any, z: Any, memory_discount: float, innovation_stddev: float
) -> Any:
    """Net positive exposure after a document; clickbait lowers it (as RecSim's code has it)."""
    return memory_discount * exposure - 2.0 * (clickbait - 0.5) + innovation_stddev * z


def satisfied(exposure: Any, sensitivity: float) -> Any:
    """Satisfaction in (0, 1): the sigmoid of the sensitivity times the exposure."""
    return 1 / (1.0 + np.exp(-sensitivity * exposure))


_engagement = kernel(engagement)
_exposed = kernel(exposed)
_satisfied = kernel(satisfied)


@kernel
def _advance(
    exposure: Float64,
    satisfaction: Float64,
    budget: Float64,
    memory: Float64,
    clickbaits: Float64,
    slate: Int64,
    z: Float64,
    constants: Constants,
    out: Float64,
) -> None:
    k = constants
    for i in range(len(slate)):
        bait = clickbaits[i, slate[i, 0]]
        engaged = _engagement(
            bait, satisfaction[i], z[i, 0], k.choc_mean, k.choc_stddev, k.kale_mean, k.kale_stddev
        )
        observed = min(engaged, k.max_engagement)
        exposure[i] = _exposed(exposure[i], bait, z[i, 1], k.memory_discount, k.innovation_stddev)
        satisfaction[i] = _satisfied(exposure[i], k.sensitivity)
        budget[i] -= 1
        memory[i, 0] = _exposed(memory[i, 0], bait, 0.0, k.exposure_memory, 0.0)
        memory[i, 1] = bait
        memory[i, 2] = np.log(observed)
        out[0, i], out[1, i], out[2, i] = engaged, observed, bait


def advance(
    exposure: Float64,
    satisfaction: Float64,
    budget: Float64,
    memory: Float64,
    clickbaits: Float64,
    slate: Int64,
    z: Float64,
    constants: Constants,
) -> Response:
    """One page: the user takes the first document; the user's arrays change in place.

    `z` (n, 2) are the N(0, 1) draws of engagement and innovation; `memory` (n, 3) is what the
    recommender remembers: exposure as it can be reckoned from outside, the last document's
    clickbait, and the log of the last observed engagement.
    """
    out = np.empty((3, len(slate)))
    _advance(exposure, satisfaction, budget, memory, clickbaits, slate, z, constants, out)
    engaged, observed, clickbait = out
    return Response(engaged.astype(np.float32), budget <= 0, engaged, observed, clickbait)


@kernel
def nearest(target: NDArray[Any], clickbaits: Float64, slots: int) -> Int64:
    """The `slots` candidates (n, slots) nearest to `target` (n, 1) in clickbait, nearest first."""
    n, m = clickbaits.shape
    slate = np.empty((n, slots), np.int64)
    best = np.empty(slots)
    for i in range(n):
        row, aim = slate[i], np.float64(target[i, 0])
        for j in range(slots):
            offer(best, row, j, -abs(clickbaits[i, j] - aim), j)
        for j in range(slots, m):
            score = -abs(clickbaits[i, j] - aim)
            if score > best[slots - 1]:
                offer(best, row, slots - 1, score, j)
    return slate


@kernel
def fill_observation(
    memory: Float64, budget: Float64, clickbaits: Float64, time_budget: float, out: Float32
) -> None:
    """Write memory, the share of the session gone, and the candidates' range to `out` (n, 7)."""
    n, m = clickbaits.shape
    for i in range(n):
        low = high = clickbaits[i, 0]
        total = 0.0
        for j in range(m):
            bait = clickbaits[i, j]
            total += bait
            low = min(low, bait)
            high = max(high, bait)
        out[i, 0] = memory[i, 0]
        out[i, 1] = memory[i, 1]
        out[i, 2] = memory[i, 2]
        out[i, 3] = 1.0 - budget[i] / time_budget
        out[i, 4] = low
        out[i, 5] = total / m
        out[i, 6] = high

"""How a RecSim interest-evolution user chooses, watches, and changes.

The formulas are pure functions in float64 with the originals' order of operations; the same
functions, compiled, run in the batched step.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lser.compiled import kernel
from lser.random import normal_at
from lser.top_k import offer
from lser.types import Bool, Float32, Float64, Int64


class Constants(NamedTuple):
    """The numbers of `Params` that the user's behaviour depends on."""

    no_click_mass: float
    min_normalizer: float
    alpha_x_intercept: float
    alpha_y_intercept: float
    user_quality_factor: float
    document_quality_factor: float
    user_update_alpha: float
    step_penalty: float
    video_length: float
    quality_std: float


class Response(NamedTuple):
    """What a page brought, per user."""

    reward: Float32  # (n,)
    terminated: Bool  # (n,)
    selected: Int64  # (n,) slot that was clicked, -1 for none
    cluster: Int64  # (n,) its cluster, -1 for none
    quality: Float64  # (n,) its quality, 0 for none
    watch_time: Float64  # (n,)
    shown: Int64  # (n,) filled slots
    slate_cluster: Int64  # (n, k) -1 for an empty slot


def moved_interest(
    interest: Any, uniform: Any, alpha_x_intercept: float, alpha_y_intercept: float
) -> Any:
    """The interest in the clicked cluster afterwards: up with probability (u + 1) / 2, else down.

    The step is alpha (1 - u) with alpha on the line through the two intercepts at |u|.
    """
    alpha = (-alpha_y_intercept / alpha_x_intercept) * np.abs(interest) + alpha_y_intercept
    sign = 2.0 * (uniform < (interest + 1.0) / 2) - 1.0
    return np.minimum(np.maximum(interest + sign * (alpha * (1.0 - interest)), -1.0), 1.0)


def watched(budget: Any, video_length: float) -> Any:
    """The watch time of a click."""
    return np.minimum(budget, video_length)


def received_utility(
    interest: Any,
    quality: Any,
    min_normalizer: float,
    user_quality_factor: float,
    document_quality_factor: float,
) -> Any:
    """What a click is worth to the user; `interest` is that before the update."""
    return user_quality_factor * (interest - min_normalizer) + document_quality_factor * quality


def budget_after_click(budget: Any, watch_time: Any, utility: Any, user_update_alpha: float) -> Any:
    """Time left after watching; a good document gives some of it back."""
    return budget - watch_time + user_update_alpha * watch_time * utility


_moved_interest = kernel(moved_interest)
_watched = kernel(watched)
_received_utility = kernel(received_utility)
_budget_after_click = kernel(budget_after_click)


@kernel
def _probabilities(
    interests: Float64,
    clusters: Int64,
    no_click_mass: float,
    min_normalizer: float,
    out: Float64,
) -> None:
    slots = len(clusters)
    total = 0.0
    for slot in range(slots):
        out[slot] = interests[clusters[slot]] - min_normalizer if clusters[slot] >= 0 else 0.0
        total += out[slot]
    out[slots] = no_click_mass - min_normalizer
    total += out[slots]
    if total <= 0.0:  # nobody to choose and no mass to refuse with: nothing is clicked
        out[slots] = total = 1.0
    for slot in range(slots + 1):
        out[slot] /= total


@kernel
def _slot(probabilities: Float64, uniform: float) -> int:
    """The slot that `uniform` falls into, as np.random.choice maps it; the last is no click."""
    total = 0.0
    for p in probabilities:
        total += p
    below = 0.0
    for slot in range(len(probabilities) - 1):
        below += probabilities[slot]
        if uniform < below / total:
            return slot
    return len(probabilities) - 1


@kernel
def choice_probabilities(
    interests: Float64, clusters: Int64, no_click_mass: float, min_normalizer: float
) -> Float64:
    """Click probabilities (n, k + 1) of the slots of `clusters` (n, k), the last is no click.

    A slot of -1 is empty. An item's score is the interest in its cluster (n, C) less
    `min_normalizer`, that of no click is `no_click_mass` less `min_normalizer`.
    """
    n, slots = clusters.shape
    out = np.empty((n, slots + 1))
    for i in range(n):
        _probabilities(interests[i], clusters[i], no_click_mass, min_normalizer, out[i])
    return out


@kernel
def choose(probabilities: Float64, uniform: Float64) -> Int64:
    """The slot (n,) that each number of `uniform` (n,) selects; k stands for no click."""
    out = np.empty(len(uniform), np.int64)
    for i in range(len(uniform)):
        out[i] = _slot(probabilities[i], uniform[i])
    return out


@kernel
def quality_of(
    key: np.uint64,
    document: int,
    cluster: int,
    cluster_means: Float64,
    catalogue_quality: Float64,
    quality_std: float,
) -> float:
    """The hidden quality of one candidate; an empty `catalogue_quality` means drawn from `key`."""
    if len(catalogue_quality) > 0:
        return float(catalogue_quality[document])
    return float(cluster_means[cluster] + quality_std * normal_at(key, document))


@kernel
def qualities(
    keys: NDArray[np.uint64],
    clusters: NDArray[np.int16],
    cluster_means: Float64,
    catalogue_quality: Float64,
    quality_std: float,
) -> Float64:
    """The hidden quality (n, m) of all candidates, for policies that may know it."""
    n, m = clusters.shape
    out = np.empty((n, m))
    for i in range(n):
        for j in range(m):
            out[i, j] = quality_of(
                keys[i], j, clusters[i, j], cluster_means, catalogue_quality, quality_std
            )
    return out


@kernel
def advance(
    interests: Float64,
    budget: Float64,
    clusters: NDArray[np.int16],
    keys: NDArray[np.uint64],
    slate: Int64,
    uniform: Float64,
    constants: Constants,
    cluster_means: Float64,
    catalogue_quality: Float64,
) -> Response:
    """One page: choice, watching, and the change of `interests` and `budget` in place.

    `uniform` (n, 2 or more) decides the choice and the direction of the interest's move.
    """
    n, slots = slate.shape
    k = constants
    reward = np.zeros(n, np.float32)
    terminated = np.zeros(n, np.bool_)
    selected = np.full(n, -1, np.int64)
    cluster = np.full(n, -1, np.int64)
    quality = np.zeros(n)
    watch_time = np.zeros(n)
    shown = np.zeros(n, np.int64)
    slate_cluster = np.full((n, slots), -1, np.int64)
    probabilities = np.empty(slots + 1)
    for i in range(n):
        for slot in range(slots):
            if slate[i, slot] >= 0:
                slate_cluster[i, slot] = clusters[i, slate[i, slot]]
                shown[i] += 1
        _probabilities(
            interests[i], slate_cluster[i], k.no_click_mass, k.min_normalizer, probabilities
        )
        slot = _slot(probabilities, uniform[i, 0])
        if slot == slots:
            budget[i] -= k.step_penalty
        else:
            c = slate_cluster[i, slot]
            before = interests[i, c]
            q = quality_of(
                keys[i], slate[i, slot], c, cluster_means, catalogue_quality, k.quality_std
            )
            watch = _watched(budget[i], k.video_length)
            interests[i, c] = _moved_interest(
                before, uniform[i, 1], k.alpha_x_intercept, k.alpha_y_intercept
            )
            utility = _received_utility(
                before, q, k.min_normalizer, k.user_quality_factor, k.document_quality_factor
            )
            budget[i] = _budget_after_click(budget[i], watch, utility, k.user_update_alpha)
            selected[i], cluster[i], quality[i], watch_time[i] = slot, c, q, watch
            reward[i] = watch
        terminated[i] = budget[i] <= 0.0
    return Response(
        reward, terminated, selected, cluster, quality, watch_time, shown, slate_cluster
    )


@kernel
def rank(weights: NDArray[Any], clusters: NDArray[np.int16], slots: int) -> Int64:
    """The `slots` candidates (n, slots) with the highest weight of their cluster, best first."""
    n, m = clusters.shape
    slate = np.empty((n, slots), np.int64)
    best = np.empty(slots)
    for i in range(n):
        row, weight = slate[i], weights[i]
        for j in range(slots):
            offer(best, row, j, weight[clusters[i, j]], j)
        for j in range(slots, m):
            score = weight[clusters[i, j]]
            if score > best[slots - 1]:
                offer(best, row, slots - 1, score, j)
    return slate


@kernel
def fill_observation(interests: Float64, clusters: NDArray[np.int16], out: Float32) -> None:
    """Write interests and the clusters' share of the candidates (1 = an even share) to `out`."""
    n, c = interests.shape
    m = clusters.shape[1]
    count = np.empty(c, np.int64)
    for i in range(n):
        count[:] = 0
        for j in range(m):
            count[clusters[i, j]] += 1
        for j in range(c):
            out[i, j] = interests[i, j]
            out[i, c + j] = count[j] * c / m

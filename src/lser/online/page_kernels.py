"""The draw of a page, compiled: what `pages` says in NumPy, in one pass over the candidates.

Random numbers are functions of a seed and their index, so that a page can be drawn again.
"""

from typing import Any

import numpy as np

from lser.compiled import kernel, unordered_kernel
from lser.random import normal_at, unit_at
from lser.top_k import offer


@kernel
def explored(direction: Any, length: float, seed: Any) -> Any:
    """A unit direction plus normal noise of about that length, the noise of a seed."""
    count = len(direction)
    square = 0.0
    for value in direction:
        square += value * value
    scale = 1.0 / max(np.sqrt(square), 1e-12)
    out = np.empty(count, np.float32)
    step = length / np.sqrt(count)
    for place in range(count):
        out[place] = direction[place] * scale
        if length > 0:
            out[place] += step * normal_at(seed, place)
    return out


@unordered_kernel
def best_first(vectors: Any, rows: Any, direction: Any) -> Any:
    """Rows by their inner product with a direction, highest first, and those products."""
    count = len(rows)
    found = np.empty(count, np.float32)
    for place in range(count):  # by itself, so that the processor waits for many rows at once
        score = np.float32(0)
        for column in range(len(direction)):
            score += vectors[rows[place], column] * direction[column]
        found[place] = score
    ordered, scores = np.empty(count, np.int64), np.empty(count, np.float32)
    for place in range(count):
        offer(scores, ordered, place, found[place], rows[place])  # nearly in order already
    return ordered, scores


@kernel
def logits(scores: Any, temperature: float) -> Any:
    """Scores over their own spread and the temperature, at most 0."""
    count = len(scores)
    mean = 0.0
    top = -np.inf
    for score in scores:
        mean += score
        top = max(top, score)
    mean /= count
    spread = 0.0
    for score in scores:
        spread += (score - mean) ** 2
    spread = np.sqrt(spread / count)
    out = np.zeros(count)
    if spread > 0:
        for place in range(count):
            out[place] = (scores[place] - top) / (temperature * spread)
    return out


@kernel
def choose(logit: Any, k: int, seed: Any) -> Any:
    """`k` places of the candidates in the order of a Plackett-Luce draw (Gumbel's trick)."""
    count = len(logit)
    key = np.empty(count)
    for place in range(count):
        key[place] = logit[place] - np.log(-np.log(1.0 - unit_at(seed, place + 1)) + 1e-300)
    chosen = np.empty(k, np.int64)
    for turn in range(k):
        best = 0
        for place in range(count):
            if key[place] > key[best]:
                best = place
        chosen[turn] = best
        key[best] = -np.inf
    return chosen


@kernel
def chances(logit: Any, chosen: Any, eligible: int, share: float) -> Any:
    """The mixture's chance of each chosen place (-1: not a candidate) given those above it."""
    k = len(chosen)
    out = np.empty(k)
    weight = np.exp(logit)
    tail = np.zeros(k + 1)  # of the chosen from a turn on: sums only, nothing cancels
    for turn in range(k - 1, -1, -1):
        tail[turn] = tail[turn + 1] + (weight[chosen[turn]] if chosen[turn] >= 0 else 0.0)
    rest = 0.0
    taken = np.zeros(len(logit), np.bool_)
    for place in chosen:
        if place >= 0:
            taken[place] = True
    for place in range(len(logit)):
        if not taken[place]:
            rest += weight[place]
    greedy = np.log1p(-share) if share < 1 else -np.inf
    random = np.log(share) if share > 0 else -np.inf
    before = 0.0
    for turn in range(k):
        place = chosen[turn]
        greedy += np.log(weight[place] / (rest + tail[turn])) if place >= 0 else -np.inf
        random -= np.log(float(eligible - turn))
        high, low = max(greedy, random), min(greedy, random)
        after = high + np.log1p(np.exp(low - high)) if low > -np.inf else high
        out[turn] = np.exp(after - before)
        before = after
    return out


@kernel
def draw(
    scores: Any, k: int, temperature: float, eligible: int, share: float, seed: Any
) -> Any:  # fmt: skip
    """A page by the candidates' scores: their places, and the mixture's chances of them."""
    logit = logits(scores, temperature)
    chosen = choose(logit, k, seed)
    return chosen, chances(logit, chosen, eligible, share)


@kernel
def coin(seed: Any, share: float) -> Any:
    """Whether the coin of a seed falls on the side of a share."""
    return unit_at(seed, 0) < share

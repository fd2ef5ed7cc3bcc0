"""RecoGym's events, user by user, compiled: product views, state changes, clicks.

The number of views between two recommendations is random, so a loop over users in machine code
beats masks over arrays. Draws come in the original's order (click, state, drift, view, ...), which
lets the tests push recorded draws of the original through these same functions.
"""

from typing import NamedTuple

import numpy as np

from lser.compiled import kernel
from lser.types import Bool, Float32, Float64, Int64

ORGANIC, BANDIT, STOP = 0, 1, 2


class World(NamedTuple):
    """All that users have in common: P products, K hidden factors, probabilities."""

    version: int  # 1, or 0 for the original's first environment
    transition: Float64  # (3, 3) from row to column: organic, bandit, stop
    gamma: Float64  # (P, K) products as viewed, column by column in memory
    mu_organic: Float64  # (P,)
    beta: Float64  # (P, K) products as recommended
    mu_bandit: Float64  # (P,)
    view_table: Float64  # version 0: (P, P) next view by last view
    click_table: Float64  # version 0: (P, P) click probability [recommended, last viewed]
    sigma_omega_initial: float
    sigma_omega: float
    always_drift: bool  # interests drift at every event, not only before an organic one
    random_time: bool  # time passes by |N(time_mu, time_sigma)| instead of by 1
    time_mu: float
    time_sigma: float
    embedding: Float64  # (P, D) products in the space of actions and observations, or (0, 0)


@kernel
def link(x: float) -> float:
    """Click probability of a score: σ(5·σ(2·σ(.3x) - 2) - 6)."""
    inner = 1.0 / (1.0 + np.exp(-0.3 * x))
    middle = 1.0 / (1.0 + np.exp(-(2.0 * inner - 2.0)))
    return float(1.0 / (1.0 + np.exp(-(5.0 * middle - 6.0))))


@kernel
def pick(weights: Float64, uniform: float) -> int:
    """The index that a uniform draw selects in proportion to `weights`."""
    target = uniform * weights.sum()
    total = 0.0
    for index in range(weights.size - 1):
        total += weights[index]
        if total > target:
            return index
    return int(weights.size - 1)


@kernel
def view_weights(world: World, omega: Float64, last: int, out: Float64) -> None:
    """Write to `out` (P,) the unnormalised probabilities of the next product view."""
    if world.version == 0:
        out[:] = world.view_table[last]
        return
    out[:] = world.mu_organic
    for k in range(omega.size):  # column by column: contiguous, so vectorised
        for product in range(out.size):
            out[product] += world.gamma[product, k] * omega[k]
    highest = out.max()
    for product in range(out.size):
        out[product] = np.exp(out[product] - highest)


@kernel
def click_probability(world: World, omega: Float64, last: int, product: int) -> float:
    """The probability that a user clicks on a recommended product."""
    if world.version == 0:
        return float(world.click_table[product, last])
    score = world.mu_bandit[product]
    for k in range(omega.size):
        score += world.beta[product, k] * omega[k]
    return link(score)


@kernel
def clicked(probability: float, uniform: float) -> bool:
    """Whether a uniform draw is a click (the original picks from [no click, click])."""
    return uniform >= 1.0 - probability


@kernel
def _next_state(
    world: World, state: int, omega: Float64, time: Float64, rng: np.random.Generator
) -> int:
    """Change the Markov state; drift `omega` (K,) and advance `time` (1,) in place."""
    state = pick(world.transition[state], rng.random())
    if world.version == 0:
        return state
    passed = abs(rng.normal(world.time_mu, world.time_sigma)) if world.random_time else 1.0
    time[0] += passed
    if world.always_drift or state == ORGANIC:
        scale = world.sigma_omega * (passed if passed > 0.0 else 1.0)
        for k in range(omega.size):
            omega[k] += scale * rng.standard_normal()
    return state


@kernel
def _browse(
    world: World,
    user: int,
    omega: Float64,
    seen: Float32,
    last: Int64,
    time: Float64,
    rng: np.random.Generator,
    weights: Float64,
) -> tuple[int, int]:
    """One organic session; returns the state after it and the number of views."""
    state = ORGANIC
    views = 0
    while state == ORGANIC:
        view_weights(world, omega[user], last[user], weights)
        product = pick(weights, rng.random())
        last[user] = product
        views += 1
        if world.embedding.size:
            for d in range(seen.shape[1]):
                seen[user, d] += world.embedding[product, d]
        else:
            seen[user, product] += 1.0
        state = _next_state(world, state, omega[user], time[user : user + 1], rng)
    return state, views


@kernel
def arrive(
    world: World,
    omega: Float64,
    seen: Float32,
    last: Int64,
    views: Int64,
    time: Float64,
    rng: np.random.Generator,
    redraw: bool,
) -> Bool:
    """Draw users and their first organic sessions in place; returns who can be recommended to.

    With `redraw` a user who leaves before the first recommendation is replaced by another.
    """
    products = world.mu_organic.size
    weights = np.empty(products)
    reached = np.zeros(last.size, np.bool_)
    for user in range(last.size):
        while True:
            seen[user] = 0.0
            time[user] = 0.0
            for k in range(omega.shape[1]):
                omega[user, k] = world.sigma_omega_initial * rng.standard_normal()
            if world.version == 0:
                last[user] = min(int(rng.random() * products), products - 1)
            state, views[user] = _browse(world, user, omega, seen, last, time, rng, weights)
            reached[user] = state == BANDIT
            if reached[user] or not redraw:
                break
    return reached


@kernel
def recommend(
    world: World,
    product: Int64,
    omega: Float64,
    seen: Float32,
    last: Int64,
    views: Int64,
    time: Float64,
    since: Int64,
    clicks: Int64,
    shown: Int64,
    rng: np.random.Generator,
) -> tuple[Float64, Int64, Bool, Int64]:
    """Recommend one product to each user, in place, up to the next recommendation or the end.

    Returns the click probabilities, the clicks, who left, and the views since.
    """
    n = product.size
    probability = np.empty(n)
    click = np.zeros(n, np.int64)
    left = np.empty(n, np.bool_)
    viewed = np.zeros(n, np.int64)
    weights = np.empty(world.mu_organic.size)
    for user in range(n):
        probability[user] = click_probability(world, omega[user], last[user], product[user])
        if clicked(probability[user], rng.random()):
            click[user] = 1
        state = _next_state(world, BANDIT, omega[user], time[user : user + 1], rng)
        since[user] += 1
        if click[user] or state == ORGANIC:  # a click brings even a leaving user back
            state, viewed[user] = _browse(world, user, omega, seen, last, time, rng, weights)
            since[user] = 0
        views[user] += viewed[user]
        clicks[user] += click[user]
        shown[user] += 1
        left[user] = state == STOP
    return probability, click, left, viewed


@kernel
def organic_log(world: World, users: int, rng: np.random.Generator) -> tuple[Int64, Int64]:
    """First organic sessions of new users: the views' users (ascending) and products."""
    omega = np.empty((1, world.gamma.shape[1]))
    weights = np.empty(world.mu_organic.size)
    time = np.zeros(1)
    user_of = [0 for _ in range(0)]
    product_of = [0 for _ in range(0)]
    for user in range(users):
        for k in range(omega.shape[1]):
            omega[0, k] = world.sigma_omega_initial * rng.standard_normal()
        last = min(int(rng.random() * weights.size), weights.size - 1)
        state = ORGANIC
        while state == ORGANIC:
            view_weights(world, omega[0], last, weights)
            last = pick(weights, rng.random())
            user_of.append(user)
            product_of.append(last)
            state = _next_state(world, state, omega[0], time, rng)
    return np.array(user_of), np.array(product_of)

"""Policies that see Bazaar's hidden interest, and what they score: the share of the possible."""

from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lser.simulators.bazaar.params import Params
from lser.simulators.bazaar.simulator import Bazaar, Users
from lser.types import Float32, Float64

Policy = Callable[[Users], NDArray[Any]]

_SESSIONS = 4_096
_MOST_PAGES = 5_000
_WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0)


class Score(NamedTuple):
    """Means over sessions, with the standard errors of the first two."""

    ctr: float
    clicks: float  # per session
    pages: float  # per session
    ctr_error: float
    clicks_error: float


class Sighted:
    """Ranks items by the user's true interest plus `quality_weight` times their quality.

    At weight 0 it is the myopic oracle: click chances rise with appeal and attention falls with
    the place, so this order has the most expected clicks of all slates. A positive weight gives
    up some clicks now for satisfaction, hence for pages to come.
    """

    def __init__(self, bazaar: Bazaar, quality_weight: float = 0.0) -> None:
        self._bazaar = bazaar
        self._weight = quality_weight

    def __call__(self, users: Users) -> NDArray[Any]:
        """The action for each user, in the space of the simulator's actions."""
        weights = scoring(self._bazaar.world.interest(users.personal), self._weight)
        return as_action(self._bazaar, weights)


def scoring(taste: Float32, quality_weight: float) -> Float32:
    """Weight vectors (n, d) within [-1, 1] that rank by `taste` and quality."""
    quality = np.full((len(taste), 1), quality_weight, np.float32)
    weights = np.concatenate((taste, quality), axis=1)
    scaled: Float32 = weights / np.abs(weights).max(axis=1, keepdims=True)
    return scaled


def as_action(bazaar: Bazaar, weights: Float32) -> NDArray[Any]:
    """Weight vectors as actions of whichever kind the simulator takes."""
    if bazaar.params.actions == "continuous":
        return weights
    slates = bazaar.world.index.search(weights, bazaar.params.shown)
    return slates if bazaar.params.actions == "slate" else slates[:, 0]


def informed(bazaar: Bazaar) -> Policy:
    """Knows the world but sees demographics only: what a learner can reach without a profile."""

    def policy(users: Users) -> NDArray[Any]:
        taste = bazaar.world.interest(bazaar.world.group_taste(users.groups))
        return as_action(bazaar, scoring(taste, 0.0))

    return policy


def constant(bazaar: Bazaar, weights: Float32) -> Policy:
    """Shows everybody the page of one weight vector (d,)."""
    action = as_action(bazaar, weights[None])[0]
    return lambda users: np.repeat(action[None], len(users.page), axis=0)


def uniformly_random(bazaar: Bazaar, seed: int) -> Policy:
    """Draws every action uniformly from the action space."""
    rng = np.random.default_rng(seed)
    params = bazaar.params

    def policy(users: Users) -> NDArray[Any]:
        n = len(users.page)
        match params.actions:
            case "continuous":
                return rng.uniform(-1, 1, (n, params.features)).astype(np.float32)
            case "slate":
                return rng.integers(params.items, size=(n, params.slate))
            case "discrete":
                return rng.integers(params.items, size=n)

    return policy


def play(bazaar: Bazaar, policy: Policy, *, sessions: int = _SESSIONS, seed: int = 0) -> Score:
    """What `policy` scores over whole sessions; the same seed brings the same newcomers."""
    rng = np.random.default_rng(seed)
    users = bazaar.arrive(rng, sessions)
    clicks, pages = np.zeros(sessions), np.zeros(sessions)
    present = np.arange(sessions)
    for _ in range(_MOST_PAGES):
        outcome = bazaar.step(users, policy(users), rng)
        clicks[present] += outcome.reward
        pages[present] += 1
        stays = ~outcome.terminated
        present = present[stays]
        if not present.size:
            break
        users = Users(**{f.name: getattr(users, f.name)[stays] for f in fields(users)})
    return _score(clicks, pages, bazaar.params.shown)


def _score(clicks: Float64, pages: Float64, shown: int) -> Score:
    ctr = clicks.sum() / (shown * pages.sum())
    root = np.sqrt(len(clicks))
    residual = (clicks - ctr * shown * pages) / (shown * pages.mean())  # ratio estimator
    return Score(
        ctr=float(ctr),
        clicks=float(clicks.mean()),
        pages=float(pages.mean()),
        ctr_error=float(residual.std(ddof=1) / root),
        clicks_error=float(clicks.std(ddof=1) / root),
    )


@lru_cache(maxsize=256)
def myopic_score(params: Params) -> Score:
    """The myopic oracle: the most expected clicks on every page."""
    bazaar = Bazaar(params)
    return play(bazaar, Sighted(bazaar))


class LongTerm(NamedTuple):
    """The long-term oracle: its weight on quality and its score."""

    quality_weight: float
    score: Score


@lru_cache(maxsize=256)
def long_term_score(params: Params) -> LongTerm:
    """The weight on quality with the most clicks per session, found on one half of the seeds.

    The best of a family of policies that contains the myopic one, so a lower bound of the
    optimum; it is scored on newcomers it was not chosen on.
    """
    bazaar = Bazaar(params)
    chosen = max(_WEIGHTS, key=lambda w: play(bazaar, Sighted(bazaar, w), seed=1).clicks)
    return LongTerm(chosen, play(bazaar, Sighted(bazaar, chosen)))

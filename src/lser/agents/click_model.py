"""A model of clicks: the recommender's own architecture, learned by likelihood and explored by
Thompson sampling."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lser.agents.bandit import (
    Bandit,
    BanditParams,
    check_numbers,
    draw_tastes,
    page_vectors,
    unit,
    with_one,
)
from lser.checks import check_count, check_number
from lser.types import Batch, Float32, Float64, Transitions

SHARED = 10.0  # the prior's precision of the slope's logarithm and of the intercept


@dataclass(frozen=True, kw_only=True)
class ClickModelParams(BanditParams):
    """The click model's prior, its exploration and its steps."""

    trials: float = 10.0
    """Largest reward: items on a page. Rewards are clicks, clipped to 0..trials."""
    prior: float = 5.0
    """Precision of the prior of W."""
    thompson: float = 1.5
    """Width of a draw from the posterior while exploring, in its deviations."""
    slope: float = 6.0
    """What an item along a user's taste has over one across it, in log-odds, before learning."""
    intercept: float = -4.0
    """Log-odds of a click on an item across a user's taste, before learning."""
    rate: float = 0.2
    """Smallest step, in units of the natural gradient."""
    reach: float = 0.1
    """The farthest that one step moves tastes, as a root mean square over the batch's users, and
    the slope's logarithm."""
    slowdown: float = 300.0
    """The step is 1 / (1 + updates / slowdown) until it is that small."""
    refresh: int = 64
    """Updates between two inversions of the posterior's precision."""
    every: int = 8
    """Of so many batches one counts towards the information."""
    window: int = 400
    """Counted batches over which information is averaged."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self, "thompson", "rate")
        for name in ("trials", "prior", "slope", "reach", "slowdown"):
            check_number(name, getattr(self, name), low=0.0, above=True)
        check_number("intercept", self.intercept)
        for name in ("refresh", "every", "window"):
            check_count(name, getattr(self, name))


class _Judged(NamedTuple):
    """What the model makes of a batch's pages."""

    features: Float64  # (b, F)
    vectors: Float64  # (b, k, A) of what was shown
    trials: float  # of each vector
    taste: Float64  # (b, A)
    slope: float
    gain: Float64  # (b,) how far a step of t across itself moves the logits
    chance: Float64  # (b, k) of a click
    clicks: Float64  # (b,)
    missed: Float64  # (b,) clicks less those expected


class ClickModel(Bandit):
    """The chance of a click on v is logistic in slope * (taste . v) + intercept.

    A user's taste is t / sqrt(1 + |t|^2) with t = [observation, 1] W. Its length stays below 1:
    W tells what users like, slope and intercept, which all users share, how often they click. This
    is retrieval by cosine with a learned temperature, made smooth at t = 0.

    What v is depends on what the recommender knows. Without a catalogue: the direction of its
    action, with `trials` clicks possible. With a catalogue (`items`): the mean vector of the page.
    With a click profile in the observation as well (`items.profile`): every item's own vector, as
    the step of the profile times the number of clicks is the sum of the clicked items' vectors,
    which with the page is all that the likelihood of each item's click needs. At a change of user
    the profile tells nothing, and the page's clicks count as a whole.

    Each replayed batch moves W, slope and intercept by a natural gradient; the posterior's
    precision is the prior's plus the mean information of replayed transitions times how many there
    have been (`observe` counts).
    """

    Params = ClickModelParams
    params: ClickModelParams
    KEPT = ("mean", "covariance", "information", "counted", "seen", "updates")

    def begin(self) -> None:
        """The prior."""
        self._wide = self.observation_dim + 1
        size = self._wide * self.action_dim + 2  # W, the slope's logarithm, the intercept
        self._origin = np.zeros(size)
        self._origin[-2:] = np.log(self.params.slope), self.params.intercept
        self._prior = np.full(size, self.params.prior)
        self._prior[-2:] = SHARED
        self.mean: Float64 = self._origin.copy()
        self.covariance: Float64 = np.diag(1 / self._prior)
        self.information: Float64 = np.zeros((size, size))
        self.counted, self.seen, self.updates = 0.0, 0, 0
        self._profile = None if self.items is None else self.items.profile

    @property
    def weights(self) -> Float64:
        """The mean of W, (F, A)."""
        return self.mean[:-2].reshape(self._wide, self.action_dim)

    def choose(self, observation: Float64, explore: bool) -> Float64:
        """Along each user's taste, or along a draw of it from the posterior."""
        features = with_one(observation)
        taste = features @ self.weights
        if explore and self.params.thompson:
            drawn = draw_tastes(features, self.covariance[:-2, :-2], self.rng)
            taste = taste + self.params.thompson * drawn
        return unit(taste)

    def see(self, transitions: Transitions) -> None:
        """Count them: they are learned from when they are replayed."""
        self.seen += len(transitions.reward)

    def replay(self, batch: Batch) -> Float64:
        """One natural-gradient step on the likelihood of the batch's clicks."""
        pages = self._judge(batch)
        rows = len(pages.missed)
        seen = max(self.seen, rows)  # nobody may have told of them
        early = self.updates < self.params.refresh  # the information changes most
        if early or self.updates % self.params.every == 0:
            self._count(pages)
        self.updates += 1
        if early or self.updates % self.params.refresh == 0:
            self._refresh(seen)
        gradient = self._gradient(batch, pages)
        gradient += self._prior * (rows / seen) * (self._origin - self.mean)
        self._step(gradient, pages.features)
        return pages.missed

    def _judge(self, batch: Batch) -> _Judged:
        features = with_one(batch.observation.astype(np.float64))
        clicks = np.clip(batch.reward.astype(np.float64), 0.0, self.params.trials)
        vectors, trials = self._shown(batch.action)
        tower = features @ self.weights
        length = np.sqrt(1 + np.einsum("na,na->n", tower, tower))
        taste = tower / length[:, None]
        slope = float(np.exp(self.mean[-2]))
        logits = slope * np.einsum("nka,na->nk", vectors, taste) + self.mean[-1]
        chance = 1 / (1 + np.exp(-np.clip(logits, -30, 30)))
        missed = clicks - trials * chance.sum(axis=1)
        gain = slope / length
        return _Judged(features, vectors, trials, taste, slope, gain, chance, clicks, missed)

    def _gradient(self, batch: Batch, pages: _Judged) -> Float64:
        """Gradient of the batch's log likelihood in W, the slope's logarithm and the intercept."""
        score = self._score(batch, pages)
        along = np.einsum("na,na->n", score, pages.taste)
        aside = (score - along[:, None] * pages.taste) * pages.gain[:, None]
        weights = (pages.features.T @ aside).ravel()
        return np.concatenate((weights, [pages.slope * along.sum(), pages.missed.sum()]))

    def _step(self, gradient: Float64, features: Float64) -> None:
        """Move along the natural gradient, but neither tastes nor slope farther than `reach`."""
        p = self.params
        rate = max(p.rate, 1 / (1 + self.updates / p.slowdown))
        step = rate * (self.covariance @ gradient)
        moved = features @ step[:-2].reshape(self._wide, self.action_dim)
        far = np.sqrt(np.einsum("na,na->n", moved, moved).mean())
        self.mean += step * (p.reach / max(far, abs(step[-2]), p.reach))

    def _refresh(self, seen: int) -> None:
        """Invert the posterior's precision."""
        precision = self.information * (seen / self.counted)
        precision[np.diag_indices_from(precision)] += self._prior
        self.covariance = np.asarray(np.linalg.inv(precision), np.float64)

    def _shown(self, action: Float32) -> tuple[Float64, float]:
        """Vectors (b, k, A) that were shown, each with so many trials."""
        if self.items is None:
            return self.directions(action)[:, None, :], self.params.trials
        vectors = page_vectors(self.items, action).astype(np.float64)
        if self._profile is None:
            return vectors.mean(axis=1, keepdims=True), self.params.trials
        return vectors, 1.0

    def _score(self, batch: Batch, pages: _Judged) -> Float64:
        """Sum (b, A) of each page's vectors, weighed by their clicks less their chances."""
        missed, vectors, chance = pages.missed, pages.vectors, pages.chance
        if self._profile is None:
            alone: Float64 = missed[:, None] * vectors[:, 0]
            return alone
        spread = chance * (1 - chance)  # who was clicked is unknown: what is missed falls on
        spread /= spread.sum(axis=1, keepdims=True)  # those of whom the model is least sure
        score: Float64 = missed[:, None] * np.einsum("nk,nka->na", spread, vectors)
        start, stop, memory = self._profile
        before, after = batch.observation[:, start:stop], batch.next_observation[:, start:stop]
        clicked = pages.clicks[:, None] * (after - (1 - memory) * before) / memory
        stays = ~(batch.terminated | batch.truncated)
        expected = np.einsum("nk,nka->na", chance, vectors[:, :, : stop - start])
        score[stays, : stop - start] = (clicked - expected)[stays]
        return score

    def _count(self, pages: _Judged) -> None:
        """Average the information of a batch into what is known so far."""
        rows, items, _ = pages.vectors.shape
        fit: Float64 = np.einsum("nka,na->nk", pages.vectors, pages.taste)
        aside = pages.vectors - fit[:, :, None] * pages.taste[:, None, :]
        aside *= pages.gain[:, None, None]
        x = np.empty((rows, items, len(self.mean)), np.float32)  # each logit's gradient
        x[:, :, :-2] = (pages.features[:, None, :, None] * aside[:, :, None, :]).reshape(
            rows, items, -1
        )
        x[:, :, -2], x[:, :, -1] = pages.slope * fit, 1
        x *= np.sqrt(pages.trials * pages.chance * (1 - pages.chance))[:, :, None]
        each = x.reshape(rows * items, -1)
        keep = 1 - 1 / self.params.window
        self.counted = keep * self.counted + rows
        self.information *= keep
        self.information += each.T @ each

"""A model of clicks: the recommender's own architecture, learned by likelihood and explored by
Thompson sampling."""

from dataclasses import dataclass

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


@dataclass(frozen=True, kw_only=True)
class ClickModelParams(BanditParams):
    """The click model's prior, its exploration and its steps."""

    trials: float = 10.0
    """Largest reward: items on a page. Rewards are clicks, clipped to 0..trials."""
    prior: float = 10.0
    """Precision of the weights' prior."""
    thompson: float = 2.0
    """Width of a draw from the posterior while exploring, in its deviations."""
    intercept: float = -4.0
    """Log-odds of a click before anything is learned."""
    rate: float = 0.02
    """Smallest step, in units of the natural gradient."""
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
        for name in ("trials", "prior", "slowdown"):
            check_number(name, getattr(self, name), low=0.0, above=True)
        check_number("intercept", self.intercept)
        for name in ("refresh", "every", "window"):
            check_count(name, getattr(self, name))


class ClickModel(Bandit):
    """The chance of a click is logistic in [observation, 1] W v + intercept.

    What v is depends on what the recommender knows. Without a catalogue: the direction of its
    action, with `trials` clicks possible. With a catalogue (`items`): the mean vector of the page.
    With a click profile in the observation as well (`items.profile`): every item's own vector, as
    the step of the profile times the number of clicks is the sum of the clicked items' vectors,
    which with the page is all that the likelihood of each item's click needs. At a change of user
    the profile tells nothing, and the page's clicks count as a whole.

    Each replayed batch moves W by a natural gradient; the posterior's precision is the prior's plus
    the mean information of replayed transitions times how many there have been (`observe` counts).
    """

    Params = ClickModelParams
    params: ClickModelParams
    KEPT = ("mean", "covariance", "information", "counted", "seen", "updates")

    def begin(self) -> None:
        """The prior."""
        self._wide = self.observation_dim + 1
        size = self._wide * self.action_dim + 1  # the weights, then the intercept
        self._origin = np.zeros(size)
        self._origin[-1] = self.params.intercept
        self.mean: Float64 = self._origin.copy()
        self.covariance: Float64 = np.eye(size) / self.params.prior
        self.information: Float64 = np.zeros((size, size))
        self.counted, self.seen, self.updates = 0.0, 0, 0
        self._profile = None if self.items is None else self.items.profile

    @property
    def weights(self) -> Float64:
        """The mean of W, (F, A)."""
        return self.mean[:-1].reshape(self._wide, self.action_dim)

    def choose(self, observation: Float64, explore: bool) -> Float64:
        """Along each user's taste, or along a draw of it from the posterior."""
        features = with_one(observation)
        taste = features @ self.weights
        if explore and self.params.thompson:
            drawn = draw_tastes(features, self.covariance[:-1, :-1], self.rng)
            taste = taste + self.params.thompson * drawn
        return unit(taste)

    def see(self, transitions: Transitions) -> None:
        """Count them: they are learned from when they are replayed."""
        self.seen += len(transitions.reward)

    def replay(self, batch: Batch) -> Float64:
        """One natural-gradient step on the likelihood of the batch's clicks."""
        p = self.params
        features = with_one(batch.observation.astype(np.float64))
        clicks = np.clip(batch.reward.astype(np.float64), 0.0, p.trials)
        vectors, trials = self._shown(batch.action)
        logits = np.einsum("nka,na->nk", vectors, features @ self.weights) + self.mean[-1]
        chance = 1 / (1 + np.exp(-np.clip(logits, -30, 30)))
        missed: Float64 = clicks - trials * chance.sum(axis=1)
        score = self._score(batch, clicks, vectors, chance, missed)
        seen = max(self.seen, len(clicks))  # nobody may have told of them
        if self.updates % p.every == 0:
            self._count(features, vectors, trials * chance * (1 - chance))
        self.updates += 1
        if self.updates % p.refresh == 0:
            precision = self.information * (seen / self.counted)
            precision[np.diag_indices_from(precision)] += p.prior
            self.covariance = np.asarray(np.linalg.inv(precision), np.float64)
        gradient = p.prior * (len(clicks) / seen) * (self._origin - self.mean)
        gradient[:-1] += (features.T @ score).ravel()
        gradient[-1] += missed.sum()
        rate = max(p.rate, 1 / (1 + self.updates / p.slowdown))
        self.mean += rate * (self.covariance @ gradient)
        return missed

    def _shown(self, action: Float32) -> tuple[Float64, float]:
        """Vectors (b, k, A) that were shown, each with so many trials."""
        if self.items is None:
            return self.directions(action)[:, None, :], self.params.trials
        vectors = page_vectors(self.items, action).astype(np.float64)
        if self._profile is None:
            return vectors.mean(axis=1, keepdims=True), self.params.trials
        return vectors, 1.0

    def _score(
        self, batch: Batch, clicks: Float64, vectors: Float64, chance: Float64, missed: Float64
    ) -> Float64:
        """Gradient (b, A) of each transition's log likelihood in its user's taste."""
        if self._profile is None:
            alone: Float64 = missed[:, None] * vectors[:, 0]
            return alone
        spread = chance * (1 - chance)  # who was clicked is unknown: what is missed falls on
        spread /= spread.sum(axis=1, keepdims=True)  # those of whom the model is least sure
        score: Float64 = missed[:, None] * np.einsum("nk,nka->na", spread, vectors)
        start, stop, memory = self._profile
        before, after = batch.observation[:, start:stop], batch.next_observation[:, start:stop]
        clicked = clicks[:, None] * (after - (1 - memory) * before) / memory
        stays = ~(batch.terminated | batch.truncated)
        expected = np.einsum("nk,nka->na", chance, vectors[:, :, : stop - start])
        score[stays, : stop - start] = (clicked - expected)[stays]
        return score

    def _count(self, features: Float64, vectors: Float64, weight: Float64) -> None:
        """Average the information of a batch into what is known so far."""
        rows, items, _ = vectors.shape
        x = np.empty((rows, items, len(self.mean)), np.float32)
        x[:, :, -1] = 1
        x[:, :, :-1] = (features[:, None, :, None] * vectors[:, :, None, :]).reshape(
            rows, items, -1
        )
        x *= np.sqrt(weight)[:, :, None]
        each = x.reshape(rows * items, -1)
        keep = 1 - 1 / self.params.window
        self.counted = keep * self.counted + rows
        self.information *= keep
        self.information += each.T @ each

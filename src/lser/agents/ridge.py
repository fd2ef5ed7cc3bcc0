"""The linear bandit: ridge regression of the reward on observation x action."""

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
from lser.types import Batch, Float32, Float64, Transitions


@dataclass(frozen=True, kw_only=True)
class RidgeParams(BanditParams):
    """What the linear bandit fits and how it explores."""

    ridge: float = 10.0
    """Weight of the squared coefficients."""
    noise: float = 0.5
    """Length of the Gaussian noise on the direction while exploring."""
    thompson: float = 0.0
    """Width of a draw from the posterior while exploring, in its deviations."""
    contextual: bool = True
    """Whether it reads the observation; without, it looks for the best constant."""
    pages: bool = False
    """Regress on the mean vector of the page's items in place of the action's direction, where
    the catalogue is known."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self, "ridge", "noise", "thompson")
        if self.ridge == 0:
            raise ValueError(f"ridge must be positive, got {self.ridge}")


class Ridge(Bandit):
    """Fits reward = [observation, 1] W direction on every transition it is told of, exactly.

    It acts along [observation, 1] W. Nothing that is replayed changes it.
    """

    Params = RidgeParams
    params: RidgeParams
    KEPT = ("inverse", "moments", "squares", "seen")

    def begin(self) -> None:
        """Nothing seen: all coefficients 0."""
        self._wide = self.observation_dim + 1 if self.params.contextual else 1
        size = self._wide * self.action_dim
        self.inverse: Float64 = np.eye(size) / self.params.ridge  # of the ridged Gram matrix
        self.moments: Float64 = np.zeros(size)
        self.squares, self.seen = 0.0, 0  # of what the fit missed, one step ahead

    @property
    def weights(self) -> Float64:
        """The coefficients (F, A)."""
        return (self.inverse @ self.moments).reshape(self._wide, self.action_dim)

    def choose(self, observation: Float64, explore: bool) -> Float64:
        """Along the gradient of the fit in the action, with noise while exploring."""
        features, p = self._features(observation), self.params
        taste = features @ self.weights
        if explore and p.thompson:
            covariance = self.inverse * (self.squares / max(self.seen, 1))
            taste = taste + p.thompson * draw_tastes(features, covariance, self.rng)
        way = unit(taste)
        if explore and p.noise:
            way += p.noise * self.rng.standard_normal(way.shape) / np.sqrt(self.action_dim)
        return way

    def see(self, transitions: Transitions) -> None:
        """Refit with the new rows: a step of recursive least squares."""
        rows = self._rows(transitions.observation, transitions.action)
        missed = transitions.reward - rows @ (self.inverse @ self.moments)
        across = rows @ self.inverse
        gain = np.linalg.solve(np.eye(len(rows)) + across @ rows.T, across)
        self.inverse -= across.T @ gain
        self.moments += rows.T @ transitions.reward
        self.squares += float((missed**2).sum())
        self.seen += len(rows)

    def replay(self, batch: Batch) -> Float64:
        """What the fit misses of each reward; it learns nothing from it."""
        missed: Float64 = batch.reward - self._rows(batch.observation, batch.action) @ (
            self.weights.ravel()
        )
        return missed

    def _features(self, observation: Float64) -> Float64:
        return with_one(observation) if self.params.contextual else np.ones((len(observation), 1))

    def _rows(self, observation: Float32, action: Float32) -> Float64:
        if self.params.pages and self.items is not None:
            shown = page_vectors(self.items, action).mean(axis=1).astype(np.float64)
        else:
            shown = self.directions(action)
        features = self._features(observation.astype(np.float64))
        rows: Float64 = (features[:, :, None] * shown[:, None, :]).reshape(len(shown), -1)
        return rows

"""The simplest agents: uniformly random actions, and what was clicked most."""

from dataclasses import dataclass

import numpy as np

from lser.agents.bandit import Bandit, BanditParams, check_numbers, unit
from lser.types import Float64, Transitions


@dataclass(frozen=True, kw_only=True)
class RandomParams(BanditParams):
    """Random actions have nothing to set; a random start changes nothing."""

    warmup: int = 0


class RandomAgent(Bandit):
    """Acts uniformly at random, in evaluations too."""

    Params = RandomParams
    params: RandomParams

    def choose(self, observation: Float64, explore: bool) -> Float64:
        """Uniform in the Box."""
        return self.random_actions(len(observation))


@dataclass(frozen=True, kw_only=True)
class PopularParams(BanditParams):
    """How what was clicked most explores."""

    noise: float = 0.5
    """Length of the Gaussian noise on the direction while exploring."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self, "noise")


class Popular(Bandit):
    """Shows everybody the same: the mean direction of all actions so far, weighted by reward."""

    Params = PopularParams
    params: PopularParams
    KEPT = ("total",)

    def begin(self) -> None:
        """Nothing was rewarded yet."""
        self.total: Float64 = np.zeros(self.action_dim)

    def choose(self, observation: Float64, explore: bool) -> Float64:
        """The one direction, with noise while exploring."""
        way = np.repeat(unit(self.total[None]), len(observation), axis=0)
        if explore:
            noise = self.rng.standard_normal(way.shape) / np.sqrt(self.action_dim)
            way += self.params.noise * noise
        return way

    def see(self, transitions: Transitions) -> None:
        """Add the rewarded directions."""
        self.total += transitions.reward @ self.directions(transitions.action)

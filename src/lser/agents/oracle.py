"""The oracle: it shows every user the best page that is known, by what no recommender sees."""

from dataclasses import dataclass

from lser.agents.bandit import Bandit, BanditParams
from lser.types import Float64


@dataclass(frozen=True, kw_only=True)
class OracleParams(BanditParams):
    """An oracle has nothing to set and needs no random start."""

    warmup: int = 0


class Oracle(Bandit):
    """Acts as the end of every observation says, which `SightedEnv` appends; learns nothing."""

    Params = OracleParams
    params: OracleParams

    def choose(self, observation: Float64, explore: bool) -> Float64:
        """The action that the observation ends in."""
        return (observation[:, -self.action_dim :] - self._middle) / self._range

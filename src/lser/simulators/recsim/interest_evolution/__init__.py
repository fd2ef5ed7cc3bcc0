"""RecSim's interest evolution: its parameters; `simulator` has the dynamics."""

from lser.simulators.recsim.interest_evolution.params import Catalogue, Params

__all__ = ["Catalogue", "Params"]

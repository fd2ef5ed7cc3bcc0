"""RecSim's long-term satisfaction: its parameters; `simulator` has the dynamics."""

from lser.simulators.recsim.long_term_satisfaction.params import Params

__all__ = ["Params"]

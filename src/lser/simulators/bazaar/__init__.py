"""Bazaar, a marketplace of our own: its parameters; `simulator` has the dynamics."""

from lser.simulators.bazaar.params import Params

__all__ = ["Params"]

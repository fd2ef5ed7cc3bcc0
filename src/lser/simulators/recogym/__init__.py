"""RecoGym: its parameters and presets; `simulator` has the dynamics."""

from lser.simulators.recogym.params import PRESETS, Params

__all__ = ["PRESETS", "Params"]

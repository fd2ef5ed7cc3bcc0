"""The names of `lser.files`, from where memories import them until they say so themselves."""

from lser.files import load, rng_from_state, rng_state, save

__all__ = ["load", "rng_from_state", "rng_state", "save"]

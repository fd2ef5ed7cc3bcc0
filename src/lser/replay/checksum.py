"""The names of `lser.files`, from where tests import them until they say so themselves."""

from lser.files import LENGTH, Checksum

__all__ = ["LENGTH", "Checksum"]

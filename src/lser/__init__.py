"""Experience replay for online recommendation."""

from lser.simulators import register as _register

__version__ = "0.1.0"

_register()

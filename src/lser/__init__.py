"""Experience replay for online recommendation.

Importing `lser` registers the simulators with Gymnasium; everything else is loaded when it is
first used, so that the import stays light. The public names stand in `__init__.pyi`.
"""

import lazy_loader

from lser.simulators import register

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

register()

"""Replay memories: NumPy and Numba only, one protocol, one file format.

`protocol` is what a memory promises, `memory` what ours share, `memories` one file each, and
`index` the buckets behind LSER. Start with `index/reference.py`: LSER in plain Python.

Names are loaded when they are first used, so that settings can be read without Numba. They stand
in `__init__.pyi`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

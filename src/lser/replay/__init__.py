"""Replay memories: NumPy and Numba only, one protocol, one file format.

Start with `index/reference.py`, LSER in plain Python, and `memories/prioritized.py`, a whole memory
on one page. From the bottom up:

- `rows` (the layout of a packed transition, and the kernels that copy them), `store` (slots and
  ids over rows, in memory or by `mapped` in a file), `sum_tree`, `sessions`: structures without a
  rule. `generator` lets kernels draw from NumPy's generators.
- `memory` is what our memories share: a store, a rule, one lock, one file format. `commit` has what
  finishes or takes back a call that was broken off, `forks` keeps the lock whole in child
  processes, `newest` fills the last places of a batch.
- `memories` is one file each, and `index` the buckets behind LSER.
- `protocol` is what any memory promises, `loading` reads one back, `inspect` says whether codes
  would explain anything in somebody's data.

Names are loaded when they are first used, so that settings can be read without Numba. They stand
in `__init__.pyi`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Replay memories: NumPy and Numba only, one protocol, one file format.

`protocol` is what a memory promises, `memory` what ours share, `memories` one file each, and
`index` the buckets behind LSER. Start with `index/reference.py`: LSER in plain Python.
"""

from pathlib import Path

from lser.catalogue import MEMORIES
from lser.files import State, load
from lser.replay.index.encoders import E2LSH, ConstantCode, Encoder, RandomCode, SimHash
from lser.replay.memories.attentive import AttentiveReplay
from lser.replay.memories.dynamic import DynamicReplay
from lser.replay.memories.hindsight import HindsightReplay
from lser.replay.memories.locality import LocalityReplay
from lser.replay.memories.prioritized import PrioritizedReplay
from lser.replay.memories.selective import SelectiveReplay
from lser.replay.memories.uniform import UniformReplay
from lser.replay.memory import Memory
from lser.replay.protocol import Replay
from lser.replay.store import Store

__all__ = [
    "E2LSH",
    "AttentiveReplay",
    "ConstantCode",
    "DynamicReplay",
    "Encoder",
    "HindsightReplay",
    "LocalityReplay",
    "Memory",
    "PrioritizedReplay",
    "RandomCode",
    "Replay",
    "SelectiveReplay",
    "SimHash",
    "State",
    "Store",
    "UniformReplay",
    "load_replay",
]


def load_replay(
    path: str | Path,
    *,
    rows_path: str | Path | None = None,
    kind: type[Memory] | None = None,
) -> Memory:
    """Read back a memory that `save` wrote, of whichever kind the catalogue has, or of `kind`.

    A memory with ``storage="memmap"`` puts its rows into a file at `rows_path`, a new one or the
    one that a killed process has left; no path is ever taken from the file itself, nor the name of
    a module.
    """
    name, state = load(path, mapped=() if rows_path is None else ("rows",))
    if kind is None:
        if name not in MEMORIES:
            known = ", ".join(MEMORIES)
            raise ValueError(
                f"{path} holds a {name!r} memory, expected one of {known}; for a class of your "
                "own pass kind=YourClass"
            )
        kind = MEMORIES[name].load()
    elif name != kind.KIND:
        raise ValueError(f"{path} holds a {name!r} memory, not a {kind.KIND!r} one")
    return rebuild(path, kind, state, rows_path)


def rebuild(
    path: str | Path, kind: type[Memory], state: State, rows_path: str | Path | None
) -> Memory:
    """The memory of a state that was read from `path`; ValueError says what is wrong with it."""
    memmap = state.part("store").config.get("storage") == "memmap"
    if memmap and rows_path is None:
        raise ValueError(f"{path} holds a memmap: rows_path must name a file for its rows")
    if rows_path is not None and not memmap:
        raise ValueError(f"rows_path={str(rows_path)!r}: the memory in {path} is not a memmap")
    try:
        return kind.from_state(state, rows_path=rows_path)
    except (KeyError, TypeError, IndexError, AttributeError, ArithmeticError) as error:
        raise ValueError(
            f"{path} does not hold a complete {kind.KIND!r} memory: {error!r}"
        ) from None

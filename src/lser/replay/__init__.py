"""Replay memories: NumPy and Numba only, one protocol, one file format."""

from pathlib import Path

from lser.replay.attentive import AttentiveReplay
from lser.replay.base import Replay, State
from lser.replay.controls import ConstantCode, RandomCode
from lser.replay.dynamic import DynamicReplay
from lser.replay.hashing import E2LSH, Encoder, SimHash
from lser.replay.hindsight import HindsightReplay
from lser.replay.locality import LocalityReplay
from lser.replay.persistence import load
from lser.replay.prioritized import PrioritizedReplay
from lser.replay.selective import SelectiveReplay
from lser.replay.store import Store
from lser.replay.uniform import UniformReplay

# kind in a saved file -> the class that reads it; a new memory adds its line here
KINDS: dict[str, type[Replay]] = {
    LocalityReplay.KIND: LocalityReplay,
    UniformReplay.KIND: UniformReplay,
    PrioritizedReplay.KIND: PrioritizedReplay,
    DynamicReplay.KIND: DynamicReplay,
    AttentiveReplay.KIND: AttentiveReplay,
    SelectiveReplay.KIND: SelectiveReplay,
    HindsightReplay.KIND: HindsightReplay,
}

__all__ = [
    "E2LSH",
    "KINDS",
    "AttentiveReplay",
    "ConstantCode",
    "DynamicReplay",
    "Encoder",
    "HindsightReplay",
    "LocalityReplay",
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


def load_replay(path: str | Path, *, rows_path: str | Path | None = None) -> Replay:
    """Read back a memory that `save` wrote, of whichever kind.

    A memory with ``storage="memmap"`` puts its rows into a new file: `rows_path`, or the path it
    was made with if nothing is there any more.
    """
    kind, state = load(path)
    if kind not in KINDS:
        raise ValueError(f"{path} holds a {kind!r} memory, expected one of {', '.join(KINDS)}")
    if rows_path is not None:
        store = state.part("store").config
        if store.get("storage") != "memmap":
            raise ValueError(f"rows_path={str(rows_path)!r}: the memory in {path} is not a memmap")
        store["path"] = str(rows_path)
    try:
        return KINDS[kind].from_state(state)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} does not hold a complete {kind!r} memory: {error!r}") from None

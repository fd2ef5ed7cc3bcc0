"""Reading a memory back from the file that `save` wrote."""

from pathlib import Path

from lser.catalogue import MEMORIES
from lser.files import State as State
from lser.files import load
from lser.replay.memory import Memory

__all__ = ["State", "load_replay", "rebuild"]


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

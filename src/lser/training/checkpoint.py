"""Checkpoints: nested state as one checksummed file, written atomically, the last two kept."""

import logging
from pathlib import Path
from typing import Any

from lser import files

KIND = "checkpoint"
KEPT = 2
log = logging.getLogger("lser")


def save(folder: Path, number: int, tree: dict[str, Any]) -> Path:
    """Write `tree` (nested dicts and lists of arrays, tensors and JSON values) as one file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number:012d}.lser"
    arrays: dict[str, Any] = {}
    state = files.State({"tree": files.flatten(tree, arrays)}, arrays)
    files.save(path, KIND, state, sync=True)
    for old in sorted(folder.glob("*.lser"))[:-KEPT]:
        old.unlink()
    return path


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint back; a damaged or foreign file is a ValueError."""
    kind, state = files.load(path)
    if kind != KIND:
        raise ValueError(f"{path} holds a {kind!r}, not a checkpoint")
    tree = files.restore(state.config["tree"], state.arrays)
    assert isinstance(tree, dict)
    return tree


def load_latest(folder: Path) -> dict[str, Any] | None:
    """The newest checkpoint that is whole; damaged ones are passed over with a warning."""
    for path in sorted(folder.glob("*.lser"), reverse=True):
        try:
            return load(path)
        except (ValueError, OSError) as error:
            log.warning("checkpoint %s cannot be used (%s); trying the one before", path, error)
    return None

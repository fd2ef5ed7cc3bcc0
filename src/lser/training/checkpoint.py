"""Checkpoints: nested state as one checksummed file, written atomically, the last two kept."""

import logging
from pathlib import Path
from typing import Any

from lser import files

KIND = "checkpoint"
KEPT = 2
log = logging.getLogger("lser")


class Checkpoints:
    """The checkpoints of one run; it removes only what it knows to be whole and has replaced."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._whole: list[Path] = []  # oldest first: what was written or read here
        files.sweep(folder)

    def save(self, number: int, tree: dict[str, Any]) -> Path:
        """Write a checkpoint, and remove the oldest of those known to be whole."""
        path = save(self.folder, number, tree)
        self._whole = [*(old for old in self._whole if old != path), path]
        while len(self._whole) > KEPT:
            self._whole.pop(0).unlink(missing_ok=True)
        return path

    def latest(self) -> dict[str, Any] | None:
        """The newest whole checkpoint, None if there is none; ValueError where none can be read."""
        found = latest(self.folder)
        if found is None:
            return None
        path, tree = found
        self._whole = [path]
        return tree

    def clear(self) -> None:
        """Remove all of them."""
        for path in self.folder.glob("*.lser"):
            path.unlink(missing_ok=True)
        self._whole.clear()
        files.sweep(self.folder)


def save(folder: Path, number: int, tree: dict[str, Any]) -> Path:
    """Write `tree` (nested dicts and lists of arrays, tensors and JSON values) as one file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number:012d}.lser"
    arrays: dict[str, Any] = {}
    state = files.State({"tree": files.flatten(tree, arrays)}, arrays)
    files.save(path, KIND, state, sync=True)
    return path


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint back; a damaged or foreign file is a ValueError."""
    kind, state = files.load(path)
    if kind != KIND:
        raise ValueError(f"{path} holds a {kind!r}, not a checkpoint")
    try:
        tree = files.restore(state.config["tree"], state.arrays)
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} holds no whole checkpoint: {error!r}") from None
    if not isinstance(tree, dict):
        raise ValueError(f"{path} holds no whole checkpoint: its tree has no names")
    return tree


def latest(folder: Path) -> tuple[Path, dict[str, Any]] | None:
    """The newest checkpoint that is whole, with its path; None where there are none at all.

    Damaged ones are passed over with a warning. A ValueError says that all are damaged, or that
    one is of a format that this release cannot read: whoever starts anew then should know it.
    """
    paths = sorted(folder.glob("*.lser"), reverse=True)
    for path in paths:
        try:
            return path, load(path)
        except files.UnknownVersion:
            raise
        except (ValueError, OSError) as error:
            log.warning("checkpoint %s cannot be used (%s); trying the one before", path, error)
    if paths:
        raise ValueError(f"none of the {len(paths)} checkpoints in {folder} can be read")
    return None


def load_latest(folder: Path) -> dict[str, Any] | None:
    """What `latest` finds, without its path."""
    found = latest(folder)
    return None if found is None else found[1]

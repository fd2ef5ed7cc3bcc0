"""Checkpoints: nested state as one checksummed file, written atomically, the last two kept."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lser.replay import persistence
from lser.replay.base import State

KIND = "checkpoint"
KEPT = 2
log = logging.getLogger("lser")


def save(folder: Path, number: int, tree: dict[str, Any]) -> Path:
    """Write `tree` (nested dicts and lists of arrays, tensors and JSON values) as one file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number:012d}.lser"
    arrays: dict[str, Any] = {}
    persistence.save(path, KIND, State({"tree": _flatten(tree, "", arrays)}, arrays), sync=True)
    for old in sorted(folder.glob("*.lser"))[:-KEPT]:
        old.unlink()
    return path


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint back; a damaged or foreign file is a ValueError."""
    kind, state = persistence.load(path)
    if kind != KIND:
        raise ValueError(f"{path} holds a {kind!r}, not a checkpoint")
    tree = _restore(state.config["tree"], state.arrays)
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


def _flatten(node: Any, name: str, arrays: dict[str, Any]) -> Any:
    """The JSON side of `node`; arrays and tensors go to `arrays` under their path."""
    match node:
        case dict():
            pairs = [[key, _flatten(value, f"{name}/{key}", arrays)] for key, value in node.items()]
            return {"pairs": pairs}  # pairs keep keys that are not strings (torch optimisers)
        case list() | tuple():
            return {"list": [_flatten(v, f"{name}/{i}", arrays) for i, v in enumerate(node)]}
        case torch.Tensor():
            arrays[name] = node.detach().cpu().numpy()
            return {"tensor": name}
        case np.ndarray():
            arrays[name] = node
            return {"array": name}
        case np.generic():
            return {"value": node.item()}
        case None | bool() | int() | float() | str():
            return {"value": node}
    raise TypeError(f"{name} cannot be saved: {type(node).__name__}")


def _restore(node: Any, arrays: dict[str, Any]) -> Any:
    match node:
        case {"pairs": pairs}:
            return {key: _restore(value, arrays) for key, value in pairs}
        case {"list": items}:
            return [_restore(item, arrays) for item in items]
        case {"tensor": name}:
            return torch.from_numpy(arrays[name].copy())
        case {"array": name}:
            return arrays[name]
        case {"value": value}:
            return value
    raise ValueError(f"unknown node {node!r}")

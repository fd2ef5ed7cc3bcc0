"""Where VirtualTaobao's released weights are for tests: the variable, else the shared folder."""

import os
from pathlib import Path
from typing import Any

from lser.simulators.virtual_taobao.weights import VARIABLE

SHARED = Path(os.environ.get("LSER_SHARED", Path(__file__).resolve().parents[3] / "shared"))


def released_folder() -> Path | None:
    """The folder that must hold the released weights; None where no reference data is at all."""
    folder = Path(os.environ.get(VARIABLE) or SHARED / "virtualtaobao")
    return folder if folder.is_dir() or SHARED.is_dir() else None


def arguments(name: str) -> dict[str, Any]:
    """What `gym.make(name)` needs here: VirtualTaobao has generated weights at worst."""
    if name != "lser/VirtualTaobao-v0":
        return {}
    folder = released_folder()
    return {"generated": True} if folder is None else {"weights": folder}

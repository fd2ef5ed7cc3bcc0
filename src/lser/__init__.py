"""Experience replay for online recommendation.

Importing `lser` registers the simulators with Gymnasium; everything else is loaded when it is
first used, so that the import stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from lser.simulators import register as _register

if TYPE_CHECKING:
    from lser.agents import DDPG, SAC, TD3
    from lser.experiments.config import Experiment
    from lser.online import Recommender
    from lser.replay import (
        E2LSH,
        AttentiveReplay,
        ConstantCode,
        DynamicReplay,
        HindsightReplay,
        LocalityReplay,
        PrioritizedReplay,
        RandomCode,
        Replay,
        SelectiveReplay,
        SimHash,
        UniformReplay,
        load_replay,
    )
    from lser.training import evaluate, train
    from lser.types import Batch, Transitions

__version__ = "0.1.0"

_WHERE = {
    "lser.agents": ("DDPG", "SAC", "TD3"),
    "lser.experiments.config": ("Experiment",),
    "lser.online": ("Recommender",),
    "lser.replay": (
        "AttentiveReplay",
        "ConstantCode",
        "DynamicReplay",
        "E2LSH",
        "HindsightReplay",
        "LocalityReplay",
        "PrioritizedReplay",
        "RandomCode",
        "Replay",
        "SelectiveReplay",
        "SimHash",
        "UniformReplay",
        "load_replay",
    ),
    "lser.training": ("evaluate", "train"),
    "lser.types": ("Batch", "Transitions"),
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}

__all__ = [
    "DDPG",
    "E2LSH",
    "SAC",
    "TD3",
    "AttentiveReplay",
    "Batch",
    "ConstantCode",
    "DynamicReplay",
    "Experiment",
    "HindsightReplay",
    "LocalityReplay",
    "PrioritizedReplay",
    "RandomCode",
    "Recommender",
    "Replay",
    "SelectiveReplay",
    "SimHash",
    "Transitions",
    "UniformReplay",
    "evaluate",
    "load_replay",
    "train",
]

_register()


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'lser' has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

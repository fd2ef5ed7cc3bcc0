"""One small file of everything that is saved: every memory, an agent, a checkpoint, a record.

``python -m drill.samples FOLDER`` writes them; those of each format are kept in tests/golden/files.
"""

import contextlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import lser
from lser.catalogue import MEMORIES
from lser.experiments.owner import OWNER
from lser.experiments.presets import preset
from lser.experiments.run import Run, run
from lser.testing import subject
from lser.testing.traffic import blocks_of


def memories(folder: Path) -> list[Path]:
    """A used memory of every entry of the catalogue, saved."""
    paths = []
    for name in MEMORIES.own:
        memory = subject(name).make(40)
        use(memory, 8)
        paths.append(folder / f"{name}.lser")
        memory.save(paths[-1])
    return paths


def use(memory: Any, count: int, seed: int = 1) -> None:
    """Add, draw and report."""
    rng = np.random.default_rng(seed)
    for block in blocks_of(rng, count):
        memory.extend(*block, rng.integers(0, 5, 8))
        batch = memory.sample(5, block[0][0])
        memory.update(batch.ids, rng.normal(size=5))


def experiment(**changes: Any) -> Any:
    """A run of a second or so."""
    sizes = {"sessions": 40, "evaluate_every": 20, "evaluate_sessions": 5, "final_sessions": 10}
    base = preset("bazaar", "lser", "ddpg", scale="quick")
    agent = replace(base.agent, hidden=(8, 8))
    small = {"users": 2, "batch_size": 8, "capacity": 100, "agent": agent}
    return replace(base, **{**small, **sizes, **changes})


def agent(folder: Path) -> Path:
    """A saved agent."""
    path = folder / "agent.lser"
    lser.DDPG(4, np.full(2, -1.0), np.full(2, 1.0), hidden=(8, 8)).save(path)
    return path


class _Enough(Exception):
    pass


def checkpoint(folder: Path) -> Path:
    """A checkpoint of a run under way."""
    under_way = Run(experiment(), folder / "half")

    def stop(status: Any) -> None:
        if status.step.sessions >= 10:
            raise _Enough

    with contextlib.suppress(_Enough):
        under_way.go(stop)
    return under_way.checkpoint()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    memories(folder)
    agent(folder)
    checkpoint(folder).rename(folder / "checkpoint.lser")
    run(experiment(), folder / "record")
    (folder / "record" / OWNER).unlink()
    for path in sorted((folder / "half").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (folder / "half").rmdir()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Memories that go wrong on purpose, named `faults:Class` in the experiments of tests."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from lser.params import MemoryParams
from lser.replay import Memory


@dataclass(frozen=True, kw_only=True)
class RaisesParams(MemoryParams):
    """Where to note what happened."""

    mark: str = ""


@dataclass(frozen=True, kw_only=True)
class DiesParams(MemoryParams):
    """Where to note what happened, and how often to die."""

    mark: str = ""
    times: int = 1


class Raises(Memory):
    """An error of the run's own."""

    KIND = "faults-raises"
    Params = RaisesParams

    def draw(self, size, query):
        with Path(self.params.mark).open("a") as file:
            file.write("x")
        raise RuntimeError("this memory is meant to fail")


class Dies(Memory):
    """The worker is killed the first `times` times that something is drawn."""

    KIND = "faults-dies"
    Params = DiesParams

    def draw(self, size, query):
        mark = Path(self.params.mark)
        if not mark.exists() or mark.stat().st_size < self.params.times:
            with mark.open("a") as file:
                file.write("x")
            os.kill(os.getpid(), signal.SIGKILL)
        return self.rng.integers(len(self), size=size), None

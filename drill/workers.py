"""What is killed: processes that save, train or run a study, forked from one that has it loaded."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, Self

import numpy as np

from drill import samples
from lser.cli.study import run_jobs
from lser.experiments.run import Interrupted, run
from lser.experiments.study import Processes, job_for
from lser.replay import UniformReplay


def save(path: str) -> int:
    """Save a memory over and over, all its rewards the number of the save."""
    memory = UniformReplay(20_000, 8, 2)
    rows, number = np.zeros((20_000, 8), np.float32), 0
    ends = np.zeros(20_000, np.bool_)
    while True:
        reward = np.full(20_000, number, np.float32)
        memory.extend(rows, rows[:, :2], reward, rows, ends, ends)
        memory.save(path)
        print(number, flush=True)
        number += 1


def train(folder: str, changes: str) -> int:
    """Run an experiment, with checkpoints all the time."""
    experiment = samples.experiment(**json.loads(changes))
    run(experiment, Path(folder), checkpoint_seconds=0.05)
    return 0


def study(out: str, changes: str) -> int:
    """Run two experiments side by side."""
    chosen = [samples.experiment(seed=s, study="drill", **json.loads(changes)) for s in (0, 1)]
    try:
        return run_jobs([job_for(each, Path(out), "") for each in chosen], Processes(2))
    except (KeyboardInterrupt, Interrupted):
        return 130


class Worker:
    """A process of its own that does one of the above; its exit code is what that returns, or 1."""

    def __init__(self, work: Callable[..., int], *arguments: str) -> None:
        read, write = os.pipe()
        self.pid, self._code = os.fork(), -1000
        if self.pid == 0:
            _be(work, arguments, write)
        os.close(write)
        self.stdout = os.fdopen(read)

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._ended(os.WNOHANG)

    def wait(self) -> int:
        """The exit code, when it has ended."""
        return self._ended(0) or 0

    def send_signal(self, number: int) -> None:
        """Send a signal, if it is still there."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def _ended(self, options: int) -> int | None:
        if self._code == -1000:
            pid, status = os.waitpid(self.pid, options)
            if pid == 0:
                return None
            self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.wait()
        self.stdout.close()


def _be(work: Callable[..., int], arguments: tuple[str, ...], output: int) -> NoReturn:
    code = 1
    try:
        os.dup2(output, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        code = work(*arguments)
    finally:
        os._exit(code)

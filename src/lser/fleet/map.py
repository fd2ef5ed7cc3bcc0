"""A study's runs as fleets: compatible runs together, a few processes that share a device."""

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, inf
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from lser.experiments.study import Done, Job, finished, one_thread


@dataclass(frozen=True)
class Fleets:
    """A map over processes, each with many runs whose learners are stacked on `device`."""

    device: str = "cuda"
    size: int = 64
    """Runs side by side in a process, at most."""
    processes: int = 4
    deadline_seconds: float = inf
    """When this has passed, unfinished runs are stopped, without checkpoints."""

    def __post_init__(self) -> None:
        for name in ("size", "processes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not self.deadline_seconds > 0:
            raise ValueError(f"deadline_seconds must be positive, got {self.deadline_seconds}")

    def run(self, jobs: Sequence[Job], *, started: Callable[[Job], None]) -> Iterator[Done]:
        """Keep `processes` fleets going; a job that ends without a complete record is not ok."""
        deadline = time.time() + self.deadline_seconds
        context = multiprocessing.get_context("spawn")
        queue = self.fleets(jobs)
        running: dict[int, tuple[SpawnProcess, list[Job]]] = {}
        try:
            while queue or running:
                while queue and len(running) < self.processes:
                    fleet = queue.pop(0)
                    process = context.Process(target=sail, args=(fleet, self.device, deadline))
                    with one_thread():
                        process.start()
                    running[process.sentinel] = (process, fleet)
                    for job in fleet:
                        started(job)
                for sentinel in wait(list(running), timeout=0.5):
                    assert isinstance(sentinel, int)
                    process, fleet = running.pop(sentinel)
                    process.join()
                    for job in fleet:
                        yield Done(job, finished(job))
        finally:
            for process, _ in running.values():
                process.terminate()
            for process, _ in running.values():
                process.join()

    def fleets(self, jobs: Sequence[Job]) -> list[list[Job]]:
        """The jobs split into fleets, if possible as many as processes."""
        from lser.fleet.run import groups

        together = groups(jobs)
        for most in range(ceil(len(jobs) / self.processes), self.size):
            if sum(ceil(len(group) / most) for group in together) <= self.processes:
                break
        else:
            most = self.size
        fleets = []
        for group in together:
            count = ceil(len(group) / most)
            # dealt like cards: each fleet gets its share of long runs and of costly memories
            fleets += [group[place::count] for place in range(count)]
        return fleets


def sail(jobs: Sequence[Job], device: str, deadline: float) -> None:
    """Carry out the jobs of one fleet in this process, until `deadline` (of `time.time`)."""
    import torch  # here: the parent plans and watches without it

    from lser.experiments.experiment import from_json
    from lser.experiments.progress import ProgressFile
    from lser.experiments.run import Run, stop_flag
    from lser.fleet.run import Fleet

    torch.set_num_threads(1)
    runs = [
        Run(from_json(dict(job.experiment)), Path(job.folder), command=job.command) for job in jobs
    ]
    watchers = [ProgressFile(Path(job.folder), every=5.0) for job in jobs]
    fleet = Fleet(runs, device=device, watchers=watchers)
    with stop_flag() as stop:
        fleet.go(lambda: stop() or time.time() > deadline)

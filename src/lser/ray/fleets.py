"""Fleets as tasks of a Ray cluster: each takes its part of a GPU and the cores of its crews."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from lser.experiments.ready import check_device
from lser.experiments.study import Done, Job
from lser.fleet.map import Fleets
from lser.ray.engine import connected
from lser.ray.map import Demand, Tasks
from lser.ray.node import Stop


@dataclass(frozen=True)
class RayFleets:
    """A map over fleets on a Ray cluster, several of them side by side."""

    address: str = ""
    """Where the cluster is, as ``ray.init`` takes it; by default this machine's, or a new one."""
    gpus: float = 1.0
    """The part of a GPU, or the GPUs, that Ray sets aside for each fleet."""
    device: str = "cuda"
    size: int = 128
    """Runs of one fleet at most."""
    workers: int = 0
    """Processes for the users and memories of a fleet; 0: what the GPUs leave to each."""
    deadline_seconds: float = inf
    """When this has passed, unfinished runs write checkpoints and stop."""
    checkpoint_seconds: float = 600.0
    """Seconds between checkpoints, each of which is sent back."""
    retries: int = 3
    """How often a fleet may lose its worker without a new checkpoint in between."""

    def __post_init__(self) -> None:
        if not 0 <= self.gpus < inf:
            raise ValueError(f"gpus must be a number of GPUs or a part of one, got {self.gpus}")
        if self.retries < 0:
            raise ValueError(f"retries must not be negative, got {self.retries}")
        self._plan()

    def _plan(self) -> Fleets:
        """The same without a cluster: it checks the numbers, and knows which runs fit together."""
        return Fleets(
            self.device, self.size, self.workers, self.deadline_seconds, self.checkpoint_seconds
        )

    def run(self, jobs: Sequence[Job], *, started: Callable[[Job], None]) -> Iterator[Done]:
        """Run the fleets; a job that ends without a complete record is not ok."""
        fleets = self._plan().fleets(jobs)
        with connected(self.address) as ray:
            crews = self.workers or crews_beside(self.gpus, ray.nodes())
            deadline = time.time() + self.deadline_seconds
            work = FleetWork(self.device, crews, deadline, self.checkpoint_seconds)
            demand = Demand({"CPU": crews + 1.0, "GPU": self.gpus})
            yield from Tasks(ray, work, demand, self.retries).run(fleets, started)


@dataclass(frozen=True)
class FleetWork:
    """The work of a task with one fleet."""

    device: str
    workers: int
    deadline: float
    checkpoint_seconds: float

    def __call__(self, jobs: Sequence[Job], stop: Stop) -> None:
        """Run the fleet, with this process as its learner."""
        import torch

        from lser.fleet.run import Fleet

        check_device(self.device)
        torch.set_num_threads(1)
        fleet = Fleet(
            jobs,
            device=self.device,
            workers=self.workers,
            checkpoint_seconds=self.checkpoint_seconds,
        )
        fleet.go(lambda: stop() or time.time() > self.deadline)


def crews_beside(gpus: float, nodes: Sequence[dict[str, Any]]) -> int:
    """Processes for a fleet's crews: the cores of a node shared out by its GPUs, less one."""
    shares = []
    for node in nodes:
        has = node.get("Resources", {})
        if node.get("Alive") and has.get("GPU", 0.0) >= gpus and has.get("CPU", 0.0) >= 2:
            parts = max(1, int(has.get("GPU", 0.0) / gpus)) if gpus else 1
            shares.append(int(has["CPU"] / parts) - 1)
    return max(1, min(shares, default=1))

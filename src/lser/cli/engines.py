"""Where the runs of a study or comparison go: processes, fleets, or a Ray cluster."""

from dataclasses import dataclass
from math import inf
from typing import Literal

from lser.experiments.ready import check_device
from lser.experiments.study import Map, Processes

Engine = Literal["processes", "fleet", "ray"]


@dataclass(frozen=True)
class Place:
    """An engine and what it is told."""

    engine: Engine = "processes"
    workers: int = 0
    device: str = "cuda"
    fleet_size: int = 128
    deadline: float = inf
    address: str = ""
    gpus: float = 0.0

    def __post_init__(self) -> None:
        if self.engine != "ray" and (self.address or self.gpus):
            given = "--address" if self.address else "--gpus"
            raise ValueError(f"{given} is for --engine ray, got --engine {self.engine}")

    @property
    def stacks(self) -> bool:
        """Whether learners are stacked into fleets."""
        return self.engine == "fleet" or self.gpus > 0

    def map(self) -> Map:
        """The map over runs."""
        if self.engine == "processes":
            return processes(self.workers)
        if self.engine == "fleet":
            from lser.fleet.map import Fleets

            check_device(self.device)
            return Fleets(self.device, self.fleet_size, self.workers, self.deadline)
        from lser.ray import RayFleets, RayRuns
        from lser.ray.engine import the_ray

        the_ray()
        if not self.gpus:
            return RayRuns(self.address, self.workers)
        sizes = (self.fleet_size, self.workers, self.deadline)
        return RayFleets(self.address, self.gpus, self.device, *sizes)


def processes(workers: int) -> Processes:
    """As many processes, or as many as cores for 0."""
    return Processes(workers) if workers > 0 else Processes()

"""Where the runs of a study or comparison go: processes, fleets, or a Ray cluster."""

from dataclasses import dataclass
from math import inf
from typing import Literal

from lser.checks import check_count, check_number
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
        check_count("--workers", self.workers, low=0)
        check_count("--fleet-size", self.fleet_size)
        check_number("--gpus", self.gpus, low=0.0)
        if not self.deadline > 0:
            raise ValueError(f"--deadline must be more than 0 seconds, got {self.deadline}")

    @property
    def stacks(self) -> bool:
        """Whether learners are stacked into fleets."""
        return self.engine == "fleet" or self.gpus > 0

    def map(self) -> Map:
        """The map over runs."""
        if self.engine == "processes":
            return self.processes()
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

    def processes(self) -> Processes:
        """The workers as processes of this machine, as many as cores for 0."""
        return Processes(self.workers) if self.workers else Processes()

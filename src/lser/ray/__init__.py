"""Past one machine: studies, collectors and memories on a Ray cluster; needs the extra `ray`."""

from lser.ray.fleets import RayFleets
from lser.ray.map import RayRuns

__all__ = ["RayFleets", "RayRuns"]

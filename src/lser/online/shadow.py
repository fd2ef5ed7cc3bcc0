"""Shadow checks: a candidate policy on logged observations, before anybody is shown its pages."""

from typing import NamedTuple

import numpy as np

from lser.online.nearest import Nearest
from lser.online.policies import Directed, Policy
from lser.types import Float32

MOST_SATURATED = 0.95  # share of an action's components at a bound
LEAST_SPREAD = 1e-6  # of unit directions over observations


class Verdict(NamedTuple):
    """What the checks found; `problems` is empty where the candidate is sound."""

    problems: list[str]
    distance: float  # mean angle to the directions of the policy before, in right angles
    overlap: float  # mean share of the page that both would show
    spread: float  # mean deviation of unit directions over observations


def inspect(
    candidate: Policy,
    before: Policy | None,
    observations: Float32,
    nearest: Nearest,
    k: int,
    *,
    values: tuple[float, float] | None = None,
) -> Verdict:
    """Score a candidate on observations (n, O); `values` are its mean value and its bound."""
    problems = []
    if values is not None and not abs(values[0]) <= values[1] * 1.05:
        problems.append(f"mean value {values[0]:.4g} is outside its bound {values[1]:.4g}")
    directions = _directions(candidate, observations)
    if directions is None:
        return Verdict(problems, 0.0, 1.0, 0.0)
    if not np.isfinite(directions).all():
        problems.append("directions are not finite")
        return Verdict(problems, np.nan, np.nan, np.nan)
    if candidate.kind == "agent":
        saturated = float((np.abs(directions) > 0.99).mean())
        if saturated > MOST_SATURATED:
            problems.append(f"{saturated:.0%} of the action's components are at a bound")
    units = _units(directions)
    if units is None:
        problems.append("directions are zero")
        return Verdict(problems, np.nan, np.nan, np.nan)
    spread = float(units.std(axis=0).mean())
    varied = len(observations) > 1 and float(observations.std(axis=0).mean()) > LEAST_SPREAD
    if varied and spread < LEAST_SPREAD:
        problems.append("every visitor gets the same direction")
    old = None if before is None else _directions(before, observations)
    earlier = None if old is None else _units(old)
    if earlier is None:
        return Verdict(problems, 0.0, 1.0, spread)
    angle = np.arccos(np.clip((units * earlier).sum(axis=1), -1, 1)) / (np.pi / 2)
    few = slice(0, 32)  # a page each is a search each
    shared = [
        len(set(_page(nearest, a, k)) & set(_page(nearest, b, k))) / k
        for a, b in zip(units[few], earlier[few], strict=True)
    ]
    return Verdict(problems, float(angle.mean()), float(np.mean(shared or [1.0])), spread)


def _directions(policy: Policy, observations: Float32) -> Float32 | None:
    if not isinstance(policy, Directed) or not len(observations):
        return None
    return np.array([policy.direction(row) for row in observations], np.float32)


def _units(directions: Float32) -> Float32 | None:
    length = np.sqrt((directions**2).sum(axis=1, keepdims=True))
    if not (length > 0).any():
        return None
    unit: Float32 = directions / np.maximum(length, 1e-12)
    return unit


def _page(nearest: Nearest, direction: Float32, k: int) -> list[int]:
    rows: list[int] = nearest.search(direction, k).rows.tolist()
    return rows

"""The studies: what each compares (`STUDIES`), and the runs of one (`plan`)."""

from dataclasses import replace
from typing import TYPE_CHECKING

from lser.catalogue import nearest
from lser.experiments.studies.known import (
    GROUPS,
    PAPER_PLATFORMS,
    RELEASED,
    STUDIES,
    TUNING_SEEDS,
    order_of,
    spec_for,
)
from lser.experiments.studies.platforms import REWARD, ScoreScale, mean_scale, scale_of
from lser.experiments.studies.spec import Axis, StudySpec, value_at

if TYPE_CHECKING:
    from lser.experiments.experiment import Experiment
    from lser.experiments.presets import Scale

__all__ = [
    "GROUPS",
    "PAPER_PLATFORMS",
    "RELEASED",
    "REWARD",
    "STUDIES",
    "TUNING_SEEDS",
    "Axis",
    "ScoreScale",
    "StudySpec",
    "mean_scale",
    "order_of",
    "plan",
    "scale_of",
    "spec_for",
    "value_at",
]


def plan(name: str, scale: "Scale", seeds: int) -> "list[Experiment]":
    """Every run of a study or a group of them; all cells of a seed before the next.

    The group `paper`, its figures and tables, runs in the regime of its release.
    """
    from lser.experiments.presets import released

    names = GROUPS.get(name) or (name,)
    for part in names:
        nearest("study", part, (*STUDIES, *GROUPS))
    cells = [cell for part in names for cell in STUDIES[part].experiments(scale)]
    if name in RELEASED:
        cells = [released(cell) for cell in cells]
    return [
        _with_seed(cell, seed + STUDIES[cell.study].first_seed)
        for seed in range(seeds)
        for cell in cells
    ]


def _with_seed(cell: "Experiment", seed: int) -> "Experiment":
    """The cell's run of that seed, in the world that comes with it."""
    worlds = STUDIES[cell.study].worlds
    if worlds > 1:
        cell = replace(cell, simulator=replace(cell.simulator, world_seed=seed % worlds))
    return replace(cell, seed=seed)

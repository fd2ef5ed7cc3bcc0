"""Figures that a person can read: arms told apart, legends whole."""

import pytest
import synthetic
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lser.report import plots
from lser.report.findings import Finding, find_out
from lser.report.sorting import studies

BANDITS = ("earning bandit", "earning page bandit", "exploring bandit", "exploring page bandit")
SHARED = {"LSER recommender": "lser-steady", "uniform replay": "uniform"} | dict.fromkeys(
    BANDITS, "uniform"
)


def found(memories: dict[str, str]) -> Finding:
    runs = [
        synthetic.record("demo", label, seed, level=0.5, memory={"name": memory}, points=5)
        for label, memory in memories.items()
        for seed in range(3)
    ]
    return find_out(studies(runs))[0].panels[0]


def test_arms_that_share_a_memory_are_told_apart() -> None:
    looks = [shown for _, shown in plots._looks(found(SHARED).panel)]
    assert len({(shown.colour, shown.marker) for shown in looks}) == len(SHARED)


def test_a_memory_is_drawn_as_itself_whatever_its_arm_is_called() -> None:
    plain = dict(plots._looks(found({"lser": "lser", "uniform": "uniform"}).panel)).values()
    named = dict(plots._looks(found({"lser": "lser", "everything": "uniform"}).panel)).values()
    assert {shown.colour for shown in plain} == {shown.colour for shown in named}


@pytest.mark.parametrize(
    "memories",
    [
        {"lser": "lser", "uniform": "uniform"},
        SHARED,
        {f"{name} with the cure and more": name for name in ("lser", "uniform", "per", "aer")},
    ],
)
def test_a_legend_lies_within_its_figure(memories: dict[str, str]) -> None:
    figure = Figure(figsize=(4.8, 3.5), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    plots.curves(found(memories))(figure)
    canvas.draw()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width

"""What `results/planned.py` runs, in which order and how long."""

import importlib.util
from collections import Counter
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "results" / "planned.py"


@pytest.fixture(scope="module")
def planned():
    """The script."""
    spec = importlib.util.spec_from_file_location("results_planned", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_fleets_of_d_share_no_run(planned):
    fleets = planned.fleets_of_d()
    runs = [run for fleet in fleets.values() for run in fleet]
    assert [len(fleet) for fleet in fleets.values()] == [240, *[360, 480, 180] * 2]
    assert max(Counter(map(str, runs)).values()) == 1
    assert {len({run.batch_size for run in fleet}) for fleet in fleets.values()} == {1}


def test_dealing_keeps_every_run_and_gives_a_crew_few_worlds(planned):
    runs = planned.fleets_of_d()["the primary cells"]
    dealt = planned.dealt(runs, 15)
    assert Counter(map(str, dealt)) == Counter(map(str, runs))
    for crew in range(15):
        assert len({str(run.simulator) for run in dealt[crew::15]}) <= 3


@pytest.mark.parametrize(
    ("seconds", "step", "sessions"),
    [(609, 3.56e-3, 15_000), (1e6, 1e-3, 90_000), (10, 1e-2, 5_000)],
)
def test_the_length_of_a_follows_from_the_pace(planned, seconds, step, sessions):
    assert planned.length(seconds, step) == sessions

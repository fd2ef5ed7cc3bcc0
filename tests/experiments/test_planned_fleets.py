"""What `results/planned.py` runs, in which order and how long."""

import importlib.util
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from lser.experiments import records
from lser.experiments.presets import preset
from lser.experiments.study import finished, job_for

SCRIPT = Path(__file__).resolve().parents[2] / "results" / "planned.py"


@pytest.fixture(scope="module")
def planned():
    """The script."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SCRIPT.parent))  # it imports what lies beside it
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


@pytest.fixture(scope="module")
def cells(planned):
    """The runs of a letter."""
    return sys.modules["cells"]


@pytest.mark.parametrize(
    ("letter", "runs", "seeds"),
    [("b", 90, 10), ("c", 160, 20), ("f", 280, 20), ("g", 900, 10), ("h", 150, 10)],
)
def test_a_letter_has_the_runs_of_the_plan_on_its_seeds(cells, letter, runs, seeds):
    found = cells.chosen(letter, cells.Choice())
    assert len(found) == runs
    assert {one.seed for one in found} == set(range(100, 100 + seeds))
    assert all(one.names[2] in ("ddpg", "neural-bandit") for one in found)


def test_a_fleet_is_cut_off_though_one_of_its_squads_has_ended(planned, tmp_path, monkeypatch):
    small = {"evaluate_every": 4, "learning_starts": 16, "evaluate_sessions": 5}
    short, long = (
        replace(preset("bazaar", memory, "ddpg", scale="quick"), sessions=sessions, **small)
        for memory, sessions in (("lser", 4), ("her", 400))
    )
    jobs = [job_for(one, tmp_path, "") for one in (short, long)]
    clock = SimpleNamespace(time=lambda: float(finished(jobs[0])))
    monkeypatch.setattr(planned, "time", clock)
    planned.sail(jobs, "cpu", 0, 0.5)
    ended, cut = (records.load(Path(job.folder)) for job in jobs)
    assert (ended.status, cut.status) == ("done", "stopped")
    assert cut.final is not None  # scored where it stood


def test_s_has_newer_seeds_and_fewer_of_what_stands_beside(cells):
    found = cells.chosen("s", cells.Choice())
    assert {one.seed for one in found} == set(range(120, 140))
    counts = Counter(one.label for one in found)
    assert counts == {"lser": 20, "uniform": 20, **dict.fromkeys(cells.BESIDE, 10)}
    assert {one.sessions for one in found} == {90_000}


def test_reruns_are_the_runs_of_c_under_another_name(cells):
    first = [one for one in cells.chosen("c", cells.Choice()) if one.agent.noise_scale == 0.1]
    known = {(one.label, one.seed): one for one in first}
    for where in (cells.FLEET, cells.CPU):
        for one in cells.rerun(where):
            label = one.label.removesuffix(f" on {where}")
            assert replace(one, study="confirmation", label=label) == known[label, one.seed]


def test_what_is_chosen_is_cut_and_shifted(cells):
    choice = cells.Choice(arms=("lser",), seeds=2, sessions=200, shift=800, reward="quality")
    first, second = cells.chosen("f", choice)
    assert (first.seed, second.seed) == (900, 901)
    assert (first.sessions, first.evaluate_every) == (200, 10)
    assert first.simulator.reward == "quality"
    flipped = cells.chosen("g", cells.Choice(flips=4))
    assert {one.simulator.number_of_flips for one in flipped} == {4}

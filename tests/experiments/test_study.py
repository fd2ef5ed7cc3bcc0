"""Where jobs lie, how far they are, and how studies are planned."""

from dataclasses import replace
from pathlib import Path

import pytest

from lser.experiments.experiment import Experiment, to_json
from lser.experiments.presets import SCALES, lasting, preset
from lser.experiments.progress import PROGRESS
from lser.experiments.recording import write_json
from lser.experiments.studies import STUDIES, TUNING_SEEDS, plan
from lser.experiments.study import Done, Tally, finished, job_for

RUN = Experiment(label="lser", sessions=100)


def folder_of(run, root="runs"):
    return Path(job_for(run, Path(root), "").folder)


def test_a_run_of_no_study_lies_under_its_simulator():
    assert folder_of(RUN).parts[:2] == ("runs", "bazaar")
    assert folder_of(RUN).name.startswith("lser-seed0-")


def test_a_study_has_a_folder_of_its_own():
    assert folder_of(replace(RUN, study="epsilon")).parts[:3] == ("runs", "epsilon", "bazaar")


@pytest.mark.parametrize("study", ["../..", "a/b", "/etc", "x" * 200, "\n"])
def test_no_name_leads_out_of_the_folder(study):
    parts = folder_of(replace(RUN, study=study)).parts
    assert len(parts) == 4
    assert ".." not in parts
    assert len(parts[1]) <= 80


def test_a_gymnasium_id_is_one_folder():
    assert len(folder_of(preset("lser/Bazaar-v0")).parts) == 3


def test_other_settings_are_another_folder_and_defaults_are_not():
    assert folder_of(RUN) != folder_of(replace(RUN, batch_size=64))
    assert folder_of(RUN) != folder_of(replace(RUN, seed=1))
    assert folder_of(RUN) == folder_of(Experiment(label="lser", sessions=100, users=8))


def test_a_tally_counts_what_runs_and_what_ended(tmp_path, monkeypatch):
    jobs = [job_for(replace(RUN, seed=seed), tmp_path, "") for seed in range(4)]
    tally = Tally(jobs)
    assert tally.share() == 0
    assert tally.left() is None
    for job in jobs[:3]:
        tally.started(job)
    tally.ended(Done(jobs[0], True))
    tally.ended(Done(jobs[1], False))
    assert (tally.done, tally.failed, tally.running) == (1, [jobs[1]], [jobs[2]])
    assert tally.share() == pytest.approx(0.5)
    folder = Path(jobs[2].folder)
    folder.mkdir(parents=True)
    now = {"sessions": 50, "of": 100, "metric": "ctr", "so_far": 0.1}
    write_json(folder / PROGRESS, now)
    assert tally.share() == pytest.approx(0.625)
    monkeypatch.setattr(Tally, "elapsed", 50.0)
    assert tally.left() == pytest.approx(30)


def test_nothing_is_all_done():
    assert Tally([]).share() == 1.0


def test_only_a_complete_record_is_finished(tmp_path):
    job = job_for(RUN, tmp_path, "")
    assert not finished(job)
    folder = Path(job.folder)
    folder.mkdir(parents=True)
    write_json(folder / "experiment.json", to_json(RUN))
    write_json(folder / "meta.json", {"status": "stopped"})
    assert not finished(job)
    write_json(folder / "meta.json", {"status": "done"})
    assert finished(job)
    (folder / "meta.json").write_text("{")
    assert not finished(job)


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("scale", SCALES)
def test_every_study_can_be_planned_and_its_runs_are_apart(name, scale):
    runs = plan(name, scale, 2)
    jobs = [job_for(run, Path("runs"), "") for run in runs]
    assert len({job.folder for job in jobs}) == len(jobs)
    assert {run.study for run in runs} == {name}
    first = min(run.seed for run in runs)
    # looked at before, planned, planned on seeds newer than those, tuning: they never meet
    assert first in (0, 100, 120, 180, 220, TUNING_SEEDS)
    assert (first == TUNING_SEEDS) == (name == "tuning")
    assert {run.seed for run in runs} == {first, first + 1}


def test_a_stretched_run_keeps_its_number_of_points():
    run = lasting(preset("bazaar"), 500)
    assert (run.sessions, run.evaluate_every) == (500, 25)
    assert lasting(run, 3).evaluate_every == 1


def test_others_environments_are_evaluated_in_short():
    assert preset("Pendulum-v1").final_sessions == 100
    assert preset("bazaar").final_sessions == 1_000


def test_a_seed_of_a_study_in_several_worlds_has_its_world():
    runs = plan("locality", "quick", 4)
    assert {(run.seed, run.simulator.world_seed) for run in runs} == {
        (100, 1),
        (101, 2),
        (102, 0),
        (103, 1),
    }
    assert {run.simulator.world_seed for run in plan("bazaar-map", "quick", 4)} == {0}


def test_the_long_runs_of_locality_are_those_of_its_primary_test():
    cells = {
        (run.batch_size, run.agent.discount, run.simulator.sparsity)
        for run in plan("locality", "paper", 1)
    }
    assert cells == {(32, 0.0, 0.005)}

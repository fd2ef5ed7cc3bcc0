"""Where runs go, what a study lists, and how many runs are told about."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from small import written

from lser.cli import engines, main
from lser.cli.engines import Place
from lser.cli.jobs import why
from lser.cli.live import Standings, Watch, arm_of, table
from lser.cli.study import _chosen
from lser.comparison import plan
from lser.experiments import records
from lser.experiments.experiment import Experiment, to_json
from lser.experiments.recording import write_json
from lser.experiments.study import Done, Here, Job, Processes, Tally, job_for
from lser.simulators.base import Lengths
from lser.simulators.bazaar.simulator import Bazaar

TINY = {"sessions": 2, "evaluate_every": 2, "evaluate_sessions": 2, "final_sessions": 2}


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"workers": -1}, "--workers must be >= 0, got -1"),
        ({"fleet_size": 0}, "--fleet-size must be >= 1, got 0"),
        ({"deadline": 0.0}, "--deadline must be more than 0 seconds, got 0"),
        ({"deadline": math.nan}, "--deadline must be more than 0 seconds, got nan"),
        ({"engine": "ray", "gpus": -1.0}, "--gpus must be finite and >= 0, got -1"),
        ({"gpus": 1.0}, "--gpus is for --engine ray, got --engine processes"),
        (
            {"engine": "fleet", "address": "a:1"},
            "--address is for --engine ray, got --engine fleet",
        ),
    ],
)
def test_an_impossible_place_is_refused_by_its_option(knobs, message):
    with pytest.raises(ValueError, match=message):
        Place(**knobs)


@pytest.mark.parametrize(
    "command", ["compare", "demo", "study bazaar-map", "study epsilon --dry-run"]
)
def test_no_command_takes_fewer_than_no_workers(command, tmp_path, capsys):
    assert main([*command.split(), "--workers", "-2", "--out", str(tmp_path / "runs")]) == 2
    assert "--workers must be >= 0, got -2" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_no_number_of_workers_means_every_core():
    assert Place().map() == Processes()
    assert Place(workers=3).map() == Processes(3)
    with pytest.raises(ValueError, match="workers must be >= 1, got 0"):
        Processes(0)  # it would wait for ever


def test_learners_are_stacked_by_fleets_and_by_parts_of_gpus():
    assert not Place().stacks
    assert Place("fleet").stacks
    assert Place("ray", gpus=0.5).stacks
    assert not Place("ray").stacks


def test_a_fleet_has_its_device_and_size(monkeypatch):
    checked = []
    monkeypatch.setattr(engines, "check_device", checked.append)
    fleets = Place("fleet", workers=2, device="cuda:1", fleet_size=7, deadline=60.0).map()
    assert checked == ["cuda:1"]
    assert (fleets.device, fleets.size, fleets.deadline_seconds) == ("cuda:1", 7, 60.0)


@pytest.fixture
def short(monkeypatch):
    """Runs of a few sessions, in this process."""
    monkeypatch.setattr(Bazaar, "lengths", Lengths(2, 2, 2))
    monkeypatch.setattr(Place, "map", lambda self: Here())


STUDY = ["study", "bazaar-map", "--scale", "quick", "--seeds", "1"]
ONE = ["--only", "uniform--sparsity-0.05--state-dependence-0.5"]


def test_a_study_runs_closes_and_repeats_nothing(short, tmp_path, capsys):
    assert main([*STUDY, *ONE, "--out", str(tmp_path)]) == 0
    found = capsys.readouterr()
    assert "uniform has the highest" in found.out
    assert f"draw it: lser report {tmp_path}" in found.err
    assert "1 done, 0 running, 0 waiting, 100%" in found.err
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    assert main([*STUDY, *ONE, "--out", str(tmp_path)]) == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")} == before
    assert main([*STUDY, "--dry-run", "--out", str(tmp_path)]) == 0
    assert "36 runs, 1 of them finished" in capsys.readouterr().out


def test_a_study_that_fails_ends_with_1_and_the_reason(short, tmp_path, capsys, monkeypatch):
    def fail(job):
        written(Path(job.folder), status="failed", final=None, meta={"error": "it rained"})

        raise RuntimeError

    monkeypatch.setattr("lser.experiments.study.work", fail)
    assert main([*STUDY, *ONE, "--out", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "failed: " in error
    assert "it rained" in error


def test_a_choice_that_leaves_nothing_is_said(tmp_path, capsys):
    assert main([*STUDY, "--only", "zebra", "--out", str(tmp_path)]) == 2
    assert "--only 'zebra' leaves no run of bazaar-map" in capsys.readouterr().err


def test_runs_are_chosen_by_any_of_the_texts():
    job = job_for(Experiment(label="lser, 4 bits", study="s"), Path("runs"), "")
    assert _chosen(job, "")
    assert _chosen(job, "zebra|4 bits")
    assert _chosen(job, "bazaar")
    assert not _chosen(job, "zebra|5 bits")


def test_the_demo_serves_all_arms_and_writes_its_page(monkeypatch, tmp_path, capsys):
    from lser.cli import demo

    real = demo.cells
    monkeypatch.setattr(Place, "map", lambda self: Here())
    monkeypatch.setattr(demo, "cells", lambda *a: [replace(run, **TINY) for run in real(*a)])
    assert main(["demo", "--sessions", "2", "--seeds", "2", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "At the end LSER's recommender has" in " ".join(out.split())
    assert out.splitlines()[-1] == str(tmp_path / "index.html")
    assert len(records.find(tmp_path / "runs")) == 12
    assert max(len(line) for line in out.splitlines() if str(tmp_path) not in line) <= 80


def test_why_a_run_ended_is_in_its_record_s_words(tmp_path):
    def job(name, **files):
        return Job({}, str(written(tmp_path / name, final=None, **files)), "")

    assert why(Job({}, str(tmp_path / "none"), "")) == "the process died before its record began"
    assert why(job("a", meta={"status": "failed", "error": "Boom"})) == "Boom"
    assert why(job("b", status="stopped")) == "stopped before its end"
    assert why(job("c", status="running")) == "the process died"


def finished(folder, score):
    """A finished record of the job's experiment with that score."""
    job = job_for(Experiment(label="mine", seed=int(100 * score)), folder, "")
    written(Path(job.folder), experiment=job.experiment, final={"metric": score, "sessions": 9})
    return job


def test_standings_take_final_scores_of_what_has_ended(tmp_path):
    jobs = [finished(tmp_path, score) for score in (0.25, 0.75)]
    (row,) = Standings(jobs, Tally(jobs)).rows()
    assert (row.arm, row.done, row.runs) == ("mine", 2, 2)
    assert row.score.startswith("0.500")
    assert row.left == 0.0
    cells = [list(column.cells) for column in table([row]).columns]
    assert [str(cell[0]) for cell in cells][1:] == ["2/2", row.score, "done"]


def test_an_arm_without_a_label_is_its_memory():
    assert arm_of(Job(to_json(Experiment()), "", "")) == "lser"
    assert arm_of(Job(to_json(Experiment(label="x")), "", "")) == "x"


def test_labels_of_data_are_never_markup(tmp_path):
    jobs = [job_for(Experiment(label="[red]x[/red]"), tmp_path, "")]
    shown = table(Standings(jobs, Tally(jobs)).rows())
    assert str(next(iter(shown.columns[0].cells))) == "[red]x[/red]"


@pytest.mark.parametrize(("arms", "parts"), [(2, 2), (13, 1)])
def test_more_arms_than_a_screen_holds_are_one_line(arms, parts, tmp_path):
    runs = plan(["uniform"], seeds=1)
    jobs = [job_for(replace(runs[0], label=f"arm {n}"), tmp_path, "") for n in range(arms)]
    assert len(Watch(jobs, Tally(jobs), already=0).view().renderables) == parts


def test_progress_beyond_the_end_is_the_end(tmp_path):
    job = job_for(Experiment(sessions=10), tmp_path, "")
    Path(job.folder).mkdir(parents=True)
    now = {"sessions": 14, "of": 10, "metric": "ctr", "so_far": 0.1}
    write_json(Path(job.folder) / "progress.json", now)
    tally = Tally([job])
    tally.started(job)
    assert tally.share() == 1.0
    tally.ended(Done(job, True))
    assert tally.share() == 1.0

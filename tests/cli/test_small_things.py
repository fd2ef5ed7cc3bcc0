"""Small mistakes that were made once, each with its command."""

import csv
import signal
import threading
from pathlib import Path

import pytest
from small import SMALL, trained, written

from lser.cli import live, main
from lser.cli.board import Sheet, group, losses
from lser.cli.display import left
from lser.cli.jobs import run_jobs
from lser.cli.outcome import flat, next_commands
from lser.cli.train import _names, _split
from lser.comparison import plan
from lser.experiments import preflight, records
from lser.experiments.owner import Owner
from lser.experiments.preflight import replay_bytes
from lser.experiments.ready import check, sizes
from lser.experiments.study import TAKEN, Done, Processes, Tally, job_for, killed_by
from waiting import until


def test_an_estimate_of_time_is_words_and_no_picture(tmp_path, capsys):
    assert main(["study", "bazaar-map", "--dry-run", "--out", str(tmp_path)]) == 0
    last = " ".join(capsys.readouterr().out.split())
    assert "(h:mm:ss or m:ss) on" in last
    assert "Ⓜ" not in last


def test_an_estimate_for_fleets_does_not_speak_of_workers(tmp_path, capsys):
    arguments = ["study", "bazaar-map", "--dry-run", "--engine", "fleet", "--out", str(tmp_path)]
    assert main(arguments) == 0
    assert "depends on the device" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "names", "rest"),
    [
        ("bazaar lser --seed 1", ["bazaar", "lser"], ["--seed", "1"]),
        ("--scale=medium", [], ["--scale", "medium"]),
        ("--from=runs/a", [], ["--from", "runs/a"]),
        ("--seed 1 bazaar lser", ["bazaar", "lser"], ["--seed", "1"]),
        ("--json recogym per sac", ["recogym", "per", "sac"], ["--json"]),
        ("--seed=1 bazaar", ["bazaar"], ["--seed=1"]),
        ("--label lser", [], ["--label", "lser"]),
        ("--study bazaar", [], ["--study", "bazaar"]),
    ],
)
def test_names_and_options_come_in_any_order(words, names, rest):
    assert _names(_split(words.split())) == (names, rest)


def test_four_names_are_too_many():
    with pytest.raises(ValueError, match="at most three names"):
        _names(["bazaar", "lser", "ddpg", "fast"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["theory", "--angle", "400"], "--angle must be between 0 and 180 degrees, got 400"),
        (["theory", "--angle", "-1"], "--angle must be between 0 and 180 degrees, got -1"),
        (["evaluate", "nowhere", "--sessions", "0"], "--sessions must be at least 1, got 0"),
        (["demo", "--seeds", "0"], "--seeds must be at least 1"),
        (["study", "epsilon", "--seeds", "0"], "--seeds must be at least 1, got 0"),
        (["train", "bazaar", "lser", "ddpg", "--agent.device", "cuda"], "no CUDA GPU"),
        (["study", "bazaar-map", "--engine", "fleet"], "no CUDA GPU"),
        (["train", "--scale"], "--scale must be one of quick, medium, paper, learnable, got ''"),
    ],
)
def test_an_error_speaks_of_what_was_given(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not list(tmp_path.rglob("experiment.json"))


@pytest.mark.parametrize("command", [["demo"], ["train"], ["compare"], ["study", "bazaar-map"]])
def test_a_file_for_a_folder_is_one_line(command, tmp_path, capsys):
    (tmp_path / "notes").write_text("mine")
    assert main([*command, "--out", str(tmp_path / "notes")]) == 2
    assert "is a file and records need a folder" in capsys.readouterr().err


def test_labels_are_listed_as_a_person_counts(tmp_path, capsys):
    for bits in (10, 2, 16):
        written(tmp_path / f"b{bits}", f"{bits} bits")
    assert main(["runs", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert [text.index(f"{bits} bits") for bits in (2, 10, 16)] == sorted(
        text.index(f"{bits} bits") for bits in (2, 10, 16)
    )
    assert "3 records" in text


def test_one_record_is_one(tmp_path, capsys):
    written(tmp_path / "a", "lser", status="stopped")
    assert main(["runs", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "1 record under" in text
    assert "go on with: lser resume PATH" in text


def test_a_dead_run_is_told_from_a_running_one(tmp_path, capsys):
    written(tmp_path / "a", "lser", status="running")
    assert main(["runs", str(tmp_path)]) == 0
    assert "died" in capsys.readouterr().out
    assert main(["watch", str(tmp_path / "a")]) == 0  # and does not wait for ever
    assert "no progress yet" in capsys.readouterr().out


def test_the_same_run_again_is_refused_and_left_as_it_was(tmp_path, capsys):
    folder = trained(tmp_path, "bazaar", "uniform", "--csv")
    before = {path.name: path.read_bytes() for path in folder.glob("*.json*")}
    with (folder / "curve.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["evaluation/metric"]) for row in rows] == [
        line["metric"] for line in records.load(folder).curve
    ]
    capsys.readouterr()
    assert main(["train", "bazaar", "uniform", *SMALL, "--out", str(tmp_path), "--csv"]) == 2
    assert "is finished; --again" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.glob("*.json*")} == before


class At:
    """A status with a line of the curve."""

    metric, so_far = "ctr", 0.3

    class step:
        learned = None

    def __init__(self, **line):
        self.evaluation = line


def test_a_curve_s_numbers_all_become_columns_and_a_resumed_run_goes_on(tmp_path):
    sheet = Sheet(tmp_path, lambda: {"size": 5})
    for _ in range(2):  # the same line again is no new row
        sheet(At(steps=1, metric=0.1))
    sheet(At(steps=2, metric=0.2))
    again = Sheet(tmp_path, lambda: {"size": 6})
    again(At(steps=2, metric=0.3, regret=1.5))
    assert (tmp_path / "curve.csv").read_text().splitlines() == [
        "steps,evaluation/metric,training/ctr,memory/size,training/regret",
        "1,0.1,0.3,5,",
        "2,0.3,0.3,6,1.5",
    ]


def test_only_numbers_are_drawn():
    line = {"a": 1, "b": 0.5, "c": "x", "d": True, "e": {"f": 2}, "g": None}
    assert flat(line) == {"a": 1, "b": 0.5, "e/f": 2}


def test_tensorboard_groups_what_belongs_together():
    names = ("metric", "learning_metric", "regret", "value_spread", "saturated", "memory/size")
    assert [group(name) for name in names] == [
        *("evaluation/", "training/", "training/", "critic/", "critic/", "")
    ]


def test_losses_of_no_update_are_none():
    class Status:
        class step:
            learned = None

    assert losses(Status) == {}


def test_a_path_with_spaces_can_be_pasted(tmp_path):
    assert f"lser evaluate '{tmp_path}/my runs'" in next_commands(tmp_path / "my runs")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, "time left unknown"), (5.4, "0:05 left"), (75, "1:15 left"), (3_661, "1:01:01 left")],
)
def test_time_left_in_words(seconds, words):
    assert left(seconds) == words


def test_a_study_without_a_terminal_speaks_while_it_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(live, "LINE_SECONDS", 0.02)
    text = []

    def spoke():
        text.append(capsys.readouterr().err)
        return len("".join(text).splitlines()) > 2

    jobs = [job_for(run, tmp_path, "") for run in plan(["uniform"], seeds=2)]
    tally = Tally(jobs)
    tally.started(jobs[0])
    with live.Watch(jobs, tally, already=3):
        until(spoke, "a third line")
    lines = "".join(text).splitlines()
    assert lines[0].startswith("3 done before, 0 done, 1 running, 1 waiting, 0%")
    assert threading.active_count() < 20


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, ""),
        (1, ""),
        (None, ""),
        (-9, "the process was ended by SIGKILL, as the system does where memory runs out"),
        (-11, "the process was ended by SIGSEGV"),
        (TAKEN, "another process writes this record"),
        (-250, "the process was ended by signal 250"),
    ],
)
def test_the_signal_that_ended_a_run_is_named(code, words):
    assert killed_by(code).startswith(words)
    assert bool(killed_by(code)) == bool(words)


def test_a_record_that_another_process_writes_is_told_and_left_alone(tmp_path, capfd):
    (cell,) = plan(["uniform"], sessions=5, seeds=1)
    job = job_for(cell, tmp_path, "")
    with Owner(Path(job.folder)):
        assert run_jobs([job], Processes(1)) == 1
    told = capfd.readouterr().err
    assert "another process writes this record" in told
    assert "Traceback" not in told


def test_a_worker_that_is_killed_is_told_with_its_signal(tmp_path, capsys, monkeypatch):
    class Killed:
        def run(self, jobs, *, started):
            for job in jobs:
                started(job)
                yield Done(job, False, killed_by(-signal.SIGKILL))

    (cell,) = plan(["uniform"], sessions=5, seeds=1)
    assert run_jobs([job_for(cell, tmp_path, "")], Killed()) == 1
    assert "ended by SIGKILL, as the system does where memory runs out" in capsys.readouterr().err


def test_runs_side_by_side_must_fit_into_memory_together(tmp_path, monkeypatch):
    cells = plan(["uniform"], sessions=5, seeds=3)
    jobs = [job_for(cell, tmp_path, "") for cell in cells]
    one = replay_bytes(cells[0].capacity, *sizes(cells[0]))
    monkeypatch.setattr(preflight, "available_bytes", lambda: one * 3 // 2)
    with pytest.raises(MemoryError, match="in 2 runs side by side .* fewer --workers"):
        run_jobs(jobs, Processes(2))
    assert list(tmp_path.iterdir()) == []
    check(cells, tmp_path)  # one at a time fits

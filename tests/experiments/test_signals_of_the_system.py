"""Signals, threads and processes: how runs are asked to stop, and what they leave as it was."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from contextlib import nullcontext
from dataclasses import replace

import pytest
from test_run import small

from lser.experiments import records, study
from lser.experiments.run import Run, run
from lser.experiments.stopping import STOPS, Interrupted, stop_flag
from lser.experiments.study import Here, Processes, for_children, job_for, term_as_interrupt, work
from waiting import LIMIT, until

TINY = {"sessions": 2, "evaluate_every": 2, "evaluate_sessions": 2, "final_sessions": 2}


def tiny(**changes):
    return replace(small("uniform"), label="tiny", **{**TINY, **changes})


@pytest.fixture(autouse=True)
def hung_up():
    """As in a terminal, also where nohup started the tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", STOPS)
def test_one_signal_asks_and_only_a_second_ctrl_c_does_not_wait(number):
    before = signal.getsignal(number)
    with stop_flag() as stop:
        assert not stop()
        signal.raise_signal(number)
        assert stop()
        with pytest.raises(KeyboardInterrupt) if number == signal.SIGINT else nullcontext():
            signal.raise_signal(number)
        assert stop()
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("within", [stop_flag, term_as_interrupt])
def test_what_nohup_silenced_stays_silent(within):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with within() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert stop is None or not stop()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_in_another_thread_signals_are_left_alone():
    found = []

    def ask():
        with stop_flag() as stop, term_as_interrupt():
            found.append(stop())

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found == [False]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_study_ends_on_a_signal_as_on_ctrl_c(number):
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), term_as_interrupt():
        signal.raise_signal(number)
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", STOPS)
def test_a_run_that_is_asked_to_stop_has_a_checkpoint_and_goes_on(number, tmp_path):
    experiment = tiny(sessions=12)
    run(experiment, tmp_path / "whole")
    with pytest.raises(Interrupted):
        run(experiment, tmp_path / "parts", watch=lambda status: signal.raise_signal(number))
    assert records.load(tmp_path / "parts").status == "stopped"
    assert list((tmp_path / "parts").rglob("*.lser"))
    run(experiment, tmp_path / "parts")
    whole, parts = ((tmp_path / name / "final.json").read_bytes() for name in ("whole", "parts"))
    assert whole == parts


def test_children_have_one_thread_and_no_ear_and_this_process_has_its_own(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    heard = signal.getsignal(signal.SIGINT)
    with for_children():
        assert {os.environ[name] for name in for_children.NAMES} == {"1"}
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is heard
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def test_a_job_is_carried_out_and_leaves_its_progress(tmp_path):
    job = job_for(tiny(), tmp_path, "by hand")
    work(job)
    (record,) = records.find(tmp_path)
    assert (record.status, record.meta["command"]) == ("done", "by hand")
    assert (record.path / "progress.json").exists()


def test_a_process_without_a_parent_has_nothing_to_end_with(monkeypatch):
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: None)
    before = threading.active_count()
    study.end_with_parent()
    assert threading.active_count() == before


def test_a_process_ends_with_its_parent(monkeypatch):
    mine, theirs = multiprocessing.Pipe()
    ended = threading.Event()
    monkeypatch.setattr(os, "kill", lambda pid, number: ended.set())

    class Parent:
        sentinel = mine

    monkeypatch.setattr(multiprocessing, "parent_process", Parent)
    study.end_with_parent()
    assert not ended.wait(0.2)
    theirs.close()  # the parent is gone
    assert ended.wait(60)
    mine.close()


def test_a_worker_that_is_stopped_says_nothing_and_leaves_its_record(tmp_path, monkeypatch):
    """Its parent may be gone, and its terminal somebody else's by then."""

    def stopped(*_, **__):
        raise Interrupted

    monkeypatch.setattr("lser.experiments.run.run", stopped)
    with pytest.raises(SystemExit) as ended:
        work(job_for(tiny(), tmp_path, ""))
    assert ended.value.code == 1


class Process:
    """A process that ends at once, with the code its job's command says."""

    made: list["Process"] = []  # noqa: RUF012

    def __init__(self, target, args):
        (self.job,) = args
        self._out, self._in = multiprocessing.Pipe(duplex=False)
        self.sentinel = self._out.fileno()
        self.exitcode = None
        self.made.append(self)

    def start(self):
        self.exitcode = int(self.job.command)
        if self.exitcode < 9:
            self._in.close()

    def join(self):
        self._out.close()

    def terminate(self):
        self.exitcode = -15
        self._in.close()


class Context:
    Process = Process


def test_as_many_run_side_by_side_as_there_are_workers(tmp_path, monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_context", lambda kind: Context)
    monkeypatch.setattr(Process, "made", [])
    jobs = [job_for(tiny(seed=seed), tmp_path, code) for seed, code in enumerate("00301")]
    started = []
    found = {}
    for done in Processes(2).run(jobs, started=started.append):
        assert len(started) - len(found) <= 2
        found[done.job.folder] = done.ok
    assert started == jobs
    assert [found[job.folder] for job in jobs] == [True, True, False, True, False]


def test_whoever_stops_listening_ends_what_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_context", lambda kind: Context)
    monkeypatch.setattr(Process, "made", [])
    jobs = [job_for(tiny(seed=seed), tmp_path, code) for seed, code in enumerate("099")]
    runs = Processes(3).run(jobs, started=lambda job: None)
    assert next(runs).job == jobs[0]
    runs.close()
    assert [process.exitcode for process in Process.made] == [0, -15, -15]


def test_a_failure_in_this_process_does_not_end_the_others(tmp_path, monkeypatch):
    def fail_first(job):
        if job.experiment["seed"] == 0:
            raise RuntimeError("no luck")

    monkeypatch.setattr(study, "work", fail_first)
    jobs = [job_for(tiny(seed=seed), tmp_path, "") for seed in range(2)]
    assert [done.ok for done in Here().run(jobs, started=lambda job: None)] == [False, True]


def test_feeders_need_the_command_that_starts_them(tmp_path):
    with pytest.raises(ValueError, match="feeders=2: `lser train` runs these, on a Ray cluster"):
        Run(tiny(feeders=2), tmp_path)
    Run(tiny(), tmp_path).owner.release()  # and the folder is free


def test_two_different_signals_are_one_wish():
    with stop_flag() as stop:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        assert stop()


def test_a_run_that_is_not_waited_for_is_stopped_and_not_failed(tmp_path):
    def impatient(_status):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(tiny(sessions=12), tmp_path / "run", watch=impatient)
    assert records.load(tmp_path / "run").status == "stopped"


@pytest.mark.parametrize("engine", ["local", "fleet"])
def test_ctrl_c_in_a_terminal_leaves_every_run_with_a_checkpoint(engine, tmp_path):
    """A terminal sends it to the command and to all its workers at once."""
    arguments = ["tuning", "--scale", "medium", "--seeds", "1", "--only", "bazaar/uniform"]
    arguments += ["--workers", "2", "--out", str(tmp_path)]
    if engine == "fleet":
        arguments += ["--engine", "fleet", "--device", "cpu"]
    # background jobs of a shell ignore it
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "import lser.cli; raise SystemExit(lser.cli.main())"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "study", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until(lambda: len(list(tmp_path.rglob("progress.json"))) >= 2)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert "the same command goes on where it stood" in errors
    assert "Traceback" not in errors
    found = records.find(tmp_path)
    assert {run.status for run in found} <= {"stopped", "done"}
    stopped = [run for run in found if run.status == "stopped"]
    assert stopped
    assert all(list(run.path.rglob("*.lser")) for run in stopped)

"""Runs in lockstep leave the records they would leave alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from small_runs import LENGTH, alone, assert_same_records, jobs, small

from lser.agents.device_stack import DeviceStack
from lser.experiments import records
from lser.experiments.run import Run
from lser.fleet.map import groups
from lser.fleet.run import Fleet, alternate, mustered
from lser.fleet.seat import Seat
from lser.fleet.squad import All
from waiting import until

MEMORIES = ("lser", "per", "uniform", "aer", "der", "ser")


def test_on_the_cpu_a_fleet_leaves_the_very_records_of_its_runs_alone(tmp_path):
    experiments = [small(memory, **LENGTH) for memory in MEMORIES]
    experiments.append(small("lser", intervention=0.0, seed=3, **LENGTH))
    experiments.append(small("uniform", knobs={"normalise": True}, **LENGTH))
    experiments.append(small("uniform", knobs={"weight_noise": 0.5}, **LENGTH))
    work = jobs(tmp_path, *experiments)
    assert Fleet(work, device="cpu").go()
    assert_same_records(alone(tmp_path, experiments), work)


@pytest.mark.parametrize("agent", ["td3", "sac"])
def test_other_agents_sail_as_well(agent, tmp_path):
    experiments = [small(memory, agent, **LENGTH) for memory in ("lser", "per")]
    work = jobs(tmp_path, *experiments)
    Fleet(work, device="cpu").go()
    assert_same_records(alone(tmp_path, experiments), work)


@pytest.mark.parametrize("agent", ["neural-bandit", "ddpg-release"])
def test_ddpg_by_other_names_is_stacked_too(agent, tmp_path):
    experiments = [small(memory, agent, **LENGTH) for memory in ("lser", "per")]
    work = jobs(tmp_path, *experiments)
    assert groups(work) == [work]
    Fleet(work, device="cpu").go()
    assert_same_records(alone(tmp_path, experiments), work)


def test_several_and_fractional_updates_per_step_are_those_of_the_runs_alone(tmp_path):
    for rate in (0.4, 2.5):
        experiments = [
            small(memory, updates_per_step=rate, users=2, horizon="session", **LENGTH)
            for memory in ("lser", "per")
        ]
        work = jobs(tmp_path / str(rate), *experiments)
        Fleet(work, device="cpu").go()
        assert_same_records(alone(tmp_path / str(rate), experiments), work)


@pytest.mark.parametrize("workers", [0, pytest.param(3, marks=pytest.mark.slow)])
def test_squads_at_their_own_pace_leave_the_same_records(workers, tmp_path):
    experiments = [small(memory, **LENGTH) for memory in (*MEMORIES, "her")]
    experiments.append(small("per", sessions=4, evaluate_every=2, learning_starts=16))
    work = jobs(tmp_path, *experiments)
    fleet = Fleet(work, device="cpu", workers=workers, apart=True)
    # PER and DER; the others; HER, which sees a goal
    assert [squad.seats for squad in fleet.squads] == [3, 4, 1]
    assert fleet.go()
    assert fleet.reached.running == 0
    assert_same_records(alone(tmp_path, experiments), work)


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_squads_that_are_stopped_go_on_exactly_where_each_stood(workers, tmp_path):
    experiments = [small(memory, **LENGTH) for memory in ("lser", "per", "der")]
    work = jobs(tmp_path, *experiments)
    asked = []
    fleet = Fleet(work, device="cpu", workers=workers, apart=True)
    assert not fleet.go(lambda: asked.append(1) or len(asked) > 20)
    for job in work:
        assert records.load(Path(job.folder)).status == "stopped"
    assert Fleet(work, device="cpu").go()
    assert_same_records(alone(tmp_path, experiments), work)


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_an_error_in_one_squad_ends_the_others_too_and_leaves_nothing_running(workers, tmp_path):
    work = jobs(tmp_path, *(small(memory, **LENGTH) for memory in ("lser", "per")))
    asked = []

    def stop():
        asked.append(1)
        if len(asked) == 12:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        Fleet(work, device="cpu", workers=workers, apart=True).go(stop)
    assert {records.load(Path(job.folder)).status for job in work} == {"stopped"}


def test_memories_that_wait_have_crews_by_their_number_and_cost(tmp_path):
    def crews(waiting, others, workers, apart=True):
        cells = [small("per", seed=n) for n in range(waiting)]
        cells += [small("lser", seed=n) for n in range(others)]
        found = mustered(jobs(tmp_path, *cells), workers, apart=apart)
        return [(len(some.jobs), some.workers, some.urgent) for some in found]

    assert crews(4, 12, 8) == [(4, 4, True), (12, 4, False)]  # three times a share
    assert crews(1, 15, 4) == [(1, 1, True), (15, 3, False)]
    assert crews(27, 93, 15) == [(27, 7, True), (93, 8, False)]  # and no process without a core
    assert crews(4, 12, 15) == [(4, 4, True), (12, 11, False)]  # nor a crew without a run
    assert crews(1, 1, 8) == [(1, 1, True), (1, 1, False)]
    assert crews(1, 1, 1) == [(1, 1, True), (1, 1, False)]  # a crew more than asked for
    assert crews(1, 1, 0) == [(1, 0, True), (1, 0, False)]
    assert crews(4, 12, 8, apart=False) == [(16, 8, False)]
    assert crews(4, 0, 8) == [(4, 8, False)]
    assert crews(0, 4, 8) == [(4, 8, False)]


def test_the_squad_that_cannot_wait_comes_between_any_two_others():
    went = []

    def course(name, steps):
        for _ in range(steps):
            went.append(name)
            yield None

    alternate([course("first", 4), course("second", 3), course("third", 3)])
    assert went[:4] == ["first", "second", "first", "third"]
    assert sorted(went) == ["first"] * 4 + ["second"] * 3 + ["third"] * 3


def test_courses_go_on_when_all_that_they_wait_for_is_there():
    asked = []

    class Part:
        def __init__(self, after):
            self.after = after

        def ready(self):
            asked.append(self)
            return len(asked) > self.after

    def course(parts):
        yield All(parts)
        yield None
        assert all(part.ready() for part in parts)

    alternate([course([Part(3), Part(9)]), course([Part(0)]), course([])])
    assert len(asked) > 9


@pytest.mark.slow
def test_crews_in_processes_leave_the_same_records(tmp_path):
    experiments = [small(memory, **LENGTH) for memory in ("lser", "per", "uniform")]
    work = jobs(tmp_path, *experiments)
    assert Fleet(work, device="cpu", workers=2).go()
    assert_same_records(alone(tmp_path, experiments), work)


def test_runs_of_different_lengths_each_get_their_sessions(tmp_path):
    lengths = (10, 20, 30, 60)
    work = jobs(tmp_path, *(small(sessions=n, seed=n) for n in lengths))
    Fleet(work, device="cpu").go()
    for length, job in zip(lengths, work, strict=True):
        record = records.load(Path(job.folder))
        assert record.status == "done"
        assert length <= record.final["sessions"] < length + 4


@pytest.mark.parametrize("workers", [0, 1])
def test_a_stopped_fleet_goes_on_exactly_where_it_stood(workers, tmp_path):
    experiments = [small(memory, **LENGTH) for memory in ("lser", "per", "aer")]
    work = jobs(tmp_path, *experiments)
    asked = iter([False] * 13 + [True])
    assert not Fleet(work, device="cpu", workers=workers).go(lambda: next(asked))
    for job in work:
        assert records.load(Path(job.folder)).status == "stopped"
    assert Fleet(work, device="cpu").go()
    assert_same_records(alone(tmp_path, experiments), work)


def test_checkpoints_on_the_way_change_nothing(tmp_path):
    experiments = [small(memory, **LENGTH) for memory in ("lser", "per")]
    work = jobs(tmp_path, *experiments)
    Fleet(work, device="cpu", checkpoint_seconds=1e-6).go()
    assert_same_records(alone(tmp_path, experiments), work)


def test_a_fleet_may_be_continued_by_single_runs(tmp_path):
    experiments = [small(memory, **LENGTH) for memory in ("lser", "per")]
    work = jobs(tmp_path, *experiments)
    asked = iter([False] * 13 + [True])
    Fleet(work, device="cpu").go(lambda: next(asked))
    for experiment, job, one in zip(experiments, work, alone(tmp_path, experiments), strict=True):
        Run(experiment, Path(job.folder)).go()
        mine = (Path(job.folder) / records.CURVE).read_bytes()
        assert mine == (Path(one) / records.CURVE).read_bytes()


def test_a_seat_that_fails_fails_alone(tmp_path, monkeypatch):
    experiments = [small("per", **LENGTH), small("lser", **LENGTH), small("uniform", **LENGTH)]
    work = jobs(tmp_path, *experiments)
    fleet = Fleet(work, device="cpu")
    seat = fleet.squads[0]._links[0]._crew.seats[0]
    heard = []

    def broken(*_):
        heard.append(1)
        if len(heard) == 5:
            raise RuntimeError("out of ideas")
        return Seat.hear(seat, *_)

    monkeypatch.setattr(seat, "hear", broken)
    fleet.go()
    assert "out of ideas" in records.load(Path(work[0].folder)).meta["error"]
    assert_same_records(alone(tmp_path, experiments[1:]), work[1:])


@pytest.mark.slow
def test_a_crew_that_dies_takes_only_its_own_runs(tmp_path):
    experiments = [small(memory, **LENGTH) for memory in ("per", "lser", "uniform")]
    work = jobs(tmp_path, *experiments)
    fleet = Fleet(work, device="cpu", workers=3)
    asked = []

    def stop():
        asked.append(1)
        if len(asked) == 9:
            fleet.squads[0]._links[0]._process.kill()
        return False

    fleet.go(stop)
    assert records.load(Path(work[0].folder)).status == "died"
    assert_same_records(alone(tmp_path, experiments[1:]), work[1:])


def test_what_the_critic_says_reaches_those_who_watch(tmp_path):
    work = jobs(tmp_path, small("per", knobs={"diagnose_every": 5}, **LENGTH))
    fleet = Fleet(work, device="cpu")
    seen = []
    fleet.squads[0]._links[0]._crew.seats[0].watch = lambda status: seen.append(status.step.learned)
    fleet.go()
    found = [learned.values for learned in seen if learned is not None]
    assert len(found) > 3
    assert all(values.replayed_mean <= values.replayed_largest for values in found)


def test_an_evaluation_that_fails_ends_its_run_alone(tmp_path, monkeypatch):
    experiments = [small("lser", **LENGTH), small("uniform", **LENGTH)]
    work = jobs(tmp_path, *experiments)
    fleet = Fleet(work, device="cpu")

    def broken(*_):
        raise RuntimeError("no more users")

    monkeypatch.setattr(fleet.squads[0]._links[0]._crew.seats[0].run, "_evaluate", broken)
    fleet.go()
    assert "no more users" in records.load(Path(work[0].folder)).meta["error"]
    assert records.load(Path(work[0].folder)).status == "failed"
    assert_same_records(alone(tmp_path, experiments[1:]), work[1:])


def test_runs_of_different_pace_are_refused(tmp_path):
    with pytest.raises(ValueError, match="equal architectures and pace"):
        Fleet(jobs(tmp_path, *(small(batch_size=n) for n in (8, 16))), device="cpu")


KILLED = """
import json, sys, torch
torch.set_num_threads(1)
from lser.experiments.study import Job
from lser.fleet.run import Fleet
jobs = [Job(*job) for job in json.loads(sys.argv[1])]
Fleet(jobs, device="cpu", checkpoint_seconds=0.05).go()
"""


def test_a_killed_fleet_goes_on_from_its_checkpoint_and_ends_with_the_same_records(tmp_path):
    length = {**LENGTH, "sessions": 60, "evaluate_every": 20}
    experiments = [small(memory, **length) for memory in ("lser", "per")]
    work = jobs(tmp_path, *experiments)
    command = [sys.executable, "-c", KILLED, json.dumps(work)]
    environment = {**os.environ, "PYTHONPATH": str(Path(records.__file__).parents[2])}
    checkpoints = Path(work[1].folder) / "checkpoints"

    def kill_after_a_checkpoint():
        before = set(checkpoints.glob("*.lser"))
        process = subprocess.Popen(command, env=environment)
        until(lambda: set(checkpoints.glob("*.lser")) - before or process.poll() is not None)
        process.kill()
        process.wait()

    kill_after_a_checkpoint()
    kill_after_a_checkpoint()
    Fleet(work, device="cpu").go()
    assert_same_records(alone(tmp_path, experiments), work)


def test_squads_are_one_at_least(tmp_path):
    with pytest.raises(ValueError, match="split must be >= 1, got 0"):
        Fleet(jobs(tmp_path, small()), device="cpu", split=0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("agent", ["ddpg", "td3", "sac"])
def test_on_an_accelerator_a_fleet_starts_as_its_runs_would_alone(agent, tmp_path):
    # short: rounding differs, and sooner or later tips a choice between near-equals
    length = {**LENGTH, "sessions": 6, "evaluate_every": 3}
    experiments = [small(memory, agent, **length) for memory in ("lser", "per", "uniform")]
    work = jobs(tmp_path, *experiments)
    assert Fleet(work, device="cuda", workers=2).go()
    for one, job in zip(alone(tmp_path, experiments), work, strict=True):
        mine, its = (records.load(Path(f)).curve for f in (job.folder, one))
        for line, expected in zip(mine, its, strict=True):
            assert line["updates"] == expected["updates"]
            assert np.isclose(line["reward"], expected["reward"], rtol=0.02, atol=0.02)


@pytest.fixture
def launched(monkeypatch):
    """Learners are stacked on the CPU as on an accelerator; how many updates each launch had."""
    found = []

    class Watched(DeviceStack):
        def launch(self, active, first, **options):
            found.append(len(active))
            super().launch(active, first, **options)

    def stacked(team, rows, device, buffers, urgent):
        return Watched(team, packed(team, rows, device), buffers, torch.device(device))

    def packed(team, rows, device):
        return team.batch_shape(rows, packed=True)

    monkeypatch.setattr("lser.fleet.squad.make_stack", stacked)
    monkeypatch.setattr("lser.fleet.squad.stack_shape", packed)
    return found


@pytest.mark.parametrize("agent", ["ddpg", "td3", "sac"])
@pytest.mark.parametrize(("third", "split"), [("per", 1), ("aer", 1), ("aer", 2)])
def test_stacked_learners_make_the_same_fleet_to_rounding(agent, third, split, tmp_path, launched):
    # with PER updates are launched one by one, without it all of a step ahead of its actions
    length = {**LENGTH, "sessions": 8}
    knobs = {"diagnose_every": 7, "value_bound": "auto"}
    experiments = [small(memory, agent, knobs, **length) for memory in ("lser", third, "uniform")]
    work = jobs(tmp_path, *experiments)
    assert Fleet(work, device="cpu", split=split).go()
    assert (max(launched) > 1) == (third != "per")
    for one, job in zip(alone(tmp_path, experiments), work, strict=True):
        mine, its = (records.load(Path(f)).curve for f in (job.folder, one))
        for line, expected in zip(mine, its, strict=True):
            assert line == pytest.approx(expected, abs=1e-3)


def test_stacked_learners_go_on_exactly_where_they_stood(tmp_path, launched):
    knobs = {"diagnose_every": 7, "value_bound": "auto"}
    experiments = [small(memory, "ddpg", knobs, **LENGTH) for memory in ("lser", "uniform")]
    experiments.append(small("lser", knobs=knobs, intervention=0.0, seed=3, **LENGTH))
    experiments.append(small("uniform", knobs={"normalise": True}, **LENGTH))
    whole, parts = (jobs(tmp_path / name, *experiments) for name in ("whole", "parts"))
    assert Fleet(whole, device="cpu").go()
    for steps in (13, 7):
        asked = iter([False] * steps + [True])
        assert not Fleet(parts, device="cpu").go(lambda asked=asked: next(asked))
    assert Fleet(parts, device="cpu", checkpoint_seconds=1e-6).go()
    assert_same_records([job.folder for job in whole], parts)


def test_a_fleet_records_what_the_critics_say(tmp_path):
    work = jobs(tmp_path, small("lser-steady", knobs={"diagnose_every": 8}, **LENGTH))
    assert Fleet(work, device="cpu").go()
    line = records.load(work[0].folder).curve[-1]
    assert line["value_bound_high"] > line["value_bound_low"]
    assert {"value_replayed_mean", "value_spread", "saturated", "one_reward"} <= line.keys()

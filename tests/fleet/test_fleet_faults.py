"""What goes wrong in a fleet: whoever fails ends alone, and nobody else notices."""

import json
import multiprocessing
import threading
import time
from pathlib import Path

import pytest
import torch
from small_runs import LENGTH, alone, assert_same_records, jobs, small

from lser.agents.device_stack import DeviceStack
from lser.experiments import records
from lser.experiments.study import finished
from lser.fleet.links import ProcessLink
from lser.fleet.run import Fleet


def seats_of(fleet):
    return fleet.squads[0]._links[0]._crew.seats


def break_draw(seat, monkeypatch):
    """Let the seat's fifth draw fail."""
    count, draw = [], seat._draw

    def broken(*given):
        count.append(1)
        if len(count) == 5:
            raise RuntimeError("the draw broke")
        return draw(*given)

    monkeypatch.setattr(seat, "_draw", broken)


def break_evaluation(seat, monkeypatch):
    """Let every evaluation of the seat fail."""

    def broken(*_):
        raise RuntimeError("no more users")

    monkeypatch.setattr(seat.run, "_evaluate", broken)


@pytest.mark.parametrize("fault", [break_draw, break_evaluation])
def test_the_last_seat_that_runs_may_fail(fault, tmp_path, monkeypatch):
    work = jobs(tmp_path, small("uniform", **LENGTH))
    fleet = Fleet(work, device="cpu")
    fault(seats_of(fleet)[0], monkeypatch)
    fleet.go()
    record = records.load(work[0].folder)
    assert record.status == "failed"
    assert "RuntimeError" in record.meta["error"]


def test_a_seat_that_fails_in_a_draw_takes_no_step_more(tmp_path, monkeypatch):
    experiments = [small(memory, **LENGTH) for memory in ("lser", "uniform")]
    work = jobs(tmp_path, *experiments)
    fleet = Fleet(work, device="cpu", checkpoint_seconds=1e-6)
    seat, steps = seats_of(fleet)[0], []
    break_draw(seat, monkeypatch)
    crew = fleet.squads[0]._links[0]._crew
    fail = crew._fail
    monkeypatch.setattr(
        crew, "_fail", lambda s, e: (steps.append(s.run.progress.steps), fail(s, e))
    )
    fleet.go()
    assert steps == [seat.run.progress.steps]
    assert not seat.running
    assert records.load(work[0].folder).status == "failed"
    assert_same_records(alone(tmp_path, experiments[1:]), work[1:])


def test_evaluations_of_a_seat_come_one_after_another_beside_one_that_cannot_wait(
    tmp_path, monkeypatch
):
    length = {**LENGTH, "evaluate_every": 1}
    plain, blocking = small("uniform", **length), small("lser", intervention=9.0, seed=3, **length)
    work = jobs(tmp_path, plain, blocking)
    fleet = Fleet(work, device="cpu")
    run = seats_of(fleet)[0].run
    evaluate, inside, most = run._evaluate, [], []

    def slow(*given):
        inside.append(1)
        most.append(len(inside))
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.02)
        try:
            return evaluate(*given)
        finally:
            inside.pop()

    monkeypatch.setattr(run, "_evaluate", slow)
    fleet.go()
    assert set(most) == {1}
    assert_same_records(alone(tmp_path, [plain, blocking]), work)


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_what_ends_before_some_squads_have_begun_leaves_nothing_running(workers, tmp_path):
    work = jobs(tmp_path, *(small(memory, **LENGTH) for memory in ("per", "uniform", "her")))
    fleet = Fleet(work, device="cpu", workers=workers, apart=True)

    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fleet.go(stop)
    found = [json.loads((Path(job.folder) / "meta.json").read_text())["status"] for job in work]
    assert found == ["stopped"] * 3


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_run_whose_folder_cannot_be_made_is_left_out_and_told(workers, tmp_path, caplog):
    (tmp_path / "a file").write_text("")
    [lost] = jobs(tmp_path / "a file", small("per", **LENGTH))
    [kept] = jobs(tmp_path, small("uniform", **LENGTH))
    fleet = Fleet([lost, kept], device="cpu", workers=workers)
    assert fleet.seats == 1
    assert fleet.go()
    assert records.load(kept.folder).status == "done"
    assert workers or lost.folder in caplog.text


def test_a_record_that_cannot_be_written_ends_nobody_else(tmp_path, monkeypatch, caplog):
    experiments = [small(memory, **LENGTH) for memory in ("lser", "uniform")]
    work = jobs(tmp_path, *experiments)
    fleet = Fleet(work, device="cpu")
    seat = seats_of(fleet)[0]
    break_draw(seat, monkeypatch)

    def full(_error):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(seat.run.recorder, "fail", full)
    fleet.go()
    assert "the draw broke; its record cannot say so" in caplog.text
    assert_same_records(alone(tmp_path, experiments[1:]), work[1:])


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_fleet_that_cannot_sit_down_leaves_no_crew_waiting(workers, tmp_path, monkeypatch):
    def no_room(*_, **__):
        raise RuntimeError("out of memory")

    monkeypatch.setattr("lser.fleet.squad.make_stack", no_room)
    before = set(multiprocessing.active_children())
    with pytest.raises(RuntimeError, match="out of memory"):
        Fleet(jobs(tmp_path, small(**LENGTH)), device="cpu", workers=workers)
    assert set(multiprocessing.active_children()) == before


@pytest.mark.slow
def test_a_crew_that_dies_before_it_has_seats_takes_only_its_own_runs(tmp_path, monkeypatch):
    join, count = ProcessLink.join, []

    def killed(link):
        count.append(1)
        if len(count) == 1:
            link._process.kill()
            link._process.join()
            return link.receive() and link.receive()  # what it may have said, then its end
        return join(link)

    monkeypatch.setattr(ProcessLink, "join", killed)
    work = jobs(tmp_path, small("lser", **LENGTH), small("uniform", **LENGTH))
    fleet = Fleet(work, device="cpu", workers=2)
    assert fleet.seats == 1
    assert fleet.go()
    assert sorted(finished(job) for job in work) == [False, True]


def test_what_critics_said_is_read_once_their_updates_have_ended(tmp_path, monkeypatch):
    class Late(DeviceStack):
        """A stack whose results are there once somebody has waited for them, as on a device."""

        late = False

        def launch(self, active, first, **options):
            super().launch(active, first, **options)
            self.late = True

        def ready(self):
            return not self.late

        def found(self):
            self.late = False
            return super().found()

        def take_values(self):
            assert not (self.looked and self.late)
            return super().take_values()

    def packed(team, rows, device):
        return team.batch_shape(rows, packed=True)

    def stacked(team, rows, device, buffers, urgent):
        return Late(team, packed(team, rows, device), buffers, torch.device(device))

    monkeypatch.setattr("lser.fleet.squad.make_stack", stacked)
    monkeypatch.setattr("lser.fleet.squad.stack_shape", packed)
    work = jobs(tmp_path, *(small(memory, **LENGTH) for memory in ("lser", "uniform")))
    assert Fleet(work, device="cpu").go()

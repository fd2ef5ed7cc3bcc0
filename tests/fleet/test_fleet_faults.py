"""What goes wrong in a fleet: whoever fails ends alone, and nobody else notices."""

import json
import threading
import time
from pathlib import Path

import pytest
import torch
from small_runs import LENGTH, alone, assert_same_records, jobs, small

from lser.agents.device_stack import DeviceStack
from lser.experiments import records
from lser.fleet.run import Fleet


def seats_of(fleet):
    return fleet.squads[0]._links[0]._crew.seats


def break_draw(seat, monkeypatch, at):
    """Let the seat's draws fail from number `at` on."""
    count, draw = [], seat._draw

    def broken(*given):
        count.append(1)
        if len(count) == at:
            raise RuntimeError("the draw broke")
        return draw(*given)

    monkeypatch.setattr(seat, "_draw", broken)


def break_evaluation(seat, monkeypatch, at):
    def broken(*_):
        raise RuntimeError("no more users")

    monkeypatch.setattr(seat.run, "_evaluate", broken)


@pytest.mark.parametrize("fault", [break_draw, break_evaluation])
def test_the_last_seat_that_runs_may_fail(fault, tmp_path, monkeypatch):
    work = jobs(tmp_path, small("uniform", **LENGTH))
    fleet = Fleet(work, device="cpu")
    fault(seats_of(fleet)[0], monkeypatch, 5)
    fleet.go()
    record = records.load(work[0].folder)
    assert record.status == "failed"
    assert "RuntimeError" in record.meta["error"]


def test_a_seat_that_fails_in_a_draw_takes_no_step_more(tmp_path, monkeypatch):
    experiments = [small(memory, **LENGTH) for memory in ("lser", "uniform")]
    work = jobs(tmp_path, *experiments)
    fleet = Fleet(work, device="cpu", checkpoint_seconds=1e-6)
    seat, steps = seats_of(fleet)[0], []
    break_draw(seat, monkeypatch, 5)
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

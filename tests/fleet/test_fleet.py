"""Runs in lockstep leave the records they would leave alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lser.experiments import records
from lser.experiments.presets import preset
from lser.experiments.run import Run
from lser.experiments.study import job_for
from lser.fleet.learner import StackedDDPG
from lser.fleet.map import Fleets
from lser.fleet.run import Fleet, groups
from lser.replay.base import Replay

MEMORIES = ("lser", "per", "uniform", "aer")


def small(memory="lser", agent="ddpg", **changes):
    base = preset("bazaar", memory, agent, scale="quick")
    sizes = {"sessions": 40, "evaluate_every": 20, "evaluate_sessions": 20, "final_sessions": 40}
    sizes |= {"users": 4, "batch_size": 16, "capacity": 500}
    return replace(base, **{**sizes, **changes})


def jobs(folder, *experiments):
    return [job_for(experiment, folder, "test") for experiment in experiments]


def test_a_fleet_leaves_the_records_of_its_runs_alone(tmp_path):
    # short: rounding differs, and sooner or later tips a choice between near-equals
    length = {"sessions": 12, "evaluate_every": 4, "learning_starts": 16}
    experiments = {memory: small(memory, **length) for memory in MEMORIES}
    apart = [Run(e, tmp_path / "alone" / memory) for memory, e in experiments.items()]
    for one in apart:
        one.go()
    fleet = [Run(e, tmp_path / "fleet" / memory) for memory, e in experiments.items()]
    Fleet(fleet, device="cpu").go()
    for one, other in zip(apart, fleet, strict=True):
        assert other.progress.updates == one.progress.updates > 50
        mine, its = (run.built.agent.state_dict()["parameters"] for run in (one, other))
        torch.testing.assert_close(mine, its, rtol=0, atol=1e-4)
        alone, record = records.load(one.folder), records.load(other.folder)
        assert record.status == "done"
        assert record.meta["engine"] == "fleet on cpu"
        assert set(record.final["times"]) == set(alone.final["times"])
        assert len(record.curve) == len(alone.curve) == 4
        for line, expected in zip(record.curve, alone.curve, strict=True):
            assert line == pytest.approx(expected, abs=1e-3)


def test_runs_of_different_lengths_each_get_their_sessions(tmp_path):
    lengths = (10, 20, 30, 60)
    runs = [Run(small(sessions=n, seed=n), tmp_path / str(n)) for n in lengths]
    Fleet(runs, device="cpu").go()
    for length in lengths:
        record = records.load(tmp_path / str(length))
        assert record.status == "done"
        assert length <= record.final["sessions"] < length + 4


def test_a_fleet_asked_to_stop_leaves_stopped_records(tmp_path):
    fleet = Fleet([Run(small(), tmp_path)], device="cpu")
    fleet.go(lambda: True)
    assert records.load(tmp_path).status == "stopped"


def test_a_failure_is_kept_in_every_unfinished_record(tmp_path):
    def broken(status):
        raise RuntimeError("out of ideas")

    runs = [Run(small(memory), tmp_path / memory) for memory in ("lser", "uniform")]
    with pytest.raises(RuntimeError):
        Fleet(runs, device="cpu", watchers=[broken, None]).go()
    for memory in ("lser", "uniform"):
        assert "out of ideas" in records.load(tmp_path / memory).meta["error"]


def test_runs_of_different_schedules_are_refused(tmp_path):
    runs = [Run(small(batch_size=n), tmp_path / str(n)) for n in (8, 16)]
    with pytest.raises(ValueError, match="equal schedules"):
        Fleet(runs, device="cpu")


def test_groups_keep_sizes_and_schedules_apart_and_put_long_runs_first(tmp_path):
    plain = [small("uniform"), small("lser", sessions=90), small("per", seed=3)]
    apart = [small("her"), small("lser", users=8)]
    found = groups(jobs(tmp_path, *plain, *apart))
    assert sorted(map(len, found)) == [1, 1, 3]
    assert [job.experiment["sessions"] for job in max(found, key=len)] == [90, 40, 40]


@pytest.mark.parametrize("agent", ["td3", "sac"])
def test_learners_that_cannot_be_stacked_are_named(agent, tmp_path):
    with pytest.raises(ValueError, match=f"(?i)stacks DDPG.*got {agent}"):
        groups(jobs(tmp_path, small(agent=agent)))


def test_fleets_are_small_enough_to_occupy_every_process(tmp_path):
    many = jobs(tmp_path, *(small(seed=seed) for seed in range(10)))
    assert sorted(map(len, Fleets(processes=4).fleets(many))) == [2, 2, 3, 3]
    assert sorted(map(len, Fleets(size=2, processes=1).fleets(many))) == [2] * 5
    mixed = [*many, *jobs(tmp_path, *(small("her", seed=seed) for seed in range(3)))]
    assert sorted(map(len, Fleets(processes=4).fleets(mixed))) == [3, 3, 3, 4]


def test_every_memory_is_dealt_to_every_fleet(tmp_path):
    cells = [small(m, seed=seed, label=m) for seed in range(2) for m in ("lser", "uniform")]
    for fleet in Fleets(processes=2).fleets(jobs(tmp_path, *cells)):
        assert {job.experiment["label"] for job in fleet} == {"lser", "uniform"}


def test_staged_rows_are_the_batch_whichever_memory_drew_it(tmp_path):
    for memory in ("lser", "per", "uniform", "aer", "ser", "der", "her"):
        under_way = Run(small(memory, sessions=20), tmp_path / memory)
        Fleet([under_way], device="cpu").go()
        batch = under_way.replay.sample(16, query=under_way.progress.observation[0])
        learner = StackedDDPG([under_way.built.agent], 16, "cpu")
        learner.stage(0, batch)
        flags = batch.terminated[:, None], batch.weights[:, None]
        parts = (batch.observation, batch.action, batch.reward[:, None], batch.next_observation)
        assert np.array_equal(learner._staging[0][0], np.hstack([*parts, *flags]))


def test_fleets_run_jobs_in_processes(tmp_path):
    many = jobs(tmp_path, *(small(memory) for memory in ("lser", "uniform", "her")))
    started = []
    done = list(Fleets(device="cpu", processes=2).run(many, started=started.append))
    assert {job.folder for job in started} == {job.folder for job in many}
    assert len(done) == 3
    assert all(end.ok for end in done)


def test_runs_past_the_deadline_are_not_ok(tmp_path):
    many = jobs(tmp_path, small())
    fleets = Fleets(device="cpu", processes=1, deadline_seconds=1e-3)
    assert [end.ok for end in fleets.run(many, started=lambda job: None)] == [False]
    assert records.load(many[0].folder).status == "stopped"


@pytest.mark.parametrize("knob", ["size", "processes", "deadline_seconds"])
def test_knobs_are_checked(knob):
    with pytest.raises(ValueError, match=knob):
        Fleets(**{knob: 0})


def test_deaf_memories_draw_the_same_whatever_the_errors(tmp_path):
    from lser.fleet.run import DEAF

    def draws(memory, scale):
        built = Run(small(memory), tmp_path / f"{memory}{scale}").built
        assert isinstance(built.replay, Replay)
        assert isinstance(built.replay, DEAF)
        seen, acted = built.agent.observation_dim, built.agent.action_dim
        rng, flags = np.random.default_rng(0), np.zeros(50, np.bool_)
        block = [rng.random((50, n), np.float32) for n in (seen, acted, seen)]
        reward = rng.random(50, np.float32)
        block[0][:, -1] = block[2][:, -1] = 1.0  # hindsight reads a goal there
        built.replay.extend(block[0], block[1], reward, block[2], flags, flags)
        for _ in range(5):
            batch = built.replay.sample(16, query=block[0][0])
            built.replay.update(batch.ids, scale * np.arange(16, dtype=np.float32))
        return batch.ids

    for memory in ("lser", "uniform", "aer", "her"):
        assert np.array_equal(draws(memory, 0.0), draws(memory, 9.0))

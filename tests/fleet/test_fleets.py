"""A study's runs as fleets: which go together, in which order, in processes, until a deadline."""

from pathlib import Path

import pytest
from small_runs import LENGTH, alone, assert_same_records, jobs, small

from lser.experiments import records
from lser.fleet.map import Fleets, groups
from lser.fleet.run import Fleet


def test_groups_keep_sizes_and_pace_apart_and_put_long_runs_first(tmp_path):
    plain = [small("uniform"), small("lser", sessions=90), small("per", seed=3)]
    plain.append(
        small("lser", knobs={"discount": 0.5, "noise_scale": 0.3, "weight_noise": 0.1}, seed=4)
    )
    plain.append(small("her", seed=5))
    apart = [small("lser", users=8), small("lser", "td3")]
    apart.append(small("lser", knobs={"critic": "product"}))
    found = groups(jobs(tmp_path, *plain, *apart))
    assert sorted(map(len, found)) == [1, 1, 1, 5]
    assert [job.experiment["sessions"] for job in max(found, key=len)] == [90, 40, 40, 40, 40]


def test_learners_that_cannot_be_stacked_are_named(tmp_path):
    with pytest.raises(ValueError, match="own device is cpu, got ddpg on meta"):
        groups(jobs(tmp_path, small(knobs={"device": "meta"})))


def test_fleets_are_of_about_equal_sizes_and_every_memory_is_dealt_to_each(tmp_path):
    cells = [small(m, seed=seed, label=m) for seed in range(5) for m in ("lser", "uniform")]
    found = Fleets(size=4).fleets(jobs(tmp_path, *cells))
    assert sorted(map(len, found)) == [3, 3, 4]
    for fleet in found:
        assert {job.experiment["label"] for job in fleet} == {"lser", "uniform"}


@pytest.mark.slow
def test_fleets_run_jobs_in_processes(tmp_path):
    many = jobs(tmp_path, *(small(memory, **LENGTH) for memory in ("lser", "uniform", "her")))
    started = []
    done = list(Fleets(device="cpu", workers=1).run(many, started=started.append))
    assert {job.folder for job in started} == {job.folder for job in many}
    assert len(done) == 3
    assert all(end.ok for end in done)


@pytest.mark.slow
def test_runs_past_the_deadline_have_checkpoints_and_are_not_ok(tmp_path):
    many = jobs(tmp_path, small(**LENGTH))
    fleets = Fleets(device="cpu", workers=1, deadline_seconds=1e-3)
    assert [end.ok for end in fleets.run(many, started=lambda job: None)] == [False]
    assert records.load(Path(many[0].folder)).status == "stopped"
    assert list((Path(many[0].folder) / "checkpoints").glob("*.lser"))
    Fleet(many, device="cpu").go()
    assert_same_records(alone(tmp_path, [small(**LENGTH)]), many)


@pytest.mark.slow
def test_fleets_that_the_deadline_finds_waiting_say_so(tmp_path):
    many = jobs(tmp_path, small(**LENGTH), small(seed=1, **LENGTH))
    fleets = Fleets(device="cpu", size=1, workers=1, deadline_seconds=1e-3)
    started = []
    ends = list(fleets.run(many, started=started.append))
    assert [(end.ok, end.why) for end in ends] == [
        (False, ""),
        (False, "the deadline passed before it began"),
    ]
    assert [end.job for end in ends] == started
    assert not Path(ends[1].job.folder).exists()


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"size": 0}, "size must be at least 1"),
        ({"workers": -1}, "workers must not be negative"),
        ({"deadline_seconds": 0}, "deadline_seconds must be positive"),
        ({"checkpoint_seconds": 0}, "checkpoint_seconds must be positive"),
    ],
)
def test_knobs_are_checked(knobs, message):
    with pytest.raises(ValueError, match=message):
        Fleets(**knobs)

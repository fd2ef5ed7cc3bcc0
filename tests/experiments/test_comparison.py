"""``lser.compare``: the plan, the runs and what they show."""

from dataclasses import replace

import pytest

import lser
from lser.comparison import Comparison, plan, reference
from lser.experiments import records
from lser.experiments.presets import learnable
from lser.experiments.study import Here, job_for


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A small comparison of a memory, the reference and settings of one's own."""
    out = tmp_path_factory.mktemp("compared")
    small = replace(lser.preset("bazaar", "lser", scale="quick"), label="lser, 2 bits")
    small = replace(small, memory=replace(small.memory, bits=2))
    return lser.compare("lser", "uniform", small, sessions=6, seeds=2, out=out)


@pytest.mark.slow
def test_it_has_arms_scores_a_verdict_and_a_table(found):
    assert found.arms == ("lser", "uniform", "lser, 2 bits")
    assert all(sorted(seeds) == [0, 1] for seeds in found.scores.values())
    assert found.against == "uniform"
    assert "over 2 paired seeds" in found.verdict
    assert [row[0] for row in found.table.rows].count("uniform") == 1
    assert max(map(len, str(found).splitlines())) <= 80


@pytest.mark.slow
def test_its_page_is_one_file(found, tmp_path):
    page = found.page(tmp_path / "page")
    assert page == tmp_path / "page" / "index.html"
    assert "lser against uniform against lser, 2 bits" in page.read_text()


@pytest.mark.slow
def test_users_are_the_same_for_every_arm(found):
    first = {run.label: run.curve[0]["metric"] for run in found.records if run.seed == 0}
    assert first["lser"] == first["uniform"] == first["lser, 2 bits"]


def test_all_arms_of_a_seed_come_before_the_next():
    runs = plan(["lser", "uniform"], seeds=2, sessions=100)
    assert [(run.label, run.seed) for run in runs] == [
        ("lser", 0),
        ("uniform", 0),
        ("lser", 1),
        ("uniform", 1),
    ]
    assert {run.sessions for run in runs} == {100}
    assert {run.study for run in runs} == {"compare"}
    assert {run.evaluate_every for run in runs} == {5}


def test_agents_are_arms_too():
    runs = plan(["lser"], agents=("ddpg", "sac"), seeds=1)
    assert [run.label for run in runs] == ["lser with ddpg", "lser with sac"]
    assert [run.names[2] for run in runs] == ["ddpg", "sac"]


def test_every_arm_has_the_simulator_s_settings_that_work():
    (run,) = plan(["reward-top"], agents=["ddpg"], seeds=1)
    assert (run.agent.noise_scale, run.batch_size) == (1.0, 32)
    assert run.memory.fill == "uniform"


def test_without_a_name_the_agent_is_the_one_that_learns_most():
    assert [run.names[2] for run in plan(["uniform"], seeds=1)] == ["click-model"]
    assert [run.names[2] for run in plan(["uniform"], on="Pendulum-v1", seeds=1)] == ["ddpg"]


def test_the_cure_is_for_every_arm():
    own = replace(lser.preset("bazaar", "per", "ddpg", scale="quick"), label="mine")
    runs = plan(["lser", "uniform", own], agents=["ddpg"], cure=True, seeds=1)
    assert [run.label for run in runs] == ["lser", "uniform", "mine"]
    assert {run.memory.newest for run in runs} == {8}
    assert {run.agent.value_bound for run in runs} == {"auto"}
    assert runs[0].memory == lser.preset("bazaar", "lser-steady", "ddpg").memory


@pytest.mark.parametrize(
    ("arms", "options", "message"),
    [
        ([], {}, "arms is empty"),
        (["lser"], {"seeds": 0}, "seeds must be at least 1, got 0"),
        (["lser"], {"sessions": 0}, "sessions must be at least 1, got 0"),
        (["lser", "lser"], {}, "'lser' is named twice"),
        (["lsr"], {}, "did you mean lser"),
    ],
)
def test_a_mistake_is_named(arms, options, message):
    with pytest.raises(ValueError, match=message):
        plan(arms, **options)


def test_what_is_measured_against():
    assert reference(["lser", "uniform", "per"]) == "uniform"
    assert reference(["lser", "per"]) == "per"
    assert reference(["lser", "per"], "lser") == "lser"
    with pytest.raises(ValueError, match="unknown arm 'prr'; did you mean per"):
        reference(["lser", "per"], "prr")


def test_a_failed_run_says_why(tmp_path, monkeypatch):
    def fail(job):
        raise RuntimeError("the shop burnt down")

    monkeypatch.setattr("lser.experiments.study.work", fail)
    with pytest.raises(RuntimeError, match="1 of 1 runs failed"):
        lser.compare("uniform", sessions=5, seeds=1, out=tmp_path)


def test_runs_of_this_process_leave_torch_as_it_was(tmp_path, monkeypatch):
    import torch

    monkeypatch.setattr("lser.experiments.study.work", lambda job: torch.set_num_threads(1))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    (run,) = plan(["uniform"], seeds=1)
    started = []
    (done,) = Here().run([job_for(run, tmp_path, "")], started=started.append)
    assert done.ok
    assert len(started) == 1
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)


def test_an_interruption_ends_the_runs_of_this_process(tmp_path, monkeypatch):
    from lser.experiments.stopping import Interrupted

    def stop(job):
        raise Interrupted

    monkeypatch.setattr("lser.experiments.study.work", stop)
    (run,) = plan(["uniform"], seeds=1)
    with pytest.raises(KeyboardInterrupt):
        list(Here().run([job_for(run, tmp_path, "")], started=lambda job: None))


def test_an_unfinished_run_has_no_score():
    experiment = {"label": "a", "seed": 0, "simulator": {"name": "s"}, "memory": {"name": "m"}}
    assert Comparison((records.Record(None, experiment),)).scores == {"a": {}}


def test_platforms_that_nobody_learns_at_their_presets_are_compared_where_they_are_learned():
    runs = plan(["lser", "uniform"], on="recogym", cure=True, sessions=100, seeds=1)
    known = learnable("recogym")
    assert {run.simulator for run in runs} == {known.simulator}
    assert {run.agent.discount for run in runs} == {0.0}
    assert {run.agent.value_bound for run in runs} == {"auto"}
    assert [(run.sessions, run.evaluate_every) for run in runs] == [(100, 5)] * 2

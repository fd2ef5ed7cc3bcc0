"""What is checked before anything starts."""

from dataclasses import replace

import pytest

from lser.experiments import ready
from lser.experiments.experiment import Experiment
from lser.experiments.presets import preset
from lser.replay.memories.params import AttentiveParams


def test_a_run_that_can_begin_passes(tmp_path):
    ready.check([Experiment(capacity=100)], tmp_path / "not" / "yet")
    assert not (tmp_path / "not").exists()


@pytest.mark.parametrize("under", ["", "deeper/still"])
def test_a_file_in_the_place_of_a_folder_is_named(tmp_path, under):
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(ValueError, match="notes' is a file and records need a folder"):
        ready.check([Experiment(capacity=100)], tmp_path / "notes" / under)


def test_a_device_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    ready.check_device("cpu")
    with pytest.raises(ValueError, match="device 'cuda:1': PyTorch sees no CUDA GPU"):
        ready.check_device("cuda:1")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    ready.check_device("cuda:1")


def test_a_run_s_device_is_looked_at(monkeypatch, tmp_path):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    run = Experiment(capacity=100)
    with pytest.raises(ValueError, match="no CUDA"):
        ready.check([replace(run, agent=replace(run.agent, device="cuda"))], tmp_path)


def test_spaces_no_agent_acts_in_are_refused(tmp_path):
    with pytest.raises(ValueError, match="agents act in a Box"):
        ready.check([preset("CartPole-v1")], tmp_path)


def test_a_memory_that_does_not_fit_is_refused(tmp_path):
    with pytest.raises(MemoryError, match="GiB"):
        ready.check([Experiment(capacity=10**13)], tmp_path)


def test_every_memory_is_looked_at_in_every_simulator(tmp_path, monkeypatch):
    looked_at = []
    monkeypatch.setattr(ready, "check_memory", lambda *needs, runs: looked_at.append(needs[1:]))
    aer = Experiment(capacity=100, memory=AttentiveParams())
    swung = preset("Pendulum-v1")
    runs = [Experiment(capacity=100), aer, swung, replace(swung, memory=aer.memory)]
    ready.check(runs, tmp_path)
    assert [needs[2] for needs in looked_at] == [run.memory for run in runs]
    assert [needs[:2] for needs in looked_at[2:]] == [(3, 1), (3, 1)]


def test_every_simulator_is_made_once(tmp_path, monkeypatch):
    made = []
    real = ready.make_env
    monkeypatch.setattr(ready, "make_env", lambda run, users: made.append(1) or real(run, users))
    runs = [Experiment(capacity=100, seed=seed) for seed in range(5)]
    ready.check(runs, tmp_path)
    assert len(made) == 1


def test_sizes_are_those_of_the_spaces():
    assert ready.sizes(preset("Pendulum-v1")) == (3, 1)

"""Progress files, memory that is left, and what a run tells of itself."""

import json
import logging
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from lser.agents.protocol import Values
from lser.catalogue import MEMORIES
from lser.experiments import preflight, progress
from lser.experiments.experiment import Experiment
from lser.experiments.preflight import _container_bytes, replay_bytes
from lser.experiments.progress import PROGRESS, ProgressFile, Status, read, summary
from lser.experiments.signals import VALUES, Signals
from lser.simulators.base import Metric
from lser.training import Progress

WHOLE = {
    "sessions": 5, "of": 10, "metric": "ctr", "so_far": 0.5, "evaluation": None, "left": 2.5,
    "steps_per_second": 10.0,
}  # fmt: skip


class Step:
    def __init__(self, sessions=25, steps=300, updates=290, reward=(), **info):
        self.sessions, self.steps, self.updates, self.info = sessions, steps, updates, info
        self.reward = np.array(reward, np.float32)


def status(sessions=25, elapsed=30.0, evaluation=None):
    return Status(Step(sessions), 100, "ctr", 0.25, evaluation, elapsed)


def test_a_summary_has_the_pace_and_the_time_left():
    found = summary(status(evaluation={"metric": 0.75, "reward": 3.0}))
    assert (found["sessions"], found["of"], found["steps"], found["updates"]) == (25, 100, 300, 290)
    assert found["steps_per_second"] == 10.0
    assert found["left"] == pytest.approx(90.0)
    assert found["evaluation"] == 0.75


def test_before_the_first_session_nothing_is_known_of_the_end():
    found = summary(status(sessions=0, elapsed=0.0))
    assert (found["left"], found["steps_per_second"], found["evaluation"]) == (None, 0.0, None)
    assert summary(status(sessions=104))["left"] == 0.0


def test_what_is_written_can_be_read(tmp_path):
    ProgressFile(tmp_path)(status())
    assert read(tmp_path) == summary(status())


def test_it_is_written_every_few_seconds(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    write = ProgressFile(tmp_path, every=2.0)
    for second, sessions in ((0.0, 1), (1.9, 2), (2.0, 3), (3.9, 4)):
        now[0] = 100.0 + second
        write(status(sessions))
    assert read(tmp_path)["sessions"] == 3


@pytest.mark.parametrize(
    "change",
    [
        {"sessions": None},
        {"sessions": "5"},
        {"of": 0},
        {"metric": 3},
        {"so_far": None},
        {"evaluation": "high"},
        {"left": [1]},
    ],
)
def test_a_file_that_is_not_whole_is_none(change, tmp_path):
    (tmp_path / PROGRESS).write_text(json.dumps(WHOLE))
    assert read(tmp_path) == WHOLE
    (tmp_path / PROGRESS).write_text(json.dumps({**WHOLE, **change}))
    assert read(tmp_path) is None


@pytest.mark.parametrize("data", [b"", b"\xff", b"[" * 100_000, b"null", b"[1]"])
def test_bytes_of_any_kind_are_none(data, tmp_path):
    assert read(tmp_path) is None
    (tmp_path / PROGRESS).write_bytes(data)
    assert read(tmp_path) is None


@pytest.mark.parametrize(("observation_dim", "action_dim"), [(91, 27), (8, 2)])
@pytest.mark.parametrize("name", ["lser", "uniform", "per", "der", "aer", "ser", "her"])
def test_a_full_memory_takes_no_more_than_was_said(name, observation_dim, action_dim):
    capacity, rng, kind = 20_000, np.random.default_rng(0), MEMORIES[name].load()
    blocks = [traffic(rng, 500, observation_dim, action_dim) for _ in range(16)]
    kind(1_000, observation_dim, action_dim).extend(*blocks[0])  # compile
    tracemalloc.start()
    memory = kind(capacity, observation_dim, action_dim)
    for turn in range(50):
        memory.extend(*blocks[turn % 16])
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    said = replay_bytes(capacity, observation_dim, action_dim, kind.Params())
    row = 4 * (2 * observation_dim + action_dim + 3)
    assert row * capacity <= taken <= said <= 2 * taken


def traffic(rng, size, observation_dim, action_dim):
    """A block for any memory: the last component of an observation is a goal."""
    observation = rng.standard_normal((size, observation_dim), np.float32)
    observation[:, -1] = 0.1 * rng.integers(1, 11, size)
    action, reward = rng.random((size, action_dim), np.float32), rng.random(size, np.float32)
    return observation, action, reward, observation, rng.random(size) < 0.1, np.zeros(size, bool)


def group(root, listing, files):
    """A tree of control groups, and the list of those that a process is in."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "listing").write_text(listing)
    return _container_bytes(root / "listing", root)


def test_a_container_s_limit_is_what_is_left_of_it(tmp_path):
    files = {"a/b/memory.max": "max\n", "a/b/memory.current": "5"}
    files |= {"a/memory.max": "1000\n", "a/memory.current": "300\n"}
    files |= {"memory.max": "5000", "memory.current": "4900"}
    assert sorted(group(tmp_path, "0::/a/b\n", files)) == [100, 700]


def test_the_first_version_of_control_groups_has_its_own_names(tmp_path):
    files = {"memory/x/memory.limit_in_bytes": "900", "memory/x/memory.usage_in_bytes": "950"}
    listing = "4:memory:/x\n3:cpu,cpuacct:/x\nnonsense\n"
    assert group(tmp_path, listing, files) == [0]  # over its limit: nothing, and not less


@pytest.mark.parametrize("text", ["many", ""])
def test_limits_that_cannot_be_read_are_none(text, tmp_path):
    files = {"memory.max": text, "memory.current": "1"}
    assert group(tmp_path, "0::/\n", files) == []
    assert _container_bytes(tmp_path / "nowhere", tmp_path) == []


def test_the_smallest_of_all_limits_counts(monkeypatch):
    monkeypatch.setattr(preflight, "_machine_bytes", lambda: 1_000)
    monkeypatch.setattr(preflight, "_container_bytes", lambda *where: [4_000, 600])
    assert preflight.available_bytes() == 600
    preflight.check_memory(4, 3, 2)
    with pytest.raises(MemoryError, match="capacity 100 needs .* for observations of 3 and act"):
        preflight.check_memory(100, 3, 2)


def test_a_system_without_meminfo_has_its_pages(monkeypatch):
    def missing(self, *arguments):
        raise OSError

    monkeypatch.setattr(Path, "read_text", missing)
    assert preflight._machine_bytes() > 2**20


def signals(**settings):
    return Signals(Experiment(**settings), Metric("ctr", "clicks", "shown"), "a run")


def test_what_training_earns_is_the_metric_over_all_of_it():
    watched = signals()
    assert watched.so_far == 0.0
    watched.count(Step(reward=[1.0, 3.0], clicks=np.array([1, 3]), shown=np.array([10, 10])))
    watched.count(Step(reward=[0.0, 0.0], clicks=np.array([0, 0]), shown=np.array([10, 10])))
    assert watched.so_far == pytest.approx(0.1)
    line = watched.line(Progress(steps=4))
    assert line["learning_metric"] == pytest.approx(0.1)
    assert line["learning_reward"] == pytest.approx(1.0)
    assert line["regret"] == pytest.approx(0.46665 * 40 - 4, rel=1e-6)  # Bazaar's oracle


def test_a_metric_per_step_counts_rewards_and_steps():
    watched = Signals(Experiment(), Metric("reward_per_step", "reward", "steps"), "a run")
    watched.count(Step(reward=[1.0, 2.0, 3.0]))
    assert watched.so_far == 2.0
    assert "regret" not in watched.line(Progress())  # no scale is known of it


def test_the_critic_s_values_have_names_in_a_record():
    now = Values(1.0, 2.0, 3.0, 4.0, 5.0, 0.5, 0.0, 10.0)
    line = signals().line(Progress(values=list(now)))
    assert {name: line[name] for name in VALUES.values()} == dict(
        zip(VALUES.values(), now, strict=True)
    )
    assert set(VALUES) == set(Values._fields)


@pytest.mark.parametrize(("mean", "warns"), [(-0.1, False), (-5.0, True)])
def test_values_below_what_rewards_allow_are_said_too(mean, warns, caplog):
    watched, now = signals(), Progress(values=list(Values(mean, 0, 0, 0, 1, 0, 0, 10)))
    with caplog.at_level(logging.WARNING, "lser"):
        watched.warn(now)
    assert ("have left what rewards allow" in caplog.text) == warns

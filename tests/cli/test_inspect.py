"""`lser inspect`: finds what codes explain where there is something, and says so where not."""

import json

import numpy as np
import pytest

from lser.cli import main
from lser.cli.inspect import read
from lser.replay import LocalityReplay, UniformReplay
from lser.replay.inspect import Explained, advise, explained


def log(told, rows=4_000, seed=0):
    """Eight groups of users; the reward and the rewarded action depend on the group if `told`."""
    rng = np.random.default_rng(seed)
    group = rng.integers(8, size=rows)
    observation = np.eye(8, dtype=np.float32)[group] * 3 + rng.normal(size=(rows, 8)) * 0.1
    action = rng.uniform(-1, 1, (rows, 3)).astype(np.float32)
    likes = rng.normal(size=(8, 3))
    score = (likes[group] * action).sum(1) if told else (likes[0] * action).sum(1)
    reward = (rng.random(rows) < 1 / (1 + np.exp(-3 * score + 2))).astype(np.float32) * 5
    reward += np.where(told, group % 2, 0).astype(np.float32)
    return observation.astype(np.float32), action, reward


def test_codes_explain_where_users_differ():
    lines = explained(*log(told=True), bits=(2, 8))
    best = max(lines, key=lambda line: line.action - line.action_chance)
    assert best.bits == 8
    assert best.reward > 0.015
    assert best.action > 0.05
    assert abs(best.reward_chance) < 0.02
    assert abs(best.action_chance) < 0.02
    assert advise(lines, 4_000).pays


def test_codes_explain_nothing_where_users_are_alike():
    lines = explained(*log(told=False), bits=(2, 8))
    assert all(line.reward < 0.02 for line in lines)
    assert all(line.action < 0.02 for line in lines)
    advice = advise(lines, 4_000)
    assert not advice.pays
    assert "nothing to go by" in advice.words.replace("\n", " ")


def test_a_session_does_not_explain_itself():
    """Every session has a place and a level of its own, which say nothing of the others'."""
    rng = np.random.default_rng(0)
    sessions, length = 400, 10
    observation = np.repeat(rng.normal(size=(sessions, 8)), length, axis=0)
    reward = np.repeat(rng.normal(size=sessions), length) + rng.normal(size=sessions * length)
    action = rng.uniform(-1, 1, (sessions * length, 3))
    whole = (part.astype(np.float32) for part in (observation, action, reward))
    lines = explained(*whole, bits=(8, 14))
    assert all(line.reward < 0.02 for line in lines)
    assert not advise(lines, sessions * length).pays


@pytest.mark.parametrize(
    ("reward", "action", "chance", "pays"),
    [
        (-0.01, -0.10, -0.28, False),  # less bad than chance is not good
        (0.01, -0.10, -0.28, False),
        (0.01, 0.05, 0.04, False),
        (0.03, -0.10, -0.28, True),
        (-0.01, 0.05, -0.28, True),
    ],
)
def test_codes_pay_where_they_explain_more_than_chance_and_than_nothing(
    reward, action, chance, pays
):
    line = Explained(10, "raw", reward, action, chance, chance, occupied=100, median=40.0)
    assert advise([line], 4_000).pays == pays


def test_too_short_a_log_is_refused():
    with pytest.raises(ValueError, match="at least 100 transitions"):
        explained(*log(told=True, rows=50))


def saved(tmp_path, kind, **knobs):
    observation, action, reward = log(told=True, rows=600)
    replay = kind(500, 8, 3, **knobs)
    flags = np.zeros(600, bool)
    replay.extend(observation, action, reward, observation, flags, flags)
    replay.save(tmp_path / "memory")
    return tmp_path / "memory", (observation, action, reward)


def test_every_kind_of_log_is_read_by_age(tmp_path):
    path, whole = saved(tmp_path, UniformReplay)
    for mine, theirs in zip(read(path), whole, strict=True):
        assert (mine == theirs[100:]).all()
    names = ("observation", "action", "reward")
    np.savez(tmp_path / "log.npz", **dict(zip(names, whole, strict=True)))
    head = ",".join([*(f"o{k}" for k in range(8)), "a0", "a1", "a2", "reward"])
    table = np.hstack([whole[0], whole[1], whole[2][:, None]])
    np.savetxt(tmp_path / "log.csv", table, delimiter=",", header=head, comments="")
    for name in ("log.npz", "log.csv"):
        for mine, theirs in zip(read(tmp_path / name), whole, strict=True):
            assert np.allclose(mine, theirs, atol=1e-5)


def test_the_command_prints_a_table_and_advice_or_json(tmp_path, capsys):
    path, _ = saved(tmp_path, LocalityReplay, bits=4, store="fifo")
    assert main(["inspect", str(path), "--bits", "4", "8"]) == 0
    shown = capsys.readouterr().out
    assert "standardised" in shown
    assert "Use bits=" in shown
    assert main(["inspect", str(path), "--bits", "4", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["transitions"] == 500
    assert len(told["rows"]) == 3


def test_a_stopped_run_can_be_inspected_and_a_finished_one_says_why_not(tmp_path, capsys):
    from dataclasses import replace

    from lser.experiments.presets import preset
    from lser.experiments.run import Run, run
    from lser.training import train

    small = {"sessions": 30, "evaluate_every": 30, "evaluate_sessions": 2, "final_sessions": 2}
    experiment = replace(preset("bazaar", "lser", "ridge", scale="quick"), **small)
    under_way = Run(experiment, tmp_path / "stopped")
    under_way.begin()
    steps = train(
        under_way.traffic, under_way.built.agent, under_way.replay, batch_size=8,
        seed=0, progress=under_way.progress,
    )  # fmt: skip
    for _ in range(40):
        next(steps)
    under_way.checkpoint()
    assert read(tmp_path / "stopped").observation.shape == (320, 30)
    run(experiment, tmp_path / "done")
    assert main(["inspect", str(tmp_path / "done")]) == 2
    assert "a finished run keeps none" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "x,y\n1,2\n", "needs columns"),
        ("b.csv", "o0,a0,reward\n1,2,zebra\n", "no table of numbers"),
        ("c.csv", "", "c.csv has no rows"),
        ("d.csv", "o0,a0,reward\n\n", "d.csv has no rows"),
        ("e.csv", "o0,a0,reward\n1,2\n", "e.csv names 3 columns and has 2"),
        ("f.csv", "o0,a0,reward\n1,2,3\n1,2\n", "no table of numbers"),
        ("g.npz", "no archive", "g.npz is no .npz of arrays"),
        ("h.npz", "PK\x03\x04 torn", "h.npz is no .npz of arrays"),
        ("i.lser", "not ours", "is not a file that lser saved"),
    ],
)
def test_a_log_that_cannot_be_read_is_named(name, text, message, tmp_path, capsys):
    (tmp_path / name).write_text(text)
    assert main(["inspect", str(tmp_path / name)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("rows", ["0", "-5"])
def test_no_rows_are_not_all_rows(rows, tmp_path, capsys):
    path, _ = saved(tmp_path, UniformReplay)
    assert main(["inspect", str(path), "--rows", rows]) == 2
    assert f"--rows must be >= 1, got {rows}" in capsys.readouterr().err


def test_the_newest_rows_are_looked_at(tmp_path, capsys):
    path, _ = saved(tmp_path, UniformReplay)
    assert main(["inspect", str(path), "--rows", "120", "--bits", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["transitions"] == 120


def test_an_array_alone_is_no_log(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.zeros(3))
    (tmp_path / "x.npy").rename(tmp_path / "x.npz")
    assert main(["inspect", str(tmp_path / "x.npz")]) == 2
    assert "is no .npz of arrays" in capsys.readouterr().err


def test_an_empty_memory_is_said(tmp_path, capsys):
    UniformReplay(10, 2, 1).save(tmp_path / "m")
    assert main(["inspect", str(tmp_path / "m")]) == 2
    assert "the memory is empty" in capsys.readouterr().err


def test_missing_arrays_are_named(tmp_path, capsys):
    np.savez(tmp_path / "x.npz", observation=np.zeros((3, 2)))
    assert main(["inspect", str(tmp_path / "x.npz")]) == 2
    assert "has no action, reward" in capsys.readouterr().err


def test_watching_shows_the_critic_s_values_and_marks_those_that_cannot_be():
    from lser.cli.watch import values_of

    line = {
        "value_replayed_mean": 90.0, "value_replayed_largest": 120.0, "value_own_largest": 80.0,
        "value_own_mean": 70.0,
        "value_bound_low": 0.0, "value_bound_high": 100.0, "value_spread": 2.0, "saturated": 0.25,
    }  # fmt: skip
    shown = values_of(line)
    assert "of what is replayed 90, of its own actions 70, largest 120, possible" in shown.plain
    assert "red" in str(shown.style)
    assert "red" not in str(values_of({**line, "value_replayed_largest": 95.0}).style)
    assert "batches of one reward 81%" in values_of({**line, "one_reward": 0.81}).plain
    assert values_of({}) is values_of({"value_bound_high": 100.0}) is None


def test_an_archive_that_unpacks_to_too_much_is_not_opened(tmp_path, capsys, monkeypatch):
    log = {
        "observation": np.zeros((4000, 9)),
        "action": np.zeros((4000, 1)),
        "reward": np.zeros(4000),
    }
    np.savez_compressed(tmp_path / "x.npz", **log)
    monkeypatch.setattr("lser.cli.inspect.available_bytes", lambda: 100_000)
    assert (tmp_path / "x.npz").stat().st_size < 10_000
    assert main(["inspect", str(tmp_path / "x.npz")]) == 2
    assert "GiB of memory when it is opened" in " ".join(capsys.readouterr().err.split())

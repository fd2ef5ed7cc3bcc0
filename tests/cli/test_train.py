"""`lser train`: its arguments, what it leaves, and running again."""

import csv
import json

import pytest
from small import SMALL, trained

from lser.cli import main
from lser.cli.board import Board, Numbers
from lser.cli.outcome import scale_words, score_line
from lser.cli.train import _names
from lser.experiments import records
from lser.experiments.experiment import from_json
from lser.experiments.presets import learnable, preset
from lser.experiments.records import Record
from lser.simulators.base import Anchor


def said(arguments, tmp_path, capsys):
    where = [] if arguments[-1] == "--from" else ["--out", str(tmp_path / "runs")]
    try:
        code = main(["train", *arguments, *where])
    except SystemExit as ended:  # in the words of the parser
        code = ended.code
    assert code == 2
    assert not (tmp_path / "runs").exists()
    return capsys.readouterr().err


def experiment(folder):
    return from_json(records.load(folder).experiment)


def test_stdout_is_the_folder_and_the_rest_is_told_beside_it(tmp_path, capsys):
    folder = trained(tmp_path, "bazaar", "uniform", "random")
    found = capsys.readouterr()
    assert found.out == f"{folder}\n"
    assert "bazaar/uniform/random" in found.err
    assert "12/12 sessions" in found.err
    assert "% of the way" in found.err
    assert f"next: lser evaluate {folder}" in found.err


def test_options_belong_to_what_was_named(tmp_path):
    words = "bazaar lser ddpg --memory.bits 5 --simulator.items 50 --agent.tau 0.5 --seed 7"
    held = experiment(trained(tmp_path, *words.split(), "--label", "mine", "--study", "s"))
    assert held.names == ("bazaar", "lser", "ddpg")
    assert (held.memory.bits, held.simulator.items, held.agent.tau) == (5, 50, 0.5)
    assert (held.seed, held.label, held.study) == (7, "mine", "s")


def test_the_folder_has_label_seed_and_a_digest_of_all_else(tmp_path):
    names = set()
    for more in ([], ["--memory.newest", "2"], ["--seed", "1"]):
        folder = trained(tmp_path / f"{len(names)}", "bazaar", "uniform", "random", *more)
        names.add(folder.name)
        assert folder.parent.name == "bazaar"
    assert len(names) == 3
    assert sum(name.startswith("uniform-seed0-") for name in names) == 2


def test_a_record_s_experiment_is_where_another_starts(tmp_path):
    first = trained(tmp_path / "a", "bazaar", "per", "ridge", "--memory.alpha", "0.25")
    arguments = ["train", "--from", str(first), "--seed", "5", "--out", str(tmp_path / "b")]
    assert main(arguments) == 0
    (second,) = (path.parent for path in (tmp_path / "b").rglob("experiment.json"))
    held = experiment(second)
    assert (held.memory.alpha, held.seed, held.names[2]) == (0.25, 5, "ridge")
    assert experiment(first).memory == held.memory


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--from", "--from takes the folder of a record"),
        ("bazaar --from runs/a", "and no names beside it"),
        ("--from nowhere", "is no record"),
        ("bazaar lser ddpg sac", "at most three names"),
        ("bazaar --address host:1", "--address host:1 is the cluster of --feeders"),
        ("bazaar --sessions 0", "sessions must be >= 1, got 0"),
        ("bazaar --learning-starts -1", "learning_starts must be >= 0, got -1"),
        ("bazaar --seed -1", "seed must be >= 0, got -1"),
        ("bazaar --intervention nan", "intervention must be finite, got nan"),
        ("bazaar lser --memory.bits 33", "bits"),
        ("bazaar --simulator.sparsity 2", "sparsity"),
        ("nowhere:Shop", "there is no module 'nowhere'"),
        ("json:Shop", "json has no 'Shop'"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_left(words, message, tmp_path, capsys):
    assert message in said(words.split(), tmp_path, capsys)


@pytest.mark.parametrize("flag", ["--json", "--csv", "--again", "--tensorboard", "--no-again"])
def test_names_may_follow_every_flag(flag):
    assert _names([flag, "bazaar", "lser"]) == (["bazaar", "lser"], [flag])


def test_again_runs_anew_over_the_record(tmp_path, capsys):
    folder = trained(tmp_path, "bazaar", "uniform", "random")
    before = (folder / "final.json").read_bytes()
    (folder / "curve.jsonl").write_text("")
    arguments = ["train", "bazaar", "uniform", "random", *SMALL, "--out", str(tmp_path)]
    assert main([*arguments, "--again"]) == 0
    held = records.load(folder)
    assert (len(held.curve), len(held.meta["parts"])) == (3, 1)
    assert (folder / "final.json").read_bytes() == before


def test_a_table_of_the_curve_has_what_the_record_has(tmp_path):
    folder = trained(tmp_path, "bazaar", "per", "ddpg", "--learning-starts", "16", "--csv")
    with (folder / "curve.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    curve = records.load(folder).curve
    for name in ("sessions", "steps", "updates"):
        assert [float(row[name]) for row in rows] == [line[name] for line in curve]
    assert [float(row["evaluation/reward"]) for row in rows] == [line["reward"] for line in curve]
    assert float(rows[-1]["learning/td_error"]) > 0
    assert any(name.startswith("memory/") for name in rows[0])


def test_tensorboard_that_is_not_installed_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    with pytest.raises(ValueError, match="--tensorboard needs TensorBoard: pip install"):
        Board(tmp_path, dict)


def test_a_watcher_of_numbers_must_say_what_it_does_with_them():
    class Forgot(Numbers):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Forgot(dict)


FINAL = {"metric": 0.2, "metric_se": 0.01, "sessions": 1_234}


def test_the_closing_lines_are_the_score_and_where_it_lies():
    run = preset("bazaar", "uniform", scale="quick")
    record = Record(None, {}, {"metric": "ctr"}, final=FINAL)
    first, *scale = score_line(record, run).splitlines()
    assert first == "final ctr 0.2000 ± 0.0100 after 1,234 sessions"
    assert " ".join(scale).endswith("40% of the way")
    assert max(map(len, scale)) <= 80
    record = Record(None, {}, {"metric": "ctr"}, final={"metric": 0.2, "sessions": 3})
    assert score_line(record, run).startswith("final ctr 0.2000 after 3 sessions")


@pytest.mark.parametrize("best", [0.02, float("nan")])
def test_a_scale_without_a_length_says_nothing(best, monkeypatch):
    ends = Anchor("random", 0.02, ""), Anchor("best", best, "")
    monkeypatch.setattr("lser.experiments.build.anchors", lambda run: ends)
    assert scale_words(preset("bazaar"), 0.3) == []


def test_an_environment_of_others_has_no_scale():
    assert scale_words(preset("Pendulum-v1"), -3.0) == []


def test_the_command_is_kept_as_it_can_be_pasted(tmp_path):
    folder = trained(tmp_path / "my runs", "bazaar", "uniform", "random", "--label", "a b")
    command = json.loads((folder / "meta.json").read_text())["command"]
    assert "--label 'a b'" in command
    assert f"--out '{tmp_path}/my runs'" in command


def test_a_platform_of_the_paper_can_be_learned_from_the_command_line(tmp_path, capsys):
    words = ["recogym", "uniform", "--scale", "learnable", "--sessions", "2"]
    assert main(["train", *words, "--out", str(tmp_path)]) == 0
    run = records.load(capsys.readouterr().out.strip())
    known = learnable("recogym")
    assert run.experiment["simulator"]["reward"] == known.simulator.reward == "expected click"
    assert run.experiment["agent"]["discount"] == 0.0
    assert main(["train", "--scale", "learnable"]) == 2
    assert "simulator must be one of" in capsys.readouterr().err

"""The command line as a person meets it."""

import json
import subprocess
import sys

import pytest
from small import SMALL, trained

from lser.catalogue import MEMORIES
from lser.cli import COMMANDS, main
from lser.experiments import records
from lser.simulators.base import Lengths
from lser.simulators.bazaar.simulator import Bazaar


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """The folder of one small finished run."""
    return trained(tmp_path_factory.mktemp("runs"), "bazaar", "lser")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    text = capsys.readouterr().out
    assert command in ("simulators", "memories", "agents") or "example" in text


def test_help_does_not_load_torch():
    code = """
import sys
from lser.cli import main
try:
    main(["train", "--help"])
except SystemExit:
    pass
print([m for m in ("torch", "matplotlib") if m in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_without_a_command_the_overview_is_shown(capsys):
    assert main([]) == 0
    overview = capsys.readouterr().out
    assert all(name in overview for name in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "unknown command 'trian'; did you mean train"),
        (["train", "virtual-tabao"], "did you mean virtual-taobao"),
        (["train", "bazaar", "pre"], "unknown memory 'pre'; did you mean per"),
        (
            ["train", "--scale", "huge"],
            "--scale must be one of quick, medium, paper, learnable, got 'huge'",
        ),
        (["study", "epsilonn"], "unknown study 'epsilonn'; did you mean epsilon"),
        (["train", "--capacity", "99999999999999"], "GiB"),
        (["resume", "nowhere"], "is no record"),
        (["report", "nowhere"], "does not exist"),
    ],
)
def test_a_mistake_is_answered_in_one_line(arguments, message, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("lser: error: ")
    assert message in error


def test_missing_weights_name_the_three_ways(monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("LSER_VIRTUAL_TAOBAO", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("pooch.HTTPDownloader.__call__", _no_network)
    assert main(["train", "virtual-taobao", "lser", *SMALL, "--out", str(tmp_path)]) == 2
    assert "LSER_VIRTUAL_TAOBAO" in capsys.readouterr().err


def _no_network(*arguments, **options):
    raise OSError("no network")


def test_stdout_carries_the_path_and_the_record_is_complete(record, capsys):
    held = records.load(record)
    assert held.status == "done"
    assert held.meta["command"].startswith("lser train bazaar lser")
    assert held.meta["versions"]["torch"]


def test_a_record_can_be_repeated(record, tmp_path, capsys):
    assert main(["train", "--from", str(record), "--out", str(tmp_path), "--json"]) == 0
    final = json.loads(capsys.readouterr().out)
    assert final["metric"] == records.load(record).final["metric"]


def test_a_finished_run_can_be_evaluated_on_fresh_users(record, capsys):
    assert main(["evaluate", str(record), "--sessions", "6", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["sessions"] == 6
    assert result["metric_name"] == records.load(record).metric


def test_runs_and_watch_show_the_record(record, capsys):
    assert main(["runs", str(record.parent), "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    row = next(row for row in rows if row["path"] == str(record))
    assert (row["label"], row["status"]) == ("lser", "done")
    assert row["score"] == records.load(record).final["metric"]
    assert (row["metric"], row["sessions"], row["seed"]) == ("ctr", 12, 0)
    assert main(["watch", str(record), "--once"]) == 0
    assert "done" in capsys.readouterr().out


def test_tensorboard_gets_every_evaluation(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    arguments = ["train", "bazaar", "uniform", "ddpg", *SMALL, "--out", str(tmp_path)]
    arguments += ["--tensorboard", "--learning-starts", "16"]
    assert main(arguments) == 0
    folder = next(tmp_path.rglob("experiment.json")).parent
    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    logged = [event.value for event in events.Scalars("evaluation/metric")]
    assert logged == pytest.approx([line["metric"] for line in records.load(folder).curve])
    shown = set(events.Tags()["scalars"])
    assert {"training/ctr", "training/learning_metric", "evaluation/reward"} <= shown
    assert any(tag.startswith("memory/") for tag in shown)
    assert {"learning/td_error", "learning/critic", "learning/actor"} <= shown


def test_resuming_a_finished_run_is_refused(record, capsys):
    assert main(["resume", str(record)]) == 2
    assert "finished" in capsys.readouterr().err


def test_a_dry_run_lists_and_starts_nothing(tmp_path, capsys):
    arguments = ["study", "epsilon", "--scale", "quick", "--seeds", "2", "--out", str(tmp_path)]
    assert main([*arguments, "--dry-run"]) == 0
    assert "10 runs" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_a_dry_run_looks_for_no_weights(tmp_path, capsys, monkeypatch):
    def asked(_):
        raise AssertionError("a plan needs no files")

    monkeypatch.setattr("lser.simulators.virtual_taobao.simulator.find_weights", asked)
    assert main(["study", "cure", "--seeds", "1", "--dry-run", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert "GiB of replay memory" in shown.out
    assert "download" not in shown.err.lower()


def test_every_memory_is_described():
    assert all(entry.about and entry.source for entry in MEMORIES.own.values())


@pytest.mark.slow
def test_a_study_runs_continues_and_reports_failures(tmp_path, capsys, monkeypatch):
    arguments = ["study", "bazaar-map", "--scale", "quick", "--seeds", "1", "--workers", "2"]
    arguments += ["--only", "uniform--sparsity-0.05--state-dependence-0.5", "--out", str(tmp_path)]
    monkeypatch.setattr(Bazaar, "lengths", Lengths(10, 10, 10))
    assert main(arguments) == 0
    found = records.find(tmp_path)
    assert [r.status for r in found] == ["done"]
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("final.json")}
    assert main(arguments) == 0
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("final.json")} == before

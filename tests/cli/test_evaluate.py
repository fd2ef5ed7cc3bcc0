"""`lser evaluate`, `lser resume` and `lser report`: what can be done with a record afterwards."""

import json
import shutil
import signal

import pytest
from small import SMALL, trained, written

import lser
from lser.cli import main
from lser.experiments import records
from lser.experiments.progress import ProgressFile
from lser.experiments.run import AGENT, CHECKPOINTS


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """A small finished run."""
    return trained(tmp_path_factory.mktemp("runs"), "bazaar", "uniform", "ridge")


@pytest.fixture
def own(tmp_path):
    """The record of a loop of one's own."""
    with lser.record(tmp_path / "own", simulator="my shop", memory="mine") as run:
        run.point(sessions=5, metric=0.25)
    return tmp_path / "own"


def said(arguments, capsys):
    assert main(arguments) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert "Traceback" not in found.err
    return found.err


def test_the_scores_come_with_errors_and_the_scale(record, capsys):
    assert main(["evaluate", str(record), "--sessions", "20"]) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    names = ("ctr", "share of possible", "reward per session", "pages per session")
    found = {name: [line for line in lines if line.startswith(name)] for name in names}
    assert all(found.values()), text
    assert all(" ± " in found[name][0] for name in names if name != "share of possible")
    assert max(map(len, lines)) <= 80
    assert "random actions, 0.02" in " ".join(text.split())
    assert "0.4667" in text


def test_the_same_users_give_the_same_score_and_others_another(record, capsys):
    found = []
    for seed in ("1", "1", "2"):
        assert main(["evaluate", str(record), "--sessions", "30", "--seed", seed, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]
    assert found[0] != found[2]


def test_evaluating_changes_nothing(record):
    before = {p: p.stat().st_mtime_ns for p in record.rglob("*")}
    assert main(["evaluate", str(record), "--sessions", "2"]) == 0
    assert {p: p.stat().st_mtime_ns for p in record.rglob("*")} == before


def test_a_run_without_its_agent_is_refused(record, tmp_path, capsys):
    shutil.copytree(record, tmp_path / "copy", ignore=shutil.ignore_patterns(AGENT))
    assert "holds no trained agent" in said(["evaluate", str(tmp_path / "copy")], capsys)


def test_an_agent_of_other_settings_is_refused(record, tmp_path, capsys):
    shutil.copytree(record, tmp_path / "copy")
    path = tmp_path / "copy" / "experiment.json"
    held = json.loads(path.read_text())
    held["simulator"]["features"] = 5
    path.write_text(json.dumps(held))
    assert "lser: error: " in said(["evaluate", str(tmp_path / "copy")], capsys)


@pytest.mark.parametrize("command", ["evaluate", "resume", "train"])
def test_a_loop_of_one_s_own_cannot_be_taken_up_by_a_command(command, own, tmp_path, capsys):
    text = (own / "meta.json").read_text().replace('"done"', '"stopped"')
    (own / "meta.json").write_text(text)
    arguments = [command, "--from", str(own)] if command == "train" else [command, str(own)]
    assert "unknown simulator 'my shop'" in said(arguments, capsys)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sessions": "many"}, "sessions must be an integer, got 'many'"),
        ({"batch_size": None}, "batch_size must be an integer, got None"),
        ({"horizon": "week"}, "horizon must be one of 'continuing', 'session', got 'week'"),
        ({"wings": 2}, "unknown Experiment field 'wings'"),
        ({"seed": -1}, "seed must be >= 0, got -1"),
        ({"intervention": "x"}, "intervention must be a number, got 'x'"),
    ],
)
def test_a_record_that_was_edited_is_refused_by_the_setting(
    change, message, record, tmp_path, capsys
):
    shutil.copytree(record, tmp_path / "copy")
    path = tmp_path / "copy" / "experiment.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert message in said(["evaluate", str(tmp_path / "copy")], capsys)


def stopped(folder, *arguments):
    """A run of these arguments that was interrupted after eight steps."""
    steps = []

    def interrupt(self, status):
        steps.append(status)
        if len(steps) == 8:
            signal.raise_signal(signal.SIGINT)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ProgressFile, "__call__", interrupt)
        assert main(["train", *arguments, *SMALL, "--out", str(folder)]) == 130
    return next(folder.rglob("experiment.json")).parent


def test_a_stopped_run_is_resumed_to_the_record_of_a_whole_one(tmp_path, capsys):
    arguments = ["bazaar", "lser", "ddpg", "--learning-starts", "16"]
    whole = trained(tmp_path / "whole", *arguments)
    parts = stopped(tmp_path / "parts", *arguments)
    assert f"continue with: lser resume {parts}" in capsys.readouterr().err
    assert records.load(parts).status == "stopped"
    assert list((parts / CHECKPOINTS).glob("*.lser"))
    assert main(["resume", str(parts)]) == 0
    found = capsys.readouterr()
    assert found.out == f"{parts}\n"
    assert "final ctr" in found.err
    for name in ("curve.jsonl", "final.json"):
        assert (parts / name).read_bytes() == (whole / name).read_bytes()
    held = records.load(parts)
    assert held.status == "done"
    assert len(held.meta["parts"]) == 2
    assert held.meta["command"].startswith("lser train bazaar lser ddpg")


def test_what_another_process_writes_cannot_be_resumed(tmp_path, capsys):
    from lser.experiments.owner import Owner

    folder = stopped(tmp_path, "bazaar", "uniform", "random")
    with Owner(folder):
        assert "is being written by another process" in said(["resume", str(folder)], capsys)


def test_a_cluster_is_only_for_feeders(tmp_path, capsys):
    folder = stopped(tmp_path, "bazaar", "uniform", "random")
    error = said(["resume", str(folder), "--address", "host:6379"], capsys)
    assert "--address host:6379 is the cluster of --feeders" in error


def test_the_report_is_a_page_and_stdout_is_where_it_lies(record, tmp_path, capsys):
    out = tmp_path / "report"
    assert main(["report", str(record), "--out", str(out), "--title", "Mine & yours"]) == 0
    page = capsys.readouterr().out.strip()
    assert page == str(out / "index.html")
    assert "Mine &amp; yours" in (out / "index.html").read_text()


def test_the_report_of_a_packed_file_is_that_of_its_records(tmp_path):
    for seed in range(3):
        written(tmp_path / "runs" / str(seed), seed=seed, curve=[0.1, 0.2])
    packed = records.pack(records.find(tmp_path / "runs"), tmp_path / "packed.jsonl.gz")
    for name, source in (("a", tmp_path / "runs"), ("b", packed)):
        assert main(["report", str(source), "--out", str(tmp_path / name)]) == 0
    tables = [sorted(p.read_text() for p in (tmp_path / n).rglob("*.csv")) for n in ("a", "b")]
    assert tables[0] == tables[1] != []


@pytest.mark.parametrize("status", ["stopped", "failed"])
def test_records_without_an_end_make_no_page(status, tmp_path, capsys):
    written(tmp_path / "runs" / "a", status=status, final=None)
    arguments = ["report", str(tmp_path / "runs"), "--out", str(tmp_path / "page")]
    assert f"no finished record under {tmp_path}/runs" in said(arguments, capsys)
    assert not (tmp_path / "page").exists()

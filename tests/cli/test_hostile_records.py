"""What a record, a folder's name or a server holds is shown in a terminal, and never obeyed."""

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import synthetic

from lser.cli import main
from lser.cli.policy import _table
from lser.cli.words import plain, quoted
from lser.experiments import progress
from lser.experiments.study import Job
from lser.training import checkpoint

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "files" / "4"

TITLE = "\x1b]0;owned\x07"  # sets the title of a terminal
TEXTS = ("\x1b[31mred", f"a{TITLE}b", "back\rward\x08s", "\x9b31m", "[red]x[/red] [/]", ":smile:")


def write(folder: Path, text: str, status: str = "done") -> Path:
    """A record with `text` wherever a record holds some."""
    run = synthetic.record(text, text, 0, level=0.5, memory={"name": "lser"})
    experiment = {**run.experiment, "metric": text, "simulator": {"name": text, "dial": text}}
    meta = {**run.meta, "status": status, "error": text, "command": text, "metric": text}
    folder.mkdir(parents=True)
    for name, part in (("experiment", experiment), ("meta", meta), ("final", run.final)):
        (folder / f"{name}.json").write_text(json.dumps(part))
    (folder / "curve.jsonl").write_text("".join(json.dumps(line) + "\n" for line in run.curve))
    now = {"sessions": 3, "of": 9, "metric": text, "so_far": 0.1, "evaluation": 0.2, "left": 5.0}
    now["steps_per_second"] = 1.0
    (folder / "progress.json").write_text(json.dumps(now))
    return folder


def commands(folder: Path, out: Path) -> list[list[str]]:
    here = str(folder)
    return [
        ["runs", here],
        ["watch", here, "--once"],
        ["watch", here],
        ["check", here],
        ["report", here, "--out", str(out)],
        ["evaluate", here],
        ["resume", here],
        ["train", "--from", here],
        ["inspect", here],
        ["runs", f"{here}/missing"],
        ["watch", f"{here}/missing"],
    ]


def controls(text: str) -> set[str]:
    return {c for c in text if c != "\n" and plain(c) == ""}


@pytest.mark.parametrize("status", ["done", "stopped", "failed", "\x1b[31m"])
@pytest.mark.parametrize("text", TEXTS)
def test_text_of_a_record_is_shown_and_not_obeyed(text, status, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = write(tmp_path / f"runs{TITLE}" / "one", text, status)
    for words in commands(folder, tmp_path / "page"):
        if words[0] == "report" and (status, text) != ("done", TEXTS[1]):
            continue  # takes long, and pages have tests of their own
        assert main(words) in (0, 1, 2), words
        found = capsys.readouterr()
        assert controls(found.out + found.err) == set(), words


@pytest.mark.parametrize("text", TEXTS)
def test_in_colours_too(text, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "400")
    assert main(["watch", str(write(tmp_path / "one", text)), "--once"]) == 0
    shown = capsys.readouterr().out
    assert plain(text) in shown
    assert text in shown or plain(text) != text
    assert TITLE not in shown
    assert "\x1b[31m" not in shown


@pytest.mark.parametrize("text", TEXTS)
def test_the_live_table_and_failures(text, tmp_path, capsys):
    from rich.console import Console

    from lser.cli.jobs import _tell
    from lser.cli.live import Row, table

    console = Console(width=80)
    console.print(table([Row(text, 0, 1, "–", None)]))
    _tell([Job({}, str(write(tmp_path / "one", text, "failed")), "")], {})
    found = capsys.readouterr()
    assert controls(found.out + found.err) == set()
    assert plain(text) in found.out
    assert plain(text) in found.err


def test_what_a_server_answers_is_shown_as_it_is():
    one = {"version": 1, "state": "live", "pages": 1, "updates": 1, "problems": [TITLE]}
    told = plain(_table({"\x1b[31m": {"versions": [one], "held": False}}))
    assert controls(told) == set()


@pytest.mark.parametrize(
    "path", ["runs/a b", f"x{TITLE}y'z\\n", "plain", "bell\x07\u202e", "\udcff"]
)
def test_a_path_can_be_pasted_into_a_shell(path):
    assert controls(quoted(path)) == set()
    said = subprocess.run(["bash", "-c", f"printf %s {quoted(path)}"], capture_output=True)
    assert said.stdout == path.encode(errors="surrogateescape")
    assert quoted("runs/a b") == shlex.quote("runs/a b")


@pytest.mark.parametrize(
    "content",
    ["[]", "3", "{}", '{"sessions": "x"}', '{"sessions": 1, "of": 0}', "[" * 100_000, "\x00"],
)
def test_progress_that_is_none_is_none(content, tmp_path, capsys):
    folder = write(tmp_path / "one", "lser", "stopped")
    (folder / "final.json").unlink()
    (folder / "progress.json").write_text(content)
    assert progress.read(folder) is None
    assert main(["watch", str(folder), "--once"]) == 0
    assert "no progress yet" in capsys.readouterr().out


def swapped(tmp_path: Path) -> Path:
    """A record whose agent and checkpoint are files of something else, whole as they are."""
    folder = tmp_path / "record"
    shutil.copytree(GOLDEN / "record", folder)
    for name in ("agent/000000000000.lser", "checkpoints/000000000001.lser"):
        (folder / name).parent.mkdir(exist_ok=True)
        checkpoint.save((folder / name).parent, int(Path(name).stem), {"agent": {"other": 1}})
    return folder


def test_contents_of_another_kind_are_refused_by_the_name_of_their_file(tmp_path, capsys):
    folder = swapped(tmp_path)
    for words in (["evaluate", str(folder), "--sessions", "2"], ["inspect", str(folder)]):
        assert main(words) == 2
        error = capsys.readouterr().err
        assert str(folder) in error
        assert "does not hold what is expected there" in error
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({**meta, "status": "stopped"}))
    (folder / "final.json").unlink(missing_ok=True)
    assert main(["resume", str(folder)]) == 2
    assert f"{folder}/checkpoints does not hold what is expected" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("log.csv", b"\xb4\xff"),
        ("log.csv", b"o0,a0,reward\n"),
        ("log.csv", b"o0,o1,a0,reward\n1,2\n"),
        ("log.npz", b"PK\x03\x04 not a zip"),
        ("log.npz", b""),
        ("log.npz", b"\x93NUMPY"),
    ],
)
def test_a_log_that_is_none_is_refused_by_its_name(name, content, tmp_path, capsys):
    (tmp_path / name).write_bytes(content)
    assert main(["inspect", str(tmp_path / name)]) == 2
    assert name in capsys.readouterr().err

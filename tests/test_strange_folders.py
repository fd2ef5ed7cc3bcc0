"""Folders that hold pipes, links and names that are no text, and terminals that know no accents."""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lser
from lser.cli import main
from lser.experiments import records
from lser.experiments.owner import OWNER, Owner
from lser.experiments.progress import PROGRESS
from lser.experiments.recording import Recorder, write_json
from lser.opening import open_plain

GOLDEN = Path(__file__).parent / "golden" / "files" / "4" / "record"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and links of POSIX")


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(GOLDEN, tmp_path / "runs" / "one")
    return tmp_path / "runs" / "one"


def _ends(*words):
    """What a command prints, in a process that is ended should it wait at a pipe."""
    command = [sys.executable, "-m", "lser", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def _set_status(folder, status):
    meta = json.loads((folder / "meta.json").read_text())
    write_json(folder / "meta.json", {**meta, "status": status})


def test_a_pipe_is_no_file_of_ours_and_nobody_waits_at_it(tmp_path):
    os.mkfifo(tmp_path / "memory.lser")
    with pytest.raises(ValueError, match=r"memory\.lser is no plain file"):
        open_plain(tmp_path / "memory.lser")
    with pytest.raises(ValueError, match=r"memory\.lser is no plain file"):
        lser.load_replay(tmp_path / "memory.lser")


def test_saving_beside_a_pipe_that_looks_like_litter_does_not_wait(tmp_path):
    os.mkfifo(tmp_path / f".memory.lser.{'0' * 16}")
    lser.UniformReplay(4, 1, 1).save(tmp_path / "memory.lser")
    lser.load_replay(tmp_path / "memory.lser")


def test_pipes_in_a_folder_of_runs_are_told_and_the_rest_goes_on(folder, capsys):
    os.mkfifo(folder.parent / "packed.jsonl.gz")
    for name in (OWNER, PROGRESS):
        os.mkfifo(folder / name)
    _set_status(folder, "running")
    found = records.find(folder.parent)
    assert sorted(record.status for record in found) == ["damaged", "died"]
    assert "no plain file" in next(r.meta["error"] for r in found if r.status == "damaged")
    assert main(["runs", str(folder.parent)]) == 0
    assert "2 records" in capsys.readouterr().out


def test_a_checkpoint_that_is_a_pipe_is_passed_over(folder):
    _set_status(folder, "stopped")
    (folder / "final.json").unlink()
    (folder / "checkpoints").mkdir()
    os.mkfifo(folder / "checkpoints" / "000000000009.lser")
    assert "none of the 1 checkpoints" in _ends("resume", folder)


@pytest.mark.parametrize("name", [OWNER, "curve.jsonl", ".meta.json.tmp"])
def test_nothing_is_written_through_a_link_in_a_record(name, folder, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(precious)
    experiment = json.loads((folder / "experiment.json").read_text())
    with contextlib.suppress(OSError), Owner(folder):
        recorder = Recorder(folder, experiment, "")
        recorder.begin("ctr")
        recorder.append({"sessions": 1, "metric": 0.5})
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_a_terminal_without_our_signs_gets_escapes_and_no_error(encoding, folder, monkeypatch):
    for words in (["watch", str(folder)], ["train", "--help"], ["runs", str(folder)]):
        told = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(told, encoding=encoding))
        with contextlib.suppress(SystemExit):
            assert main(words) == 0
        sys.stdout.flush()
        assert told.getvalue()


def test_a_folder_whose_name_is_no_text_is_listed(folder):
    named = os.fsencode(folder.parent) + b"/\xff\xfe"
    os.rename(os.fsencode(folder), named)
    assert "1 record" in _ends("runs", folder.parent)
    assert "done" in _ends("runs", folder.parent / os.fsdecode(b"\xff\xfe"))


def test_a_record_is_read_alike_in_every_locale(folder):
    text = (folder / "experiment.json").read_text()
    accented = text.replace('"label": ""', '"label": "é"')
    assert accented != text
    (folder / "experiment.json").write_bytes(accented.encode())
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code = (
        f"from lser.experiments import records; print(ascii(records.load({str(folder)!r}).label))"
    )
    command = [sys.executable, "-c", code]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == r"'\xe9'"

"""How commands end: exit codes, closed pipes, and errors of every kind in one line."""

import subprocess
import sys

import pytest

from lser import __version__
from lser.cli import COMMANDS, listing, main


@pytest.mark.parametrize(
    "words",
    ["--help", "--version", "", "train --help", "memories", "agents --json", "theory", "runs ."],
)
def test_a_reader_that_has_gone_is_no_error(words, tmp_path):
    command = f"({sys.executable} -m lser {words}; echo code $? >&2) | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path)
    assert done.stderr == "code 0\n"


def test_the_version_is_the_package_s(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"{__version__}\n"


def test_help_is_no_wider_than_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    for command in ("compare", "study", "train"):
        with pytest.raises(SystemExit, match="0"):
            main([command, "--help"])
        text = capsys.readouterr().out
        assert max(map(len, text.splitlines())) <= 60
        assert text.startswith(f"usage: lser {command}")


@pytest.mark.parametrize("command", COMMANDS)
def test_an_option_that_does_not_exist_is_a_mistake_of_the_user(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, "--no-such-option"])
    assert ended.value.code == 2
    assert f"lser {command}" in capsys.readouterr().err  # and where there is more to read


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (ValueError("bad value"), 2, "lser: error: bad value"),
        (MemoryError("too large"), 2, "lser: error: too large"),
        (PermissionError(13, "Permission denied", "/x"), 2, "Permission denied: '/x'"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_a_command_raises_becomes_its_exit_code(error, code, told, monkeypatch, capsys):
    def fail(argv):
        raise error

    monkeypatch.setattr(listing, "memories", fail)
    assert main(["memories"]) == code
    found = capsys.readouterr()
    assert found.out == ""
    assert told in found.err
    assert len(found.err.splitlines()) <= 1


def test_a_defect_is_not_hidden(monkeypatch):
    def fail(argv):
        raise RuntimeError("a defect of ours")

    monkeypatch.setattr(listing, "memories", fail)
    with pytest.raises(RuntimeError, match="a defect of ours"):
        main(["memories"])


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "lser", "nonsense"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("lser: error: unknown command 'nonsense'")

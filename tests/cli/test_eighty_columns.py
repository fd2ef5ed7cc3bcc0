"""The commands that come after a run, and their errors, in a real terminal of 80 columns."""

import subprocess
import sys

import pytest
from terminal import seen

from lser.cli import main
from lser.cli.evaluate_log import words
from lser.online.estimates import Estimate, Evaluation

SMALL = ["--users", "4", "--batch-size", "16", "--capacity", "500", "--sessions", "12"]
SMALL += ["--evaluate-every", "6", "--evaluate-sessions", "5", "--final-sessions", "8"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the record of a run, to be named by short paths from inside it."""
    folder = tmp_path_factory.mktemp("eighty")
    assert main(["train", "bazaar", "uniform", *SMALL, "--out", str(folder / "runs")]) == 0
    return folder


def read(place, monkeypatch, *arguments):
    monkeypatch.chdir(place)
    found = seen(*arguments)
    assert [line for line in found.lines if len(line) > 80] == []
    return found


def test_a_score_and_its_scale_fit(place, monkeypatch):
    (record,) = (place / "runs" / "bazaar").iterdir()
    found = read(place, monkeypatch, "evaluate", f"runs/bazaar/{record.name}", "--sessions", "10")
    assert found.code == 0
    text = " ".join(" ".join(found.lines).split())
    assert "share of possible: 0 is random actions, 0.02; 1 is myopic oracle" in text
    assert "0.4667" in text


def test_a_refusal_is_broken_between_its_words(place, monkeypatch):
    found = read(place, monkeypatch, "train", "bazaar", "uniform", *SMALL)
    assert found.code == 2
    text = " ".join(" ".join(found.lines).split())
    assert "is finished; --again runs it anew, over this record" in text


@pytest.mark.parametrize("command", ["study epsilon --dry-run", "memories", "theory", "--help"])
def test_a_reader_that_leaves_at_once_is_no_error(command, tmp_path):
    line = f"({sys.executable} -m lser {command}; echo code $? >&2) | true"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=tmp_path)
    assert "code 0" in done.stderr
    assert "Error" not in done.stderr


def test_estimates_from_a_log_fit():
    one = Estimate(0.123456, 0.0123456)
    found = Evaluation(1_234_567, 12_345.6, 0.1234, one, one, None)
    lines = words("lser-steady-1234", found).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1] == "  IPS 0.1235 ± 0.0123   SNIPS 0.1235 ± 0.0123   DR refused"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "runs"),
    [
        (["demo", "--sessions", "12", "--seeds", "2", "--out", "d"], 12),
        (["compare", "lser-steady", "uniform", "--sessions", "12", "--seeds", "2"], 4),
    ],
)
def test_many_runs_end_at_all_of_them_with_a_table_that_fits(command, runs, tmp_path, monkeypatch):
    found = read(tmp_path, monkeypatch, *command)
    text = "\n".join(found.lines)
    assert found.code == 0
    assert "0 running, 0 waiting, 100%" in text
    assert f"{runs} done" in text
    assert "final CTR" in text
    assert "left" not in text.split("100%")[1].split("\n")[0]

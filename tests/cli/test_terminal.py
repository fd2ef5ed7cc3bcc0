"""What a person sees in a terminal of 80 columns, and what is written where there is none."""

import os
import subprocess
import sys

import pytest
from small import SMALL
from terminal import screen, seen

from lser.catalogue import AGENTS
from lser.cli import main
from lser.cli.display import line
from lser.cli.watch import spark


def fits(found, *, but=()):
    """Whether every line has 80 columns at most; lines with a path may be as long as that is."""
    return [text for text in found.lines if len(text) > 80 and not any(b in text for b in but)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run in a terminal: what was seen, and the folder under which its record lies."""
    out = tmp_path_factory.mktemp("seen")
    return seen("train", "bazaar", "uniform", *SMALL, "--out", str(out)), out


def test_training_ends_at_all_of_its_sessions_with_its_score(trained):
    found, out = trained
    assert found.code == 0
    assert fits(found, but=[str(out)]) == []
    text = "\n".join(found.lines)
    assert "12/12 sessions" in text
    assert "(evaluated 0." in text
    assert "left" not in text.split("12/12")[1].splitlines()[0]
    assert "final ctr" in text
    assert "random actions 0.02, best known" in text
    assert "next: lser evaluate" in text


def test_the_records_can_be_read_and_their_paths_copied(trained):
    _, out = trained
    found = seen("runs", str(out))
    assert fits(found, but=[str(out)]) == []
    (path,) = [text.strip() for text in found.lines if text.startswith("    ")]
    assert main(["watch", path, "--once"]) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulators"],
        ["memories"],
        ["agents"],
        ["compare", "--help"],
        ["demo", "--help"],
        ["theory", "--angle", "20"],
        ["study", "bazaar-map", "--dry-run"],
        ["--help"],
    ],
)
def test_listings_fit(arguments, monkeypatch, tmp_path):
    monkeypatch.setenv("LSER_VIRTUAL_TAOBAO", str(tmp_path))  # no download
    found = seen(*arguments)
    assert found.code == 0
    assert fits(found) == []
    assert len(found.lines) > 5


def test_every_agent_is_listed_with_its_title_and_what_it_needs():
    text = "\n".join(seen("agents").lines)
    assert [name for name in AGENTS if f"\n{name} " not in text] == []
    whole = " ".join(text.split())
    assert "DDPG: deterministic actor-critic" in whole
    assert "the catalogue," in whole


def test_an_interruption_ends_with_the_command_to_go_on_below_the_bar(tmp_path):
    wanted = [*SMALL, "--sessions", "100000", "--evaluate-every", "100000", "--out", str(tmp_path)]
    found = seen("train", "bazaar", "uniform", *wanted, interrupt_at="/100,000 sessions")
    assert found.code == 130
    (bar,) = (at for at, line in enumerate(found.lines) if "/100,000 sessions" in line)
    (told,) = (at for at, line in enumerate(found.lines) if "stopped; continue with" in line)
    assert told > bar
    assert "lser resume" in found.lines[told]


def test_the_listing_of_simulators_has_its_numbers(monkeypatch, tmp_path):
    monkeypatch.setenv("LSER_VIRTUAL_TAOBAO", str(tmp_path))
    text = "\n".join(seen("simulators").lines)
    assert "0.4667" in text
    assert "15.81" in text
    assert "lser/RecoGym-v0" in text


def test_an_interrupted_screen_is_read_as_a_person_does():
    assert screen("one\r\ntwo\r\x1b[2K\x1b[1Athree\r\n") == ["three", ""]


def test_a_line_of_progress_fits_beside_the_bar():
    numbers = {"sessions": 123_456, "of": 900_000, "metric": "reward_per_step", "so_far": -12.3456}
    numbers |= {"evaluation": -10.1, "left": 36_000.0}
    assert len(line(numbers)) <= 71
    done = line({**numbers, "sessions": 900_004})
    assert done.startswith("900,000/900,000 sessions")
    assert "left" not in done


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.0, 0.5, 1.0], "▁▅█  1.000 (highest 1.000)"),
        ([-3.0, -1.0], "▁█  -1.000 (highest -1.000)"),
        ([0.0], "▁  0.000 (highest 0.000)"),
        ([], "(no evaluation yet)"),
    ],
)
def test_a_curve_of_text_also_of_negative_scores(values, shown):
    assert spark(values) == shown


def test_a_reader_that_leaves_early_is_no_error(trained):
    _, out = trained
    command = f"{sys.executable} -m lser runs {out} --json; echo code $? >&2"
    done = subprocess.run(
        ["bash", "-c", f"({command}) | true"], capture_output=True, text=True, env=os.environ
    )
    assert "code 0" in done.stderr
    assert "Error" not in done.stderr

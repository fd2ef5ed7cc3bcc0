"""`lser watch` and the progress of runs, with and without a terminal."""

import math
import threading
import time

import pytest
from small import written
from terminal import seen

from lser.cli import display, main, watch
from lser.cli.display import RunDisplay, line
from lser.cli.watch import spark, where
from lser.experiments.owner import Owner
from lser.experiments.progress import PROGRESS, Status
from lser.experiments.recording import write_json
from waiting import until

NOW = {"sessions": 250, "of": 1_000, "steps": 900, "updates": 800, "metric": "ctr"}
NOW |= {"so_far": 0.25, "evaluation": 0.5, "elapsed": 30.0, "left": 90.0}


def running(folder, curve=(0.1, 0.3), **now):
    """A record under way; whoever owns the folder keeps it so."""
    written(folder, final=None, status="running", curve=curve)
    write_json(folder / PROGRESS, {**NOW, **now})
    return Owner(folder)


def test_a_running_record_is_its_title_its_place_and_its_curve(tmp_path, capsys):
    with running(tmp_path / "a"):
        assert main(["watch", str(tmp_path / "a"), "--once"]) == 0
    title, place, curve = capsys.readouterr().out.splitlines()
    assert title == "simulator / lser / seed 0: running"
    assert place == "250/1,000 sessions, ctr 0.250 (evaluated 0.500), 1:30 left"
    assert curve.startswith("ctr ▃█  0.300 (highest 0.300)")


@pytest.mark.parametrize(
    ("status", "ending"),
    [("stopped", "; go on with: lser resume {}"), ("died", "; go on with: lser resume {}")],
)
def test_what_has_stopped_says_how_to_go_on(status, ending, tmp_path):
    with running(tmp_path / "a"):
        pass
    if status == "stopped":
        write_json(tmp_path / "a" / "meta.json", {"status": "stopped"})
    assert where(tmp_path / "a").endswith("(evaluated 0.500)" + ending.format(tmp_path / "a"))


def test_a_failed_run_does_not_invite_to_go_on(tmp_path):
    written(tmp_path / "a", final=None, status="failed")
    assert where(tmp_path / "a") == "no progress yet"
    write_json(tmp_path / "a" / PROGRESS, NOW)
    assert where(tmp_path / "a") == "250/1,000 sessions, ctr 0.250 (evaluated 0.500)"


def test_a_finished_record_is_its_score(tmp_path):
    written(tmp_path / "a", final={"metric": 0.5, "metric_se": 0.01, "sessions": 1_234})
    assert where(tmp_path / "a") == "1,234 sessions, final ctr 0.5000 ± 0.0100"
    written(tmp_path / "b", final={"metric": 0.5})  # all that a record must have
    assert where(tmp_path / "b") == "final ctr 0.5000"


@pytest.mark.parametrize("text", ["", "[]", "{", "3", '{"sessions": 1}', '{"sessions": "x"}'])
def test_progress_that_cannot_be_read_is_none_yet(text, tmp_path, capsys):
    with running(tmp_path / "a"):
        (tmp_path / "a" / PROGRESS).write_text(text)
        assert main(["watch", str(tmp_path / "a"), "--once"]) == 0
    assert "no progress yet" in capsys.readouterr().out


def test_without_a_terminal_it_waits_for_the_end_and_says_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(watch, "LINE_SECONDS", 0.0)
    folder, owner = tmp_path / "a", running(tmp_path / "a")
    codes = []
    thread = threading.Thread(
        target=lambda: codes.append(main(["watch", str(folder), "--every", "0.02"]))
    )
    thread.start()
    lines = []

    def looked():
        lines.extend(capsys.readouterr().out.splitlines())
        return len(lines) > 1

    until(looked, "a second line")
    write_json(folder / "final.json", {"metric": 0.5, "sessions": 1_000})
    write_json(folder / "meta.json", {"status": "done", "metric": "ctr"})
    thread.join(60)
    owner.release()
    assert codes == [0]
    assert lines[0].startswith("250/1,000 sessions")
    assert capsys.readouterr().out.splitlines()[-1] == "done: 1,000 sessions, final ctr 0.5000"


def test_in_a_terminal_it_ends_with_the_record(tmp_path):
    folder, owner = tmp_path / "a", running(tmp_path / "a")

    def finish():
        time.sleep(3)  # it may be seen under way before, and need not
        write_json(folder / "final.json", {"metric": 0.5, "sessions": 1_000})
        write_json(folder / "meta.json", {"status": "done", "metric": "ctr"})

    thread = threading.Thread(target=finish)
    thread.start()
    found = seen("watch", str(folder), "--every", "0.05")
    thread.join()
    owner.release()
    assert found.code == 0
    text = "\n".join(found.lines)
    assert "seed 0: done" in text
    assert "1,000 sessions, final ctr 0.5000" in text
    assert "running" not in text  # nothing of the earlier picture is left


@pytest.mark.parametrize("every", ["0", "-1", "nan", "inf"])
def test_impossible_pauses_are_refused(every, tmp_path, capsys):
    written(tmp_path / "a")
    assert main(["watch", str(tmp_path / "a"), "--every", every]) == 2
    assert "--every must be finite and >= 0.01" in capsys.readouterr().err


def test_what_is_no_record_is_said(tmp_path, capsys):
    assert main(["watch", str(tmp_path)]) == 2
    assert "is no record" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.0, math.nan, 1.0], "▁ █  1.000 (highest 1.000)"),
        ([math.nan], "   nan (highest nan)"),
        ([1.0, math.inf], "█   inf (highest 1.000)"),
        ([0.5] * 3 + [1.0] * 40, "█" * 40 + "  1.000 (highest 1.000)"),  # the last forty
    ],
)
def test_a_curve_with_gaps_and_a_long_one(values, shown):
    assert spark(values) == shown


class Step:
    sessions, steps, updates, learned = 250, 900, 800, None


def status(sessions=250, evaluation=None):
    step = Step()
    step.sessions = sessions
    return Status(step, 1_000, "ctr", 0.25, evaluation, 30.0)


def test_a_run_without_a_terminal_speaks_at_its_start_and_end(capsys, monkeypatch):
    monkeypatch.setattr(display, "LINE_SECONDS", 3_600.0)
    with RunDisplay("bazaar/lser/ddpg") as show:
        for sessions in (10, 20, 1_002):
            show(status(sessions, {"metric": 0.5}))
    assert capsys.readouterr().err.splitlines() == [
        "bazaar/lser/ddpg",
        "10/1,000 sessions, ctr 0.250 (evaluated 0.500), 49:30 left",
        "1,000/1,000 sessions, ctr 0.250 (evaluated 0.500)",
    ]


def test_a_run_that_never_took_a_step_shows_its_name_alone(capsys):
    with RunDisplay("bazaar/lser/ddpg"):
        pass
    assert capsys.readouterr().err == "bazaar/lser/ddpg\n"


@pytest.mark.parametrize("left", [None, math.nan, math.inf])
def test_time_that_is_not_known_is_said(left):
    assert line({**NOW, "left": left}).endswith("time left unknown")

"""``lser compare`` from the first mistake to the page."""

import subprocess
import sys

import pytest
from terminal import seen

from lser.cli import main
from lser.cli.jobs import run_jobs
from lser.cli.live import Standings, line, table
from lser.comparison import plan
from lser.experiments import records
from lser.experiments.progress import PROGRESS
from lser.experiments.recording import write_json
from lser.experiments.study import Done, Here, Tally, job_for

PLUGIN = """
from dataclasses import dataclass
from lser.replay.memories.uniform import UniformReplay

class Mine(UniformReplay):
    @dataclass(frozen=True)
    class Params(UniformReplay.Params):
        pass
"""


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A small comparison in a terminal, and where it lies."""
    out = tmp_path_factory.mktemp("compared")
    arguments = ("--sessions", "8", "--seeds", "2", "--workers", "1", "--out", str(out))
    return seen("compare", "lser", "uniform", *arguments), out


@pytest.mark.slow
def test_a_comparison_ends_with_its_verdict_table_and_page(compared):
    found, out = compared
    assert found.code == 0
    text = "\n".join(found.lines)
    assert [one for one in found.lines if len(one) > 80 and str(out) not in one] == []
    assert "LSER" in text
    assert "difference: minus uniform" in " ".join(text.split())
    assert "over 2" in text
    assert "4 done, 0 running, 0 waiting, 100%" in text
    page = out / "compare" / "page" / "index.html"
    assert str(page) in text
    assert "<svg" in page.read_text()


@pytest.mark.slow
def test_the_same_comparison_again_repeats_nothing(compared, capsys):
    _, out = compared
    before = {p: p.stat().st_mtime_ns for p in out.rglob("final.json")}
    arguments = ["--sessions", "8", "--seeds", "2", "--out", str(out)]
    assert main(["compare", "lser", "uniform", *arguments]) == 0
    assert {p: p.stat().st_mtime_ns for p in out.rglob("final.json")} == before
    assert "LSER" in capsys.readouterr().out


@pytest.mark.slow
def test_one_s_own_memory_and_any_gymnasium_id(tmp_path, monkeypatch):
    (tmp_path / "my_pkg.py").write_text(PLUGIN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    words = "compare uniform my_pkg:Mine --on Pendulum-v1 --sessions 2 --seeds 1 --workers 1"
    done = subprocess.run(
        [sys.executable, "-m", "lser", *words.split(), "--out", str(tmp_path / "runs")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Mine" in done.stdout
    assert "one seed cannot tell them apart" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lser", "unifrom"], "unknown memory 'unifrom'; did you mean uniform"),
        (["lser", "lser"], "arm 'lser' is named twice"),
        (["lser", "--on", "bazar"], "unknown simulator 'bazar'; did you mean bazaar"),
        (["lser", "--agents", "dpg"], "unknown agent 'dpg'; did you mean ddpg"),
        (["lser", "--seeds", "0"], "seeds must be at least 1, got 0"),
        (["lser", "--sessions", "0"], "sessions must be at least 1, got 0"),
        (["lser", "uniform", "--against", "per"], "unknown arm 'per'"),
        (["lser", "--on", "CartPole-v1"], "agents act in a Box"),
        (["nowhere:Mine"], "there is no module 'nowhere'"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_starts(arguments, message, tmp_path, capsys):
    assert main(["compare", *arguments, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not list(tmp_path.iterdir())


def jobs_in(folder, seeds=2):
    return [job_for(run, folder, "test") for run in plan(["lser", "uniform"], seeds=seeds)]


def test_the_live_table_shows_each_arm_so_far(tmp_path, monkeypatch):
    jobs = jobs_in(tmp_path)
    tally = Tally(jobs)
    monkeypatch.setattr(Tally, "elapsed", 10.0)
    for job, score in zip(jobs[:2], (0.1, 0.2), strict=True):
        tally.started(job)
        folder = tmp_path.joinpath(job.folder)
        folder.mkdir(parents=True)
        now = {"sessions": 5, "of": 10, "metric": "ctr", "so_far": 0.3, "evaluation": score}
        now["steps_per_second"] = 600.0
        write_json(folder / PROGRESS, now)
    rows = Standings(jobs, tally).rows()
    assert [(row.arm, row.done, row.runs, row.score) for row in rows] == [
        ("lser", 0, 2, "0.100"),
        ("uniform", 0, 2, "0.200"),
    ]
    assert rows[0].left == pytest.approx(30.0)  # a quarter of its work took ten seconds
    assert table(rows).row_count == 2
    sessions = f"{tally.asked // 4:,} of {tally.asked:,} sessions"
    assert tally.asked == 4 * jobs[0].experiment["sessions"]
    found = line(tally, 0)
    assert found == f"0 done, 2 running, 2 waiting, 25%, {sessions}, 1,200 steps/s, 0:30 left"
    # one has had its sessions and waits for the others of its fleet; one failed half-way
    now |= {"sessions": 10, "steps_per_second": 600.0}
    write_json(tmp_path / jobs[0].folder / PROGRESS, now)
    tally.ended(Done(jobs[1], False))
    assert tally.pace() == 0
    assert tally.sessions() == 1.5 * jobs[0].experiment["sessions"]


class Failing:
    """A map whose jobs all fail without leaving a record."""

    def run(self, jobs, *, started):
        for job in jobs:
            started(job)
            yield Done(job, False)


def test_failures_are_told_in_short(tmp_path, capsys):
    assert run_jobs(jobs_in(tmp_path, seeds=3), Failing()) == 1
    error = capsys.readouterr().err
    assert error.count("the process died before its record began") == 3
    assert "and 3 more failed" in error


def test_nothing_to_run_is_said(tmp_path):
    with pytest.raises(ValueError, match="--seeds must be at least 1"):
        run_jobs([], Here())


def test_a_study_of_missing_weights_is_one_paragraph(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LSER_VIRTUAL_TAOBAO", str(tmp_path))
    arguments = ["study", "epsilon", "--scale", "quick", "--seeds", "1"]
    assert main([*arguments, "--out", str(tmp_path / "runs")]) == 2
    error = capsys.readouterr().err
    assert "LSER_VIRTUAL_TAOBAO" in error
    assert len(error.splitlines()) < 4
    assert not (tmp_path / "runs").exists()


def test_progress_without_a_terminal_is_a_line_at_the_end_at_least(tmp_path, capsys):
    class Quick:
        def run(self, jobs, *, started):
            for job in jobs:
                started(job)
                yield Done(job, True)

    assert run_jobs(jobs_in(tmp_path), Quick()) == 0
    assert "4 done, 0 running, 0 waiting, 100%" in capsys.readouterr().err
    assert records.find(tmp_path) == []

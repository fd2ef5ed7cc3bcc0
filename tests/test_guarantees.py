"""What is guaranteed: every promise of the page names tests that exist; and the short drill."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "guarantees.md"


def promises():
    return [line for line in PAGE.read_text().splitlines() if line.startswith("- ")]


def test_every_promise_names_a_test_that_exists():
    defined = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        relative = path.relative_to(ROOT / "tests").as_posix()
        defined |= {
            f"{relative}::{n}" for n in re.findall(r"^def (test_\w+)", path.read_text(), re.M)
        }
    assert len(promises()) > 20
    for line in promises():
        named = re.findall(r"`([\w/]+\.py::test_\w+)`", line)
        assert named, f"no test: {line}"
        assert set(named) <= defined, f"no such test: {set(named) - defined}"


@pytest.mark.drill
@pytest.mark.slow
def test_a_killed_study_is_completed_by_the_same_command(tmp_path):
    code = (
        "import sys; from pathlib import Path; from drill import faults\n"
        "if __name__ == '__main__': print(faults.kill_studies(Path(sys.argv[1]), 3))\n"
    )
    script = tmp_path / "kills.py"
    script.write_text(code)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    command = [sys.executable, str(script), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=900)
    assert done.stdout.strip().endswith("(3, [])"), done.stdout + done.stderr[-2000:]


@pytest.mark.drill
@pytest.mark.slow
def test_a_short_drill_does_no_harm():
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    command = [sys.executable, "-m", "drill", "--short"]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=ROOT, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "nothing lost" in done.stdout

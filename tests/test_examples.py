"""Every example runs, at toy size, as a reader would run it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("*.py"))
TOY_SIZE = "300"  # steps, or whatever an example counts: its first argument
NEEDS = {
    "sb3": "stable_baselines3",
    "torchrl": "torchrl",
    "tianshou": "tianshou",
    "rllib": "tree",  # of dm_tree, which Ray alone does not need
}


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_says_something(path, tmp_path):
    if module := NEEDS.get(path.stem.split("_", 1)[1]):
        pytest.importorskip(module)
    done = subprocess.run(
        [sys.executable, str(path), TOY_SIZE],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not list(tmp_path.iterdir()), "an example cleans up after itself"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_short(path):
    assert len(path.read_text().splitlines()) <= 50

"""The numbers that the READMEs quote are those of the committed results."""

import importlib.util
import re
from pathlib import Path

import pytest

BUILD = Path(__file__).resolve().parents[1] / "results" / "build.py"


@pytest.fixture(scope="module")
def build():
    """The script that writes the blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BUILD.parent))  # it imports what lies beside it
        spec = importlib.util.spec_from_file_location("results_build", BUILD)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def test_the_readmes_quote_the_results_files(build):
    for path, text in build.readmes().items():
        assert path.read_text() == text, f"{path.name} is stale: run python results/build.py"


def test_a_changed_number_would_be_noticed(build):
    front = next(iter(build.readmes().values()))
    changed = build.with_block(front, "results", "LSER is always best.")
    assert changed != front


def test_every_picture_of_the_readme_exists(build):
    for path, text in build.readmes().items():
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text):
            assert (path.parent / target).is_file(), target


def test_the_site_shows_the_first_screen_of_the_results():
    page = (BUILD.parents[1] / "docs" / "results.md").read_text()
    assert "\n@block first\n" in page


def test_every_experiment_is_planned_on_seeds_that_no_result_has_used(build):
    plan = (BUILD.parent / "plan.md").read_text()
    rows = re.findall(r"^\| \*\*([A-J])\*\* \|.*\| (\d+) to \d+[^|]*\|[^|]*\|[^|]*\|$", plan, re.M)
    assert [name for name, _ in rows] == list("ABCDEFGHIJ")
    planned = {"cure", "demo"}  # themselves planned, the first on the seeds of all experiments
    used = {run.seed for run in build.found() if run.study not in planned}
    assert all(int(first) > max(used) for _, first in rows)


def test_what_was_seen_before_is_listed(build):
    text = build.readmes()[build.RESULTS / "README.md"]
    for commit in ("7e60a29", "aacbab0", "4a9aa45", "a133c47"):
        assert commit in text


def test_no_table_of_the_readmes_has_a_number_that_is_none(build):
    for path, text in build.readmes().items():
        assert not re.search(r"\bnan\b", text), path

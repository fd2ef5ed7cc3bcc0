"""The numbers that the READMEs quote are those of the committed results."""

import importlib.util
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
    import re

    for path, text in build.readmes().items():
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text):
            assert (path.parent / target).is_file(), target


def test_the_site_shows_the_first_screen_of_the_results():
    page = (BUILD.parents[1] / "docs" / "results.md").read_text()
    assert "\n@block first\n" in page


def test_every_experiment_is_planned_on_seeds_that_no_result_has_used(build):
    import re

    plan = (BUILD.parent / "plan.md").read_text()
    rows = re.findall(r"^\| \*\*([A-J])\*\* \|.*\| (\d+) to \d+[^|]*\|[^|]*\|[^|]*\|$", plan, re.M)
    assert [name for name, _ in rows] == list("ABCDEFGHIJ")
    planned = {"cure", "demo", "locality"}  # themselves planned
    used = {run.seed for run in build.found() if run.study not in planned}
    assert all(int(first) > max(used) for _, first in rows)


def test_what_was_seen_before_is_listed(build):
    text = build.readmes()[build.RESULTS / "README.md"]
    for commit in ("7e60a29", "aacbab0", "4a9aa45", "a133c47"):
        assert commit in text


@pytest.fixture(scope="module")
def locality(build):
    """The figures of D."""
    import sys

    return sys.modules["locality"]


def test_a_share_of_the_possible_is_that_of_the_runs_own_world(locality):
    run = next(run for run in locality._runs()[locality.PRIMARY[-1], "lser"].values())
    world = run.experiment["simulator"]["world_seed"]
    random, oracle = locality._scales()[0.005, 1.0, world]
    assert world == run.seed % 3
    assert locality.share(run, random) == 0
    assert locality.share(run, oracle) == pytest.approx(1)


def test_every_cell_of_the_map_has_equal_seeds_in_every_arm(locality):
    for cell, gaps in locality.chart().items():
        assert {found.seeds for found in gaps.values()} == {20 if cell in locality.PRIMARY else 10}


def test_locality_pays_where_all_controls_are_beaten_and_costs_where_one_is_not(
    locality, monkeypatch
):
    from lser.report.stats import Interval

    def gaps(*means):
        made = [
            locality.Gap(Interval(m, m - 0.01, m + 0.01), 1e-9 if m else 0.5, 10) for m in means
        ]
        return dict(zip(locality.CONTROLS, made, strict=True))

    first, second, third, fourth = locality.CELLS[:4]
    found = {
        first: gaps(0.1, 0.1, 0.1),
        second: gaps(0.1, -0.1, 0.1),
        third: gaps(0.1, 0.0, 0.1),
        fourth: gaps(0.0, 0.0, -0.1),
    }
    monkeypatch.setattr(locality, "chart", lambda: found)
    assert list(locality.verdicts().values()) == ["pays", "costs", "open", "costs"]


def test_what_was_lost_is_said(build):
    text = build.readmes()[build.RESULTS / "README.md"]
    assert "paper regime (A), masked, seeds 100 to 109" in text

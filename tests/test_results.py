"""The numbers that the READMEs quote are those of the committed results."""

import importlib
import re
from pathlib import Path

import pytest

from lser.experiments import records

RESULTS = Path(__file__).resolve().parents[1] / "results"


@pytest.fixture(scope="module")
def readmes(build):
    """The READMEs as they should be, written once: it takes seconds."""
    return build.readmes()


def test_the_readmes_quote_the_results_files(readmes):
    for path, text in readmes.items():
        assert path.read_text() == text, f"{path.name} is stale: run python results/build.py"


def test_a_changed_number_would_be_noticed(build, readmes):
    front = next(iter(readmes.values()))
    changed = build.with_block(front, "results", "LSER is always best.")
    assert changed != front


def test_every_picture_of_the_readme_exists(readmes):
    for path, text in readmes.items():
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text):
            assert (path.parent / target).is_file(), target


def test_the_site_shows_the_results_with_the_first_screen_first():
    page = (RESULTS.parent / "docs" / "results.md").read_text()
    assert 0 < page.index("\n@block first\n") < page.index("\n@block studies\n")


def test_every_study_is_told_once_behind_a_line_of_its_own(build, readmes):
    page = build.with_block(readmes[build.RESULTS / "README.md"], "studies", "")
    told = {**build.OUTCOMES, **build.of_sections()}
    del told["outcome_i"]  # the grid and the comparison, which the page has the other way round
    studies = build.by_study.page()
    told = {name: said for name, reading in told.items() if (said := reading())}
    assert len(told) > 25  # what has not run says nothing
    for name, said in told.items():
        assert studies.count(said) == 1, name
        assert said not in page, name
    assert studies.count("<details") == studies.count("</details>") > len(told)


def test_a_line_says_what_came_of_a_study(build):
    summary = build.by_study.summary
    assert summary("**A** (x). The test **holds**: LSER is better. **B**.") == (
        "<b>A</b>: holds: LSER is better"
    )
    assert summary("**A** (x). It **is open**, 1.2.\n\n**B**") == "<b>A</b>: open"
    assert summary("**A.** And `lser`.") == "<b>A</b>"
    assert summary("**A**. *Near* it **pays**; *Far* away (x) it **costs**.") == (
        "<b>A</b>: near pays; far costs"
    )
    assert summary("**`a` wins** **b**") == "<b><code>a</code> wins</b>: b"


def test_what_pages_of_the_site_show_of_a_study_is_marked(build):
    for name in ("locality", "delayed", "lead"):
        text = build.by_study.page()
        inside = text.partition(f"<!-- {name}:begin -->")[2].partition(f"<!-- {name}:end -->")[0]
        assert inside.strip().startswith("**"), name


def test_every_experiment_is_planned_on_seeds_that_no_result_has_used(build):
    plan = (RESULTS / "plan.md").read_text()
    rows = re.findall(r"^\| \*\*([A-J])\*\* \|.*\| (\d+) to \d+[^|]*\|[^|]*\|[^|]*\|$", plan, re.M)
    assert [name for name, _ in rows] == list("ABCDEFGHIJ")
    planned = {
        "confirmation",
        "length",
        "cure",
        "delayed",
        "demo",
        "fall",
        "interest",
        "lead",
        "lead-bounded",
        "locality",
        "options",
        "offers",
        "paper-regime",
        "parts",
        "plateaus",
        "recommender",
    }  # themselves planned
    used = {run.seed for run in build.found() if run.study not in planned}
    assert all(int(first) > max(used) for _, first in rows)


def test_what_was_seen_before_is_listed(build, readmes):
    text = readmes[build.RESULTS / "README.md"]
    for commit in ("7e60a29", "aacbab0", "4a9aa45", "a133c47"):
        assert commit in text


def test_what_was_lost_is_said(build, readmes):
    text = readmes[build.RESULTS / "README.md"]
    assert "paper regime (A), masked, seeds 100 to 109" in text


def test_no_table_of_the_readmes_has_a_number_that_is_none(readmes):
    for path, text in readmes.items():
        assert not re.search(r"\bnan\b", text), path


FOUND = re.compile(r"([+-]?\d*\.\d+) \[([+-]?\d*\.\d+), ([+-]?\d*\.\d+)\]")


def intervals(text):
    """Every estimate with its interval, as numbers."""
    plain = text.replace("\u2212", "-")
    return [tuple(float(number) for number in found) for found in FOUND.findall(plain)]


def decimals(text):
    """Every number with a point, with how many digits it has behind it."""
    plain = text.replace("\u2212", "-")
    found = re.findall(r"(?<![\w.])[+-]?(\d*\.(\d+))(?!\w)", plain)
    return [(float(number), len(digits)) for number, digits in found]


@pytest.mark.parametrize(("letter", "script"), [("D", "locality"), ("K", "cure"), ("L", "demo")])
def test_the_numbers_of_the_plan_are_those_that_the_scripts_print(build, letter, script, capsys):
    plan = (RESULTS / "plan.md").read_text()
    outcome = re.search(rf"^\*\*Outcome of {letter}\*\*.*?\n\n", plan, re.M | re.S)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(RESULTS))
        importlib.import_module(script).main()
    printed = capsys.readouterr().out
    known = [number for number, _ in decimals(printed)]
    for number, digits in decimals(outcome.replace("mean .95 or more", "")):  # a target
        near = 0.5 * 10**-digits + 1e-9
        assert any(abs(number - other) <= near for other in known), number
    quoted, whole = intervals(outcome), intervals(printed)
    assert quoted
    for one in quoted:
        assert any(one == pytest.approx(other, abs=6e-4) for other in whole), one


def test_no_page_reads_what_the_plan_keeps_unread(build, monkeypatch, tmp_path):
    committed = importlib.import_module("committed")
    some = sorted(RESULTS.glob(records.PACKED))[0]
    for folder in (tmp_path, tmp_path / "unread"):
        folder.mkdir(exist_ok=True)
        (folder / f"{folder.name}.jsonl.gz").write_bytes(some.read_bytes())
    monkeypatch.setattr(committed, "RESULTS", tmp_path)
    assert len(committed.packed()) == len(records.find(some))

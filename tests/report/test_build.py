"""The report as a whole: complete, self-contained, the same every time."""

import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import synthetic

import lser.report
from lser.experiments.records import Record, find, pack
from lser.report import build_report, demo_page


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def test_every_figure_is_saved_as_svg_and_png_and_every_table_as_csv_and_markdown(
    report: Path,
) -> None:
    text = report.read_text()
    links = re.findall(r'href="((?:figures|tables)/[^"]+)"', text)
    assert len(links) > 100
    for link in links:
        assert (report.parent / link).stat().st_size > 0, link
    stems = Counter(file.stem for file in (report.parent / "figures").iterdir())
    assert set(stems.values()) == {2}


def test_every_study_has_its_section_and_its_figures(report: Path) -> None:
    text = report.read_text()
    for name in ("comparison", "running-time", "epsilon", "ablation", "hyperplanes", "bazaar-map",
                 "horizon", "agents", "mine"):  # fmt: skip
        assert f'<div id="{name}" class="inside">' in text
        assert f'<a href="#{name}">' in text
    for name in ("overview", "comparison-virtual-taobao-curves", "comparison-virtual-taobao-runs",
                 "comparison-improvement", "comparison-recogym-time", "bazaar-map-over-reward-top",
                 "hyperplanes-virtual-taobao-trend", "mine-virtual-taobao-runs"):  # fmt: skip
        assert f'<figure id="{name}">' in text


@pytest.mark.parametrize("page", ["report", "demo"])
def test_a_page_needs_nothing_from_outside(page: str, request: pytest.FixtureRequest) -> None:
    text = request.getfixturevalue(page).read_text()
    loaded = re.findall(r'(?:src|xlink:href|<link[^>]*href)="([^"]*)"', text)
    assert all(address.startswith(("#", "data:")) for address in loaded)
    assert "<script" not in text
    assert "@import" not in text


@pytest.mark.parametrize("page", ["report", "demo"])
def test_ids_are_unique_and_links_inside_the_page_lead_somewhere(
    page: str, request: pytest.FixtureRequest
) -> None:
    text = request.getfixturevalue(page).read_text()
    ids = Counter(re.findall(r'\bid="([^"]+)"', text))
    assert [name for name, times in ids.items() if times > 1] == []
    inside = re.findall(r'(?:href="|url\()#([^")]+)', text)
    assert set(inside) <= set(ids)


def test_every_figure_has_a_text_alternative_a_sentence_and_a_command(report: Path) -> None:
    figures = re.findall(r"<figure.*?</figure>", report.read_text(), flags=re.DOTALL)
    for figure in figures:
        assert re.search(r'role="img" aria-label="[^"]{30,}"', figure)
        assert re.search(r"<figcaption><p>[^<]{10,}\.</p>", figure)
        assert "<code>lser study " in figure


def test_runs_left_out_are_named_with_the_reason_and_escaped(report: Path) -> None:
    text = report.read_text()
    assert "2 runs left out, 1 failed" in text
    assert "failed: ValueError: &lt;made up&gt; &amp; broken" in text
    assert "not finished" in text


def test_the_same_records_give_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    runs = synthetic.demo(3)
    first = contents(build_report(runs, tmp_path / "first").parent)
    packed = pack(reversed(runs), tmp_path / "records.jsonl.gz")
    code = (
        "import sys; from lser.experiments.records import find; from lser.report import "
        "build_report; build_report(find(sys.argv[1]), sys.argv[2])"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    arguments = [sys.executable, "-c", code, str(packed), str(tmp_path / "second")]
    subprocess.run(arguments, check=True, env=environment)
    assert contents(tmp_path / "second") == first
    assert find(packed)[0].curve == runs[0].curve


def test_the_report_is_drawn_without_torch_or_a_simulator() -> None:
    code = (
        "import sys, lser.report; "
        "sys.exit(bool({'torch', 'scipy', 'numba', 'lser.simulators.base'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("records", [[], [synthetic.record("s", "a", 0, level=1, status="failed")]])
def test_a_report_without_a_finished_run_is_refused(records: list[Record], tmp_path: Path) -> None:
    for build in (build_report, demo_page):
        with pytest.raises(ValueError, match="no finished run"):
            build(records, tmp_path / "out")


def test_a_single_seed_without_curves_or_times_still_gives_a_report(tmp_path: Path) -> None:
    runs = []
    for label in ("lser", "uniform"):
        run = synthetic.record("comparison", label, 0, level=0.5)
        run.curve.clear()
        del run.final["times"]
        run.meta.pop("command")
        runs.append(run)
    text = build_report(runs, tmp_path).read_text()
    assert "cannot" in text
    assert not re.search(r"\bnan\b", text)


def test_a_study_of_running_times_stands_for_those_of_the_comparison(tmp_path: Path) -> None:
    names = ("lser", "uniform")
    runs = [
        synthetic.record(study, name, seed, level=0.5, memory={"name": name})
        for study in ("comparison", "running-time")
        for name in names
        for seed in range(3)
    ]
    text = build_report(runs, tmp_path).read_text()
    assert '<figure id="running-time-virtual-taobao-time">' in text
    assert '<figure id="comparison-virtual-taobao-time">' not in text
    assert '<figure id="running-time-virtual-taobao-curves">' not in text
    assert "running-time" not in (tmp_path / "tables" / "summary.csv").read_text()


def test_the_templates_are_part_of_the_package() -> None:
    root = Path(lser.report.__file__).parents[1]
    settings = tomllib.loads((root.parents[1] / "pyproject.toml").read_text())
    patterns = settings["tool"]["setuptools"]["package-data"]["lser"]
    packed = {path for pattern in patterns for path in root.glob(pattern)}
    assert set((root / "report" / "templates").iterdir()) <= packed


def test_the_first_screen_has_question_answer_tables_and_one_figure(report: Path) -> None:
    first = report.read_text().partition('<section id="first"')[2].partition("</section>")[0]
    assert first.index('class="question"') < first.index('class="answer"') < first.index("<table")
    assert "LSER ends above uniform replay in" in first
    assert first.count("<table") == 2
    assert first.count("<figure") == 1
    assert ">does not hold</td>" in first or ">open</td>" in first or ">holds</td>" in first


def test_what_follows_is_folded_by_study(report: Path) -> None:
    text = report.read_text()
    assert text.count("<details>") == text.count("<summary>") > 8
    assert "<details open" not in text


def test_no_table_shows_an_interval_that_is_none(report: Path) -> None:
    for table in (report.parent / "tables").iterdir():
        assert not re.search(r"\bnan\b", table.read_text()), table.name

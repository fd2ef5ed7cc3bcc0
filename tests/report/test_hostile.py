"""Whatever a record holds is data: on pages, in tables, in a terminal and as a name of a file."""

import csv
import dataclasses
import io
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import synthetic

from lser.cli.runs import runs as runs_command
from lser.experiments.experiment import Experiment
from lser.experiments.records import Record, damaged
from lser.experiments.study import job_for
from lser.report import Table, build_report, demo_page, files, summary_table
from lser.report.naming import clean, slug

HOSTILE = {
    "markup": '"><img src=x onerror=alert(1)><script>alert(2)</script>',
    "jinja": "{{ 7 * 7 }}{% raw %}",
    "formula": "=cmd|' /C calc'!A0",
    "math": "$x_{y$ \\frac{",
    "lines": "one\ntwo\r\nthree\tfour",
    "control": "a\x00b\x1b[31mred\x7f\u202ereversed",
    "path": "../../../etc/passwd",
    "absolute": "/tmp/elsewhere",
    "long": "x" * 5_000,
    "script": "汉字 العربية ²",
    "empty": " ",
    "anchor": "content",
    "markdown": "a | b \\| <b>c</b>",
}


class Active(HTMLParser):
    """Collects what a browser would run or load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "img", "iframe", "object", "embed"):
            self.found.append(tag)
        for name, value in attrs:
            if name.startswith("on") or (value or "").strip().lower().startswith("javascript:"):
                self.found.append(f"{tag} {name}")


def runs(text: str) -> list[Record]:
    """Records with ``text`` wherever a record holds text."""
    found = []
    for name in ("lser", text):
        for seed in range(2):
            run = synthetic.record(text, name, seed, level=0.5, memory={"name": name})
            experiment: dict[str, Any] = {
                **run.experiment,
                "simulator": {"name": text, "dial": text},
                "metric": text,
            }
            meta = {**run.meta, "command": text, "git_commit": text, "versions": {text: text}}
            found.append(dataclasses.replace(run, experiment=experiment, meta=meta))
    failed = synthetic.record(text, text, 9, level=0.5, status="failed")
    failed.meta["error"] = text
    return [*found, failed, damaged(Path(text.replace("\x00", "")), text)]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_text_of_a_record_stays_text(text: str, tmp_path: Path) -> None:
    inside = tmp_path / "a" / "b"
    check_page(build_report(runs(text), inside / "report"))
    assert {path.name for path in tmp_path.rglob("*") if path.is_dir()} == {
        *("a", "b", "report", "figures", "tables"),
    }
    for table in (inside / "report" / "tables").glob("*.csv"):
        cells = [cell for row in csv.reader(io.StringIO(table.read_text())) for cell in row]
        assert not any(cell.startswith(("=", "@")) for cell in cells)
    for table in (inside / "report" / "tables").glob("*.md"):
        lines = table.read_text().splitlines()
        assert len({line.replace("\\\\", "").replace("\\|", "").count("|") for line in lines}) == 1
        assert "<" not in table.read_text()
    shown = summary_table(runs(text)).text()
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 3


def check_page(page: Path) -> None:
    parser = Active()
    parser.feed(page.read_text())
    assert parser.found == []
    assert "\x1b" not in page.read_text()


def test_text_of_a_record_stays_text_on_the_demos_page(tmp_path: Path) -> None:
    check_page(demo_page(runs(HOSTILE["markup"]), tmp_path))


def test_two_names_that_look_alike_as_files_do_not_share_one(tmp_path: Path) -> None:
    names = ("a b", "a/b", "汉", "字")
    found = [synthetic.record(n, "lser", s, level=0.5) for n in names for s in range(2)]
    build_report(found, tmp_path)
    assert len(list((tmp_path / "tables").glob("*-scores.csv"))) == len(names)


@pytest.mark.parametrize(
    ("cell", "kept"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd", "'+cmd"),
        ("@x", "'@x"),
        ("-2+3", "'-2+3"),
        ("-0.5", "-0.5"),
        ("+0.141 [+0.045, +0.237]", "+0.141 [+0.045, +0.237]"),
        ("-1.2e-05", "-1.2e-05"),
    ],
)
def test_a_spreadsheet_calculates_nothing(cell: str, kept: str) -> None:
    text = Table("t", "", ("arm",), ((cell,),)).csv()
    assert list(csv.reader(io.StringIO(text)))[1] == [kept]


@pytest.mark.parametrize("study", ["../../x", "/abs/path", "..", ".", "a/b", "~", "x" * 300, "\n"])
def test_a_studys_name_is_one_folder_inside_out(study: str, tmp_path: Path) -> None:
    job = job_for(Experiment(study=study, label="../x"), tmp_path, "")
    folder = Path(job.folder).resolve()
    assert folder.is_relative_to(tmp_path.resolve())
    assert len(folder.relative_to(tmp_path.resolve()).parts) == 3
    folder.mkdir(parents=True)  # a name that the file system takes


def test_a_plain_study_keeps_its_name(tmp_path: Path) -> None:
    job = job_for(Experiment(study="bazaar-map"), tmp_path, "")
    assert Path(job.folder).parent.parent.name == "bazaar-map"


def test_names_of_files_are_plain() -> None:
    assert slug("../../A b,c") == "a-b-c"
    assert slug("汉") == "unnamed"
    assert clean("a\n b\x1b[0m") == "a b[0m"


def test_an_earlier_reports_files_go_and_others_stay(tmp_path: Path) -> None:
    build_report(synthetic.demo(2), tmp_path)
    first = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    (tmp_path / "figures" / "mine.svg").write_text("kept")
    other = [synthetic.record("other", "lser", seed, level=0.5) for seed in range(2)]
    build_report(other, tmp_path)
    second = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert "figures/demo-bazaar-curves.svg" in first - second
    assert {name for name in second if "demo" in name} == set()
    assert "figures/mine.svg" in second
    assert second - {"figures/mine.svg", "files.json"} == set(
        json.loads((tmp_path / "files.json").read_text())
    )


def test_a_forged_list_removes_nothing_outside(tmp_path: Path) -> None:
    precious = tmp_path / "precious.md"
    precious.write_text("kept")
    out = tmp_path / "report"
    out.mkdir()
    (out / "files.json").write_text(json.dumps(["../precious.md", str(precious), 3]))
    files.write(out, {"index.html": "<p>new</p>"})
    assert precious.read_text() == "kept"


def test_a_file_outside_of_the_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no name inside a report"):
        files.write(tmp_path, {"../x.html": ""})
    assert list(tmp_path.iterdir()) == []


def write(folder: Path, label: str) -> None:
    run = synthetic.record("own", label, 0, level=0.5, memory={"name": "lser"})
    folder.mkdir()
    for name, part in (("experiment", run.experiment), ("meta", run.meta), ("final", run.final)):
        (folder / f"{name}.json").write_text(json.dumps(part))


@pytest.mark.parametrize("label", ["lser [greedy=0.9]", "lser [/red]", "a:m:b", "a\x1b[31mb"])
def test_a_list_of_runs_shows_labels_as_they_are(
    label: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    write(tmp_path / "one", label)
    assert runs_command([str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert clean(label) in shown
    assert "\x1b" not in shown


def test_a_list_of_runs_names_the_damaged_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "good", "lser")
    write(tmp_path / "torn", "lser")
    (tmp_path / "torn" / "meta.json").write_text("")
    assert runs_command([str(tmp_path), "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = {Path(row["path"]).name: row["status"] for row in rows}
    assert found == {"good": "done", "torn": "damaged"}

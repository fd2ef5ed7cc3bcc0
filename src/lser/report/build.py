"""Records in, report out: the page with its figures and tables, and where they are saved."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from lser.experiments.records import Record
from lser.report import files, tables, verdicts
from lser.report.findings import FEW_SEEDS, StudyFindings, find_out
from lser.report.html import Page, Part, Section, render
from lser.report.naming import clean
from lser.report.panels import Panel, Study, studies
from lser.report.parts import panel_figures, sections_of
from lser.report.sentences import standing
from lser.report.style import count, listing

_METHOD = (
    "The unit of replication is the seed. Memories share seeds, so differences are paired.",
    "IQM is the interquartile mean: the mean of the middle half of the runs. Bands and IQM "
    "intervals are percentile bootstraps that redraw whole runs; with fewer than "
    f"{FEW_SEEDS} seeds they are too narrow, so means and paired differences carry t-intervals. "
    "Intervals are 95 % each and not corrected for the number of comparisons.",
    "“Beats” is the chance that a run of one memory ends above a run of the other, ties counted "
    "half. “Over training” is the average height of the learning curve. An interval such as [1, 1] "
    "says that every run of one ended above every run of the other among these few, not that it "
    "must.",
)


def build_report(
    records: Iterable[Record], out: Path | str, *, seed: int = 0, title: str = "Replay compared"
) -> Path:
    """Writes ``index.html``, every figure (SVG, PNG) and every table (CSV, Markdown) to ``out``.

    The same records and ``seed`` give the same bytes. What an earlier report left there goes.
    """
    runs = list(records)
    found = _found(runs, seed)
    sections = sections_of(found)
    scored = [run for study in found if study.study.spec.scored for run in _runs(study.study)]
    more = (
        tables.summary_table(scored, seed=seed),
        tables.numbers_table(scored, seed=seed),
        tables.left_out([study.study for study in found]),
    )
    page = _page(title, found, runs, sections, verdicts.in_short(found), linked=True)
    folder = Path(out)
    files.write(folder, {**_files(sections, more), "index.html": render(page)})
    return folder / "index.html"


def demo_page(
    records: Iterable[Record],
    out: Path | str,
    *,
    seed: int = 0,
    title: str = "LSER and uniform replay, side by side",
) -> Path:
    """Writes ``index.html`` to the folder ``out``: curves, runs, a table and what they show."""
    runs = list(records)
    found = _found(runs, seed)
    panels = [one for study in found for one in study.panels]
    sections = [
        Section(
            name=one.panel.name,
            title=one.panel.title,
            question=_settings(one.panel),
            findings=[],
            parts=[Part("", panel_figures(one), [tables.scores(one)])],
        )
        for one in panels
    ]
    short = [("", [standing(one) for one in panels])]
    page = _page(title, found, runs, sections, short, linked=False)
    target = Path(out) / "index.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(render(page), encoding="utf-8")
    return target


def _found(runs: Sequence[Record], seed: int) -> list[StudyFindings]:
    found = find_out(studies(runs), seed=seed)
    if not any(study.panels for study in found):
        raise ValueError(f"records holds no finished run (of {len(runs)})")
    return found


def _page(
    title: str,
    found: Sequence[StudyFindings],
    runs: Sequence[Record],
    sections: Sequence[Section],
    short: Sequence[tuple[str, Sequence[str]]],
    *,
    linked: bool,
) -> Page:
    sorted_runs = [study.study for study in found]
    return Page(
        title=title,
        lead=_lead(sorted_runs),
        sections=sections,
        short=short,
        notes=_METHOD,
        tables=[tables.left_out(sorted_runs)],
        provenance=_provenance(runs),
        warnings=_warnings(sorted_runs),
        files=linked,
    )


def _files(sections: Sequence[Section], more: Sequence[tables.Table]) -> dict[str, str | bytes]:
    parts = [part for section in sections for part in section.parts]
    written: dict[str, str | bytes] = {}
    for figure in (figure for part in parts for figure in part.figures):
        written[f"figures/{figure.name}.svg"] = figure.svg
        written[f"figures/{figure.name}.png"] = figure.png
    for table in (*(table for part in parts for table in part.tables), *more):
        written[f"tables/{table.name}.csv"] = table.csv()
        written[f"tables/{table.name}.md"] = table.markdown()
    return written


def _settings(panel: Panel) -> str:
    run = panel.experiment
    dials = [
        f"{k} {v}" for k, v in sorted(run["simulator"].items()) if k != "name" and v is not None
    ]
    shared = [
        f"{key.replace('_', ' ')} {run[key]}" for key in ("users", "batch_size") if key in run
    ]
    text = clean(", ".join([*dials, *shared]).replace("_", " "), 600)
    return f"Settings, equal for all memories: {text}." if text else ""


def _runs(study: Study) -> list[Record]:
    return [run for panel in study.panels for arm in panel.arms for run in arm.runs]


def _lead(found: Sequence[Study]) -> str:
    runs = [run for study in found for run in _runs(study)]
    seeds = {run.seed for run in runs}
    return (
        f"{count(len(runs), 'finished run')} with {count(len(seeds), 'seed')}. Every sentence "
        "below is computed from the records; “clearly” is said only where the 95 % interval of "
        "the paired difference excludes zero."
    )


def _warnings(found: Sequence[Study]) -> list[str]:
    unused = [reason for study in found for _, reason in study.left_out]
    lines = []
    if unused:
        failed = sum(reason.startswith("failed") for reason in unused)
        damaged = sum(reason.startswith("damaged") for reason in unused)
        spoilt = f", {damaged} damaged" if damaged else ""
        lines.append(
            f"{count(len(unused), 'run')} left out, {failed} failed{spoilt}: see the end of the "
            "page."
        )
    mixed = [clean(study.name) or "runs" for study in found if study.strays]
    if mixed:
        lines.append(
            f"The runs of {listing(mixed)} differ in more than what is compared; unlike runs are "
            "not pooled, each setting stands apart."
        )
    return lines


def _provenance(runs: Sequence[Record]) -> list[tuple[str, str]]:
    def seen(*values: object) -> str:
        return "; ".join(sorted({clean(str(value)) for value in values if value}))

    def flat(key: str) -> list[str]:
        entries = [found if isinstance(found := r.meta.get(key), dict) else {} for r in runs]
        return [", ".join(f"{k} {v}" for k, v in sorted(entry.items())) for entry in entries]

    commands = sorted({clean(str(r.meta["command"])) for r in runs if r.meta.get("command")})
    shown = "; ".join(commands[:8]) + (f"; and {len(commands) - 8} more" if commands[8:] else "")
    pairs = [
        ("Commands", shown),
        ("Versions", seen(*flat("versions"))),
        ("Commit", seen(*(r.meta.get("git_commit") for r in runs))),
        ("Machine", seen(*flat("machine"))),
    ]
    return [(name, value) for name, value in pairs if value]

"""Records in, report out: the page with its figures and tables, and where they are saved."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from lser.experiments.records import Record
from lser.experiments.studies import spec_for
from lser.report import files, tables, verdicts
from lser.report.claims import claims_table
from lser.report.findings import FEW_SEEDS, Finding, StudyFindings, find_out
from lser.report.html import Page, Part, Section, render
from lser.report.naming import clean
from lser.report.overview import in_one_sentence, overview
from lser.report.panels import Panel, Study
from lser.report.parts import headline_figure, panel_figures, panel_tables, sections_of
from lser.report.sentences import standing
from lser.report.sorting import studies
from lser.report.style import count, listing
from lser.report.table import Table

QUESTION = "Which memory makes the better recommender, and is it worth its place?"
_METHOD = (
    "The unit of replication is the seed. Memories share seeds, so differences are paired; the "
    "unpaired difference (Welch) stands beside them, and where the two disagree pairing decides.",
    "IQM is the interquartile mean: the mean of the middle half of the runs. Bands and IQM "
    "intervals are percentile bootstraps that redraw whole runs; with fewer than "
    f"{FEW_SEEDS} seeds they are too narrow, so means and paired differences carry t-intervals. "
    "Intervals are 95 % each. In tables p-values are corrected by Holm's method over the "
    "comparisons of that table; tables of different studies share seeds and are not corrected "
    "together.",
    "“Beats” is the chance that a run of one memory ends above a run of the other, ties counted "
    "half. “Over training” is the average height of the learning curve. An interval such as [1, 1] "
    "says that every run of one ended above every run of the other among these few, not that it "
    "must.",
    "Figures have lines at known scores: dotted random actions, dash-dotted the best that shows "
    "everybody the same, dashed the best policy known. A run “fell” when its end lies more than a "
    "tenth of the way from random to best below its own best evaluation, and more than two "
    "standard errors; that best is the highest of many noisy evaluations.",
)


def build_report(
    records: Iterable[Record],
    out: Path | str,
    *,
    seed: int = 0,
    title: str = "Replay compared",
    answer: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Path:
    """Writes ``index.html``, every figure (SVG, PNG) and every table (CSV, Markdown) to ``out``.

    The same records and ``seed`` give the same bytes. What an earlier report left there goes.
    ``answer`` stands before the page's own first sentence, ``notes`` behind its notes: what a
    reader should know of how the runs came about.
    """
    runs = list(records)
    found = _found(runs, seed)
    sections = sections_of(found)
    studied = [study.study for study in found]
    first, computed = _first(found)
    page = Page(
        title=title,
        question=QUESTION,
        answer=[*answer, *computed],
        first=first,
        figure=headline_figure(found),
        lead=_lead(studied),
        sections=sections,
        short=verdicts.in_short(found),
        notes=[*_METHOD, *notes],
        tables=[tables.left_out(studied)],
        provenance=_provenance(runs),
        warnings=_warnings(studied),
    )
    scored = [run for study in studied if study.spec.scored for run in _runs(study)]
    more = [tables.left_out(studied)]
    if scored:
        more += [tables.summary_table(scored, seed=seed), tables.numbers_table(scored, seed=seed)]
    folder = Path(out)
    files.write(folder, {**_files(page, [*first, *more]), "index.html": render(page)})
    return folder / "index.html"


def demo_page(
    records: Iterable[Record],
    out: Path | str,
    *,
    seed: int = 0,
    title: str = "LSER and uniform replay, side by side",
    answer: Sequence[str] = (),
) -> Path:
    """Writes ``index.html`` to the folder ``out``: curves, runs, a table and what they show.

    ``answer`` stands before the page's own first sentence.
    """
    runs = list(records)
    found = _found(runs, seed)
    studied = [study.study for study in found]
    panels = [one for study in found for one in study.panels]
    first, _ = _first(found)
    page = Page(
        title=title,
        question=spec_for("demo").question,
        answer=[*answer, *(standing(one) for one in panels)],
        first=first,
        figure=None,
        lead=_lead(studied),
        sections=[_demo_section(one) for one in panels],
        short=[],
        notes=_METHOD,
        tables=[tables.left_out(studied)],
        provenance=_provenance(runs),
        warnings=_warnings(studied),
        files=False,
        open=True,
    )
    target = Path(out) / "index.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(render(page), encoding="utf-8")
    return target


def _demo_section(one: Finding) -> Section:
    parts = [Part("", panel_figures(one), panel_tables(one))]
    return Section(one.panel.name, one.panel.title, _settings(one.panel), [], parts)


def _first(found: Sequence[StudyFindings]) -> tuple[list[Table], list[str]]:
    """The tables of the first screen, and the sentence above them."""
    table, claims = overview(found), claims_table(found)
    first = [one for one in (table.table if table else None, claims) if one is not None]
    answer = in_one_sentence(table) if table else ""
    return first, [answer] if answer else []


def _found(runs: Sequence[Record], seed: int) -> list[StudyFindings]:
    found = find_out(studies(runs), seed=seed)
    if not any(study.panels for study in found):
        raise ValueError(f"records holds no finished run (of {len(runs)})")
    return found


def _files(page: Page, more: Sequence[Table]) -> dict[str, str | bytes]:
    parts = [part for section in page.sections for part in section.parts]
    figures = [figure for part in parts for figure in part.figures]
    written: dict[str, str | bytes] = {}
    for figure in (*figures, *([page.figure] if page.figure else [])):
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
    mixed = [clean(study.name) or "runs without a study" for study in found if study.strays]
    if mixed:
        lines.append(
            f"Runs differ in more than what is compared, in {listing(mixed)}: unlike runs are not "
            "pooled, each setting stands apart."
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

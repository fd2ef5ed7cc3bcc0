"""Records in, report out: which figures and tables each study gets, and where they are saved."""

from collections.abc import Iterable
from pathlib import Path

from lser.experiments.records import Record
from lser.report import plots, tables, verdicts, wording
from lser.report.cells import Panel, Study, studies
from lser.report.estimates import FEW_SEEDS, overall_improvement
from lser.report.figures import Figure, render
from lser.report.html import Part, Section, definitions, page, paragraphs
from lser.report.stats import has_scipy, mean_t
from lser.report.style import count, name_of
from lser.report.summary import numbers_table, summary_table


def build_report(
    records: Iterable[Record], out: Path | str, *, seed: int = 0, title: str = "Replay compared"
) -> Path:
    """Writes ``index.html``, every figure (SVG, PNG) and every table (CSV, Markdown) to ``out``.

    The same records and ``seed`` give the same bytes. Needs SciPy (``pip install 'lser[report]'``).
    """
    mean_t([0.0, 1.0])  # asks for SciPy now rather than half-way
    runs = list(records)
    found = studies(runs)
    if not any(study.panels for study in found):
        raise ValueError(f"records holds no finished run (of {len(runs)})")
    folder = Path(out)
    sections: list[Section] = []
    for study in (study for study in found if study.panels):
        if study.name != "running-time":
            sections.append(_section(study, seed))
        if study.name == verdicts.timing_study(found):
            sections += _times_section(study)
    scored = [run for run in runs if run.study != "running-time"]
    overall = (summary_table(scored, seed=seed), numbers_table(scored, seed=seed))
    _save(folder, sections, (*overall, tables.left_out(found)))
    text = page(
        title=title,
        lead=paragraphs([_lead(found)]),
        sections=sections,
        short=verdicts.in_short(found, seed=seed),
        warning=_warning(found),
        notes=_notes(found, runs),
    )
    target = folder / "index.html"
    target.write_text(text, encoding="utf-8")
    return target


def demo_page(
    records: Iterable[Record],
    out: Path | str,
    *,
    seed: int = 0,
    title: str = "LSER and uniform replay, side by side",
) -> Path:
    """Writes ``index.html`` to the folder ``out``: curves, runs, a table and what they show."""
    runs = list(records)
    found = studies(runs)
    panels = [panel for study in found for panel in study.panels]
    if not panels:
        raise ValueError(f"records holds no finished run (of {len(runs)})")
    sections = [
        Section(
            name=panel.name,
            title=tables.title(panel),
            question=_settings(panel),
            findings=[],
            parts=[
                Part("", _panel_figures(panel, study, seed), [tables.scores(panel, seed=seed)]),
            ],
        )
        for study in found
        for panel in study.panels
    ]
    text = page(
        title=title,
        lead=paragraphs([_lead(found)]),
        sections=sections,
        short=[("", [verdicts.standing(panel, seed=seed) for panel in panels])],
        warning=_warning(found),
        notes=_notes(found, runs),
        files=False,
    )
    target = Path(out) / "index.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return target


def _section(study: Study, seed: int) -> Section:
    name = study.name or "runs"
    title, question = verdicts.about(study)
    if name == "bazaar-map":
        parts = [_map_part(study, seed)]
    else:
        parts = [_panel_part(panel, study, seed) for panel in study.panels]
    if name == "comparison":
        parts += _overall(study, seed)
    # Elsewhere the captions of the figures already say it all.
    found = verdicts.findings(study, seed=seed) if name == "comparison" else []
    return Section(name, title, question, found, parts)


def _panel_part(panel: Panel, study: Study, seed: int) -> Part:
    shown = [tables.scores(panel, seed=seed)]
    if panel.metric == "ctr" and any(run.curve for arm in panel.arms for run in arm.runs):
        shown.append(tables.thresholds(panel))
    return Part(tables.title(panel), _panel_figures(panel, study, seed), shown)


def _panel_figures(panel: Panel, study: Study, seed: int) -> list[Figure]:
    where, metric, command = tables.place(panel), name_of(panel.metric), _command(panel)
    tall = (4.8, 1.6 + 0.27 * len(panel.arms))
    found = []
    if any(arm.areas for arm in panel.arms):
        text = f"{wording.curves(panel, seed=seed)} {wording.caution(panel)}".strip()
        alt = f"Learning curves on {where}: {metric} over sessions. {text}"
        found.append(
            render(f"{panel.name}-curves", plots.curves(panel, seed=seed), alt=alt, sentence=text,
                   command=command)
        )  # fmt: skip
    text = wording.forest(panel, seed=seed)
    found.append(
        render(f"{panel.name}-forest", plots.forest(panel, seed=seed), sentence=text,
               alt=f"Final {metric} on {where} with intervals. {text}", command=command, size=tall)
    )  # fmt: skip
    text = wording.spread(panel)
    found.append(
        render(f"{panel.name}-runs", plots.dots(panel), sentence=text, command=command, size=tall,
               alt=f"Final {metric} of every run on {where}. {text}")
    )  # fmt: skip
    if study.name == "comparison":
        text = wording.profile(panel)
        found.append(
            render(f"{panel.name}-profile", plots.profile(panel), sentence=text, command=command,
                   alt=f"Performance profile on {where}. {text}")
        )  # fmt: skip
    if study.name == "hyperplanes":
        text = wording.trend(panel, seed=seed)
        found.append(
            render(f"{panel.name}-trend", plots.trend(panel, seed=seed), sentence=text,
                   alt=f"Final {metric} on {where} by number of bits. {text}", command=command)
        )  # fmt: skip
    return found


def _overall(study: Study, seed: int) -> list[Part]:
    """The chance to beat uniform over all settings, where there are several."""
    names = list(dict.fromkeys(arm.name for panel in study.panels for arm in panel.arms))
    rows = [
        (name, found)
        for name in names
        if (found := overall_improvement(list(study.panels), name, seed=seed)) is not None
    ]
    if len(study.panels) < 2 or not rows:
        return []
    text = wording.improvement(study, rows)
    figure = render(
        "comparison-improvement", plots.improvement(rows, "uniform"), sentence=text,
        alt=f"Probability of improvement over uniform. {text}", command=_command(study),
        size=(4.8, 1.3 + 0.27 * len(rows)),
    )  # fmt: skip
    return [Part("All settings together", [figure])]


def _times_section(study: Study) -> list[Section]:
    """The running times of a study's panels, where they were recorded."""
    timed = [panel for panel in study.panels if tables.times(panel).rows]
    if not timed:
        return []
    drawn = [
        render(
            f"{panel.name}-time", plots.running_time(panel), command=_command(panel),
            alt=f"Wall time by part on {tables.place(panel)}. {wording.running_time(panel)}",
            sentence=f"{tables.place(panel)}: {wording.running_time(panel)}",
            size=(4.8, 1.6 + 0.27 * len(panel.arms)),
        )
        for panel in timed
    ]  # fmt: skip
    part = Part("", drawn, [tables.times(panel) for panel in timed])
    return [Section("running-time", *verdicts.TITLES["running-time"], [], [part])]


def _map_part(study: Study, seed: int) -> Part:
    rivals = wording.map_rivals(study)
    texts = {name: wording.bazaar_map(study, name, seed=seed) for name in rivals}
    drawn = [
        render(
            f"bazaar-map-over-{name}", plots.bazaar_map(study, name, seed=seed),
            sentence=f"{text} Clear differences are bold.", command=_command(study),
            alt=f"Heat map of LSER minus {name_of(name)}. {text}", size=(4.8, 4.0),
        )
        for name, text in texts.items()
    ]  # fmt: skip
    return Part("", drawn, [tables.map_table(study, name, seed=seed) for name in rivals])


def _save(folder: Path, sections: list[Section], more: tuple[tables.Table, ...]) -> None:
    for name in ("figures", "tables"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    parts = [part for section in sections for part in section.parts]
    for figure in (figure for part in parts for figure in part.figures):
        (folder / "figures" / f"{figure.name}.svg").write_text(figure.svg, encoding="utf-8")
        (folder / "figures" / f"{figure.name}.png").write_bytes(figure.png)
    for table in (*(table for part in parts for table in part.tables), *more):
        (folder / "tables" / f"{table.name}.csv").write_text(table.csv(), encoding="utf-8")
        (folder / "tables" / f"{table.name}.md").write_text(table.markdown(), encoding="utf-8")


def _command(source: Study | Panel) -> str:
    """The command behind most runs of a study or a panel."""
    commands = source.commands
    if not commands:
        return ""
    more = len(commands) - 1
    return commands[0] + (f"  (and {count(more, 'more command')})" if more else "")


def _settings(panel: Panel) -> str:
    run = panel.arms[0].runs[0].experiment
    dials = [
        f"{k} {v}" for k, v in sorted(run["simulator"].items()) if k != "name" and v is not None
    ]
    shared = [
        f"{key.replace('_', ' ')} {run[key]}" for key in ("users", "batch_size") if key in run
    ]
    text = ", ".join([*dials, *shared]).replace("_", " ")
    return f"Settings, equal for all memories: {text}." if text else ""


def _lead(found: list[Study]) -> str:
    runs = sum(len(arm.runs) for study in found for p in study.panels for arm in p.arms)
    seeds = {run.seed for s in found for p in s.panels for arm in p.arms for run in arm.runs}
    return (
        f"{count(runs, 'finished run')} with {count(len(seeds), 'seed')}. Every sentence below is "
        "computed from the records; “clearly” is said only where the 95 % interval of the paired "
        "difference excludes zero."
    )


def _warning(found: list[Study]) -> str:
    unused = [reason for study in found for _, reason in study.left_out]
    failed = sum(reason.startswith("failed") for reason in unused)
    if not unused:
        return ""
    return f"{count(len(unused), 'run')} left out, {failed} failed: see the end of the page."


def _notes(found: list[Study], runs: list[Record]) -> str:
    method = [
        "The unit of replication is the seed. Memories share seeds, so differences are paired.",
        "IQM is the interquartile mean: the mean of the middle half of the runs. Bands and IQM "
        "intervals are percentile bootstraps that redraw whole runs; with fewer than "
        f"{FEW_SEEDS} seeds they are too narrow, so means and paired differences carry "
        + ("t-intervals" if has_scipy() else "bootstrap intervals too (SciPy is not installed)")
        + ". Intervals are 95 % each and not corrected for the number of comparisons.",
        "“Beats” is the chance that a run of one memory ends above a run of the other, ties "
        "counted half. “Over training” is the average height of the learning curve. An interval "
        "such as [1, 1] says that every run of one ended above every run of the other among these "
        "few, not that it must.",
    ]
    unused = tables.left_out(found)
    return (
        paragraphs(method)
        + (unused.html() if unused.rows else "")
        + "<h3>Where the runs come from</h3>\n"
        + definitions(_provenance(runs))
    )


def _provenance(runs: list[Record]) -> list[tuple[str, str]]:
    def seen(*values: object) -> str:
        return "; ".join(sorted({str(value) for value in values if value}))

    def flat(key: str) -> list[str]:
        return [
            ", ".join(f"{k} {v}" for k, v in sorted((r.meta.get(key) or {}).items())) for r in runs
        ]

    commands = sorted({str(r.meta["command"]) for r in runs if r.meta.get("command")})
    shown = "; ".join(commands[:8]) + (f"; and {len(commands) - 8} more" if commands[8:] else "")
    pairs = [
        ("Commands", shown),
        ("Versions", seen(*flat("versions"))),
        ("Commit", seen(*(r.meta.get("git_commit") for r in runs))),
        ("Machine", seen(*flat("machine"))),
    ]
    return [(name, value) for name, value in pairs if value]

"""What each study gets on the page: its spec asks for figures, and tables go with them."""

from collections.abc import Callable, Sequence

from lser.experiments.studies import spec_for
from lser.report import plots, sentences, tables, verdicts
from lser.report.figures import Draw, Figure, render
from lser.report.findings import Finding, StudyFindings
from lser.report.html import Part, Section
from lser.report.learning import while_learning
from lser.report.naming import clean
from lser.report.panels import Panel, Study
from lser.report.style import count, listing, name_of
from lser.report.table import Table

_WIDTH = 4.8  # inches


def sections_of(found: Sequence[StudyFindings]) -> list[Section]:
    """A section for every study with results, and one for what the runs cost."""
    timed = verdicts.timed(found)
    sections: list[Section] = []
    for study in (study for study in found if study.panels):
        if study.study.spec.figures != ("times",):
            sections.append(_section(study))
        if study is timed:
            sections += _times_section(study)
    return sections


def headline_figure(found: Sequence[StudyFindings]) -> Figure | None:
    """The curves of the first panel of the first headline study."""
    panels = [one for study in found if study.study.spec.headline for one in study.panels]
    drawn = next((one for one in panels if any(arm.areas for arm in one.panel.arms)), None)
    if drawn is None:
        return None
    return _curves(drawn, "overview")


def panel_figures(found: Finding) -> list[Figure]:
    """The figures that the study's spec asks for in each of its panels."""
    drawn = (_PANEL_FIGURES.get(kind) for kind in found.panel.spec.figures)
    return [one for draw in drawn if draw is not None and (one := draw(found)) is not None]


def _section(study: StudyFindings) -> Section:
    spec = study.study.spec
    if "map" in spec.figures:
        parts = [_map_part(study)]
    else:
        parts = [_panel_part(one) for one in study.panels]
    overall = _overall(study) if "improvement" in spec.figures else []
    return Section(
        name=study.study.anchor,
        title=clean(spec.title),
        question=spec.question,
        # Elsewhere the captions of the figures already say it all.
        findings=verdicts.sentences(study) if "improvement" in spec.figures else [],
        parts=[*parts, *overall],
        warnings=_strays(study.study),
    )


def _strays(study: Study) -> list[str]:
    if not study.strays:
        return []
    paths = listing([path.replace("_", " ") for path in study.strays])
    return [
        f"These runs also differ in {clean(paths, 400)}. Runs of unlike settings are not pooled: "
        "each stands in a panel of its own."
    ]


def _panel_part(found: Finding) -> Part:
    notes = [note for note in (sentences.unlearned(found), sentences.no_control(found)) if note]
    return Part(
        found.panel.title,
        panel_figures(found),
        panel_tables(found),
        [sentences.sentence(note) for note in notes],
    )


def panel_tables(found: Finding) -> list[Table]:
    """The tables of a panel: scores, further measures, and what was said while learning."""
    learning = while_learning(found)
    return [tables.scores(found), tables.measures(found), *([learning] if learning else [])]


def _figure(
    found: Finding,
    kind: str,
    draw: Draw,
    sentence: str,
    alt: str,
    *,
    tall: bool = False,
    name: str = "",
) -> Figure:
    panel = found.panel
    size = (_WIDTH, 1.6 + 0.27 * len(panel.arms)) if tall else (_WIDTH, 3.5)
    return render(
        name or f"{panel.name}-{kind}",
        draw,
        alt=f"{alt} {sentence}",
        sentence=sentence,
        command=_command(panel),
        size=size,
    )


def _curves(found: Finding, name: str = "") -> Figure | None:
    if not any(arm.areas for arm in found.panel.arms):
        return None
    parts = (sentences.curves(found), sentences.caution(found), sentences.lines(found))
    text = " ".join(part for part in parts if part)
    alt = f"Learning curves on {found.panel.place}: {name_of(found.panel.metric)} over sessions."
    return _figure(found, "curves", plots.curves(found), text, alt, name=name)


def _values(found: Finding) -> Figure | None:
    """What critics said along the curves, where they were asked."""
    if not (text := sentences.values(found)):
        return None
    alt = f"What critics expect on {found.panel.place} over sessions."
    return _figure(found, "values", plots.values(found), text, alt)


def _dots(found: Finding) -> Figure:
    parts = (sentences.forest(found), sentences.spread(found), sentences.lines(found))
    text = " ".join(part for part in parts if part)
    alt = f"Final {name_of(found.panel.metric)} of every run on {found.panel.place}."
    return _figure(found, "runs", plots.dots(found), text, alt, tall=True)


def _trend(found: Finding) -> Figure:
    axis = found.panel.spec.arm_by[0].name
    alt = f"Final {name_of(found.panel.metric)} on {found.panel.place} by number of {axis}."
    text = f"{sentences.trend(found)} {sentences.lines(found)}".strip()
    return _figure(found, "trend", plots.trend(found), text, alt)


_PANEL_FIGURES: dict[str, Callable[[Finding], Figure | None]] = {
    "curves": _curves,
    "runs": _dots,
    "trend": _trend,
    "values": _values,
}


def _overall(study: StudyFindings) -> list[Part]:
    """The chance to beat the reference over all settings, where there are several."""
    panels = study.study.panels
    names = list(dict.fromkeys(arm.name for panel in panels for arm in panel.arms))
    rows = [
        (name, found) for name in names if (found := study.overall_improvement(name)) is not None
    ]
    if len(panels) < 2 or not rows:
        return []
    text = sentences.improvement(study, rows)
    reference = study.study.spec.reference
    figure = render(
        f"{study.study.anchor}-improvement",
        plots.improvement(rows, reference),
        sentence=text,
        alt=f"Probability of improvement over {name_of(reference)}. {text}",
        command=_command(study.study),
        size=(_WIDTH, 1.3 + 0.27 * len(rows)),
    )
    return [Part("All settings together", [figure])]


def _times_section(study: StudyFindings) -> list[Section]:
    """The running times of a study's panels, where they were recorded."""
    timed = [found for found in study.panels if found.times]
    if not timed:
        return []
    drawn = [_times_figure(found) for found in timed]
    spec = spec_for("running-time")
    part = Part("", drawn, [tables.times(found) for found in timed])
    return [Section(spec.name, spec.title, spec.question, [], [part])]


def _times_figure(found: Finding) -> Figure:
    text = f"{found.panel.place}: {sentences.running_time(found)}"
    alt = "Wall time by part."
    return _figure(found, "time", plots.running_time(found), text, alt, tall=True)


def _map_part(study: StudyFindings) -> Part:
    rivals = sentences.map_rivals(study)
    drawn = [_map_figure(study, name) for name in rivals]
    return Part("", drawn, [tables.map_table(study.panels, name) for name in rivals])


def _map_figure(study: StudyFindings, against: str) -> Figure:
    text = sentences.on_the_map(study, against)
    return render(
        f"{study.study.anchor}-over-{against}",
        plots.heat_map(study.panels, against),
        sentence=f"{text} Differences that stand after Holm's correction are bold.",
        command=_command(study.study),
        alt=f"Heat map of LSER minus {name_of(against)}. {text}",
        size=(_WIDTH, 4.0),
    )


def _command(source: Study | Panel) -> str:
    """The command behind most runs of a study or a panel."""
    commands = source.commands
    if not commands:
        return ""
    more = len(commands) - 1
    return commands[0] + (f"  (and {count(more, 'more command')})" if more else "")

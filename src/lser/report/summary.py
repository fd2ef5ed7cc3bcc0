"""All studies in one table: as text to read, and as bare numbers for programs."""

from collections.abc import Iterable

from lser.experiments.records import Record
from lser.report.cells import studies
from lser.report.estimates import estimates
from lser.report.stats import Interval, has_scipy
from lser.report.style import interval, name_of
from lser.report.tables import Table, place


def summary_table(records: Iterable[Record], *, seed: int = 0) -> Table:
    """One row per cell over all studies, for a terminal or a README."""
    rows = [
        (
            panel.study or "runs",
            place(panel),
            name_of(found.arm.name),
            str(len(found.arm.runs)),
            name_of(panel.metric),
            interval(found.iqm),
            interval(found.mean),
            interval(found.versus.difference, sign=True) if found.versus else "–",
        )
        for study in studies(records)
        for panel in study.panels
        for found in estimates(panel, seed=seed)
    ]
    columns = ("study", "where", "arm", "seeds", "metric", "IQM", "mean", "minus reference")
    caption = (
        "Final scores with 95 % intervals: IQM (bootstrap), mean and paired difference "
        f"({'t' if has_scipy() else 'bootstrap'})."
    )
    return Table("summary", caption, columns, tuple(rows))


def numbers_table(records: Iterable[Record], *, seed: int = 0) -> Table:
    """One row per cell over all studies, every estimate and interval end in a column of its own."""
    estimated = ("iqm", "mean", "over_training", "difference", "improvement")
    columns = [
        *("study", "simulator", "setting", "arm", "memory", "metric", "seeds", "reference"),
        *("pairs", "verdict"),
        *(f"{name}{end}" for name in estimated for end in ("", "_low", "_high")),
    ]
    rows = []
    for panel in (panel for study in studies(records) for panel in study.panels):
        for found in estimates(panel, seed=seed):
            against = found.versus
            paired = (against.difference, against.improvement) if against else (None, None)
            values = (found.iqm, found.mean, found.area, *paired)
            rows.append(
                (
                    *(panel.study, panel.simulator, panel.setting, found.arm.name),
                    *(found.arm.memory, panel.metric, str(len(found.arm.runs))),
                    *((against.reference, str(against.pairs), against.verdict) if against else ()),
                    *(() if against else ("", "", "reference" if panel.reference else "")),
                    *(cell for value in values for cell in _cells(value)),
                )
            )
    return Table("numbers", "Every estimate of the report.", tuple(columns), tuple(rows))


def _cells(value: Interval | None) -> list[str]:
    if value is None:
        return ["", "", ""]
    return [f"{number:.6g}" if number == number else "" for number in value]

"""Tables: rows of text that become HTML, CSV, Markdown or plain text."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lser.experiments.records import Record
from lser.report.findings import PARTS, THRESHOLDS, Estimate, Finding, find_out, reached
from lser.report.naming import clean
from lser.report.panels import Study, studies
from lser.report.stats import Interval
from lser.report.style import interval, name_of, number

SHORT = {"above": "clearly above", "below": "clearly below", "open": "not separated"}
# Cells that a spreadsheet would calculate; our own signed numbers and intervals are none.
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+\-]?[\d.,]+(e[+\-]?\d+)?( %)?( \[[+\-]?[\d.,]+, [+\-]?[\d.,]+\])?")


@dataclass(frozen=True)
class Table:
    """A caption, column names and rows of text; the first column names the row."""

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def csv(self) -> str:
        """The table as comma-separated values, none of which a spreadsheet takes for a formula."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(_inert(cell) for cell in self.columns)
        writer.writerows([_inert(cell.replace("−", "-")) for cell in row] for row in self.rows)
        return buffer.getvalue()

    def markdown(self) -> str:
        """The table in Markdown."""
        lines = [self.columns, ("---",) * len(self.columns), *self.rows]
        return "".join(f"| {' | '.join(_markdown(cell) for cell in line)} |\n" for line in lines)

    def __str__(self) -> str:
        """The table as a terminal shows it."""
        return self.text()

    def text(self) -> str:
        """The table in aligned columns, for a terminal."""
        lines = [self.columns, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        return "".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            + "\n"
            for line in lines
        )


def scores(found: Finding) -> Table:
    """The final scores of a panel: what each arm reached, and against the reference."""
    panel = found.panel
    against = name_of(panel.reference.name) if panel.reference else ""
    columns = ["arm", "seeds", "IQM", "mean", "over training"]
    caption = (
        f"{panel.title}: final {name_of(panel.metric)}. IQM with 95 % bootstrap intervals; mean"
    )
    if against:
        columns += [f"minus {against}", f"beats {against}", "reading"]
        caption += (
            ", average over training and paired difference with 95 % t-intervals; chance that a "
            "run beats one of the reference, with 95 % bootstrap intervals."
        )
    else:
        caption += " and average over training with 95 % t-intervals."
    rows = tuple(_score_row(row, compared=bool(against)) for row in found.estimates)
    return Table(f"{panel.name}-scores", caption, tuple(columns), rows)


def _score_row(found: Estimate, *, compared: bool) -> tuple[str, ...]:
    row = (
        name_of(found.arm.name),
        str(len(found.arm.runs)),
        interval(found.iqm),
        interval(found.mean),
        interval(found.area) if found.area else "–",
    )
    if found.versus is None:
        return (*row, "–", "–", "reference") if compared else row
    return (
        *row,
        interval(found.versus.difference, sign=True),
        interval(found.versus.improvement),
        SHORT.get(found.versus.verdict, "too few seeds"),
    )


def thresholds(found: Finding) -> Table:
    """How many runs ever reached a CTR, and after how many sessions."""
    panel, columns, rows = found.panel, ["arm"], []
    for level in THRESHOLDS:
        columns += [f"reached {level:g}", f"median sessions to {level:g}"]
    longest = max(run.curve[-1]["sessions"] for arm in panel.arms for run in arm.runs if run.curve)
    for arm in (arm for arm in panel.arms if arm.areas):
        row = [name_of(arm.name)]
        for level in THRESHOLDS:
            share = reached(arm, level)
            hits = round(share.share.estimate * share.runs)
            low, high = number(share.share.low), number(share.share.high)
            median = share.median_sessions
            row += [
                f"{hits} of {share.runs} [{low}, {high}]",
                f"> {longest:,.0f}" if median == float("inf") else f"{median:,.0f}",
            ]
        rows.append(tuple(row))
    caption = (
        f"{panel.title}: share of runs whose curve ever reached a {name_of(panel.metric)}, with "
        "exact 95 % (Clopper-Pearson) intervals, and the Kaplan-Meier median of the sessions it "
        "took; runs that never got there count as longer than they ran."
    )
    return Table(f"{panel.name}-thresholds", caption, tuple(columns), tuple(rows))


def times(found: Finding) -> Table:
    """Where the time of a run goes, averaged over seeds."""
    panel = found.panel
    columns = ("memory", "seeds", "wall, s", "CPU, s", *(f"{part}, %" for part in PARTS), "rest, %")
    rows = []
    for arm in (arm for arm in panel.arms if arm.name in found.times):
        mean = found.times[arm.name]
        shares = [100 * mean[part] / mean["wall"] for part in PARTS]
        rows.append(
            (
                name_of(arm.name),
                str(len(arm.runs)),
                f"{mean['wall']:,.1f}",
                f"{mean['cpu']:,.1f}",
                *(f"{share:.1f}" for share in (*shares, max(0.0, 100 - sum(shares)))),
            )
        )
    caption = (
        f"{panel.title}: seconds of one run (mean over seeds) and the shares of its wall time. "
        "Runs of a study share a machine, so compare shares and ratios, not seconds."
    )
    return Table(f"{panel.name}-times", caption, columns, tuple(rows))


def map_table(panels: Sequence[Finding], against: str) -> Table:
    """LSER minus another memory in every cell of a map."""
    rows = []
    for found in panels:
        pair = found.against("lser", against)
        arm, other = found.panel.arm("lser"), found.panel.arm(against)
        if pair is None or arm is None or other is None:
            continue
        rows.append(
            (
                ", ".join(f"{value:g}" for value in found.panel.coordinates),
                str(pair.pairs),
                number(float(arm.values.mean())),
                number(float(other.values.mean())),
                interval(pair.difference, sign=True),
                SHORT.get(pair.verdict, "too few seeds"),
            )
        )
    panel, other_name = panels[0].panel, name_of(against)
    axes = ", ".join(axis.name.partition(" (")[0] for axis in panel.spec.panel_by)
    columns = (axes, "seeds", "LSER", other_name, "difference", "reading")
    caption = (
        f"{name_of(panel.simulator)}: mean final scores of LSER and {other_name}, and the paired "
        "difference with its 95 % interval."
    )
    return Table(f"bazaar-map-{against}", caption, columns, tuple(rows))


def left_out(found: Sequence[Study]) -> Table:
    """The runs the report does not use, each with where it lies and the reason."""
    rows = tuple(
        (
            clean(study.name) or "runs",
            name_of(clean(run.simulator)) or "–",
            clean(run.label) or "–",
            str(run.seed) if run.experiment else "–",
            clean(run.where),
            reason,
        )
        for study in found
        for run, reason in study.left_out
    )
    columns = ("study", "simulator", "arm", "seed", "record", "why")
    return Table("left-out", "Runs that were left out, and why.", columns, rows)


def summary_table(records: Iterable[Record], *, seed: int = 0) -> Table:
    """One row per cell over all studies, for a terminal or a README."""
    rows = [
        (
            found.panel.study or "runs",
            found.panel.place,
            name_of(row.arm.name),
            str(len(row.arm.runs)),
            name_of(found.panel.metric),
            interval(row.iqm),
            interval(row.mean),
            interval(row.versus.difference, sign=True) if row.versus else "–",
        )
        for study in find_out(studies(records), seed=seed)
        for found in study.panels
        for row in found.estimates
    ]
    columns = ("study", "where", "arm", "seeds", "metric", "IQM", "mean", "minus reference")
    caption = "Final scores with 95 % intervals: IQM (bootstrap), mean and paired difference (t)."
    return Table("summary", caption, columns, tuple(rows))


def numbers_table(records: Iterable[Record], *, seed: int = 0) -> Table:
    """One row per cell over all studies, every estimate and interval end in a column of its own."""
    estimated = ("iqm", "mean", "over_training", "difference", "improvement")
    columns = (
        *("study", "simulator", "setting", "arm", "memory", "metric", "seeds", "reference"),
        *("pairs", "verdict"),
        *(f"{name}{end}" for name in estimated for end in ("", "_low", "_high")),
    )
    rows = tuple(
        _numbers(found, row)
        for study in find_out(studies(records), seed=seed)
        for found in study.panels
        for row in found.estimates
    )
    return Table("numbers", "Every estimate of the report.", columns, rows)


def _numbers(found: Finding, row: Estimate) -> tuple[str, ...]:
    panel, against = found.panel, row.versus
    paired = (against.difference, against.improvement) if against else (None, None)
    reading = (
        (against.reference, str(against.pairs), against.verdict)
        if against
        else ("", "", "reference" if panel.reference else "")
    )
    return (
        *(panel.study, panel.simulator, panel.setting, row.arm.name),
        *(row.arm.memory, panel.metric, str(len(row.arm.runs)), *reading),
        *(cell for value in (row.iqm, row.mean, row.area, *paired) for cell in _cells(value)),
    )


def _cells(value: Interval | None) -> list[str]:
    if value is None:
        return ["", "", ""]
    return [f"{number:.6g}" if number == number else "" for number in value]


def _inert(cell: str) -> str:
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def _markdown(cell: str) -> str:
    return " ".join(cell.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")

"""Tables: rows of text that become HTML, CSV, Markdown or plain text."""

import csv
import html
import io
from dataclasses import dataclass

from lser.report.cells import Panel, Study, map_coordinates
from lser.report.estimates import THRESHOLDS, estimates, reached, versus
from lser.report.stats import has_scipy
from lser.report.style import interval, name_of, number

PARTS = ("env", "replay", "learn", "evaluate")
SHORT = {"above": "clearly above", "below": "clearly below", "open": "not separated"}


@dataclass(frozen=True)
class Table:
    """A caption, column names and rows of text; the first column names the row."""

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def csv(self) -> str:
        """The table as comma-separated values."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([cell.replace("−", "-") for cell in row] for row in self.rows)
        return buffer.getvalue()

    def markdown(self) -> str:
        """The table in Markdown."""
        lines = [self.columns, ("---",) * len(self.columns), *self.rows]
        return "".join(
            f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n"
            for line in lines
        )

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

    def html(self) -> str:
        """The table in HTML, in a region that scrolls by itself when it is too wide."""
        head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in self.columns)
        body = "".join(
            f'<tr><th scope="row">{html.escape(row[0])}</th>'
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])
            + "</tr>\n"
            for row in self.rows
        )
        caption = html.escape(self.caption)
        return (
            f'<div class="scroll" role="region" tabindex="0" aria-label="{caption}">\n'
            f"<table><caption>{caption}</caption>\n"
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
        )


def scores(panel: Panel, *, seed: int) -> Table:
    """The final scores of a panel: what each arm reached, and against the reference."""
    against = name_of(panel.reference.name) if panel.reference else ""
    columns = ["arm", "seeds", "IQM", "mean", "over training"]
    if against:
        columns += [f"minus {against}", f"beats {against}", "reading"]
    rows = []
    for found in estimates(panel, seed=seed):
        row = [
            name_of(found.arm.name),
            str(len(found.arm.runs)),
            interval(found.iqm),
            interval(found.mean),
            interval(found.area) if found.area else "–",
        ]
        if found.versus is not None:
            row += [
                interval(found.versus.difference, sign=True),
                interval(found.versus.improvement),
                SHORT.get(found.versus.verdict, "too few seeds"),
            ]
        elif against:
            row += ["–", "–", "reference"]
        rows.append(tuple(row))
    kind = "t" if has_scipy() else "bootstrap"
    caption = (
        f"{title(panel)}: final {name_of(panel.metric)}. IQM with 95 % bootstrap intervals; mean, "
        f"average over training and paired difference with 95 % {kind}-intervals; "
        f"chance that a run beats one of the reference, with 95 % bootstrap intervals."
    )
    if not against:
        caption = caption.partition("; chance")[0].replace(" and paired difference", "") + "."
    return Table(f"{panel.name}-scores", caption, tuple(columns), tuple(rows))


def thresholds(panel: Panel) -> Table:
    """How many runs ever reached a CTR, and after how many sessions."""
    columns = ["arm"]
    for level in THRESHOLDS:
        columns += [f"reached {level:g}", f"median sessions to {level:g}"]
    rows = []
    for arm in panel.arms:
        row = [name_of(arm.name)]
        for level in THRESHOLDS:
            found = reached(arm, level)
            hits = round(found.share.estimate * found.runs)
            low, high = number(found.share.low), number(found.share.high)
            row += [f"{hits} of {found.runs} [{low}, {high}]", _sessions(panel, found[-1])]
        rows.append(tuple(row))
    caption = (
        f"{title(panel)}: share of runs whose curve ever reached a {name_of(panel.metric)}, with "
        "exact 95 % (Clopper-Pearson) intervals, and the Kaplan-Meier median of the sessions it "
        "took; runs that never got there count as longer than they ran."
    )
    return Table(f"{panel.name}-thresholds", caption, tuple(columns), tuple(rows))


def times(panel: Panel) -> Table:
    """Where the time of a run goes, averaged over seeds."""
    columns = ("memory", "seeds", "wall, s", "CPU, s", *(f"{part}, %" for part in PARTS), "rest, %")
    rows = []
    for arm in panel.arms:
        mean = mean_times(panel, arm.name)
        if not mean:
            continue
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
        f"{title(panel)}: seconds of one run (mean over seeds) and the shares of its wall time. "
        "Runs of a study share a machine, so compare shares and ratios, not seconds."
    )
    return Table(f"{panel.name}-times", caption, columns, tuple(rows))


def mean_times(panel: Panel, name: str) -> dict[str, float]:
    """The mean time of each part over the runs of an arm; empty where none was recorded.

    Runs of a fleet share their time with others and are left out.
    """
    arm = panel.arm(name)
    runs = [run for run in (arm.runs if arm else ()) if not run.shared]
    found = [run.final["times"] for run in runs if run.final and run.final.get("times")]
    if not found:
        return {}
    return {
        part: sum(float(entry.get(part, 0.0)) for entry in found) / len(found)
        for part in (*PARTS, "wall", "cpu")
    }


def map_table(study: Study, against: str, *, seed: int) -> Table:
    """LSER minus another memory in every cell of the Bazaar map."""
    rows = []
    for panel in study.panels:
        arm, other = panel.arm("lser"), panel.arm(against)
        if arm is None or other is None:
            continue
        found = versus(arm, other, seed=seed, key=panel.name)
        sparsity, dependence = map_coordinates(arm.runs[0])
        rows.append(
            (
                f"{sparsity:g}, {dependence:g}",
                str(found.pairs),
                number(float(arm.values.mean())),
                number(float(other.values.mean())),
                interval(found.difference, sign=True),
                SHORT.get(found.verdict, "too few seeds"),
            )
        )
    other_name = name_of(against)
    columns = ("sparsity, state dependence", "seeds", "LSER", other_name, "difference", "reading")
    caption = (
        f"Bazaar: mean final scores of LSER and {other_name}, and the paired difference with its "
        "95 % interval."
    )
    return Table(f"bazaar-map-{against}", caption, columns, tuple(rows))


def left_out(found: list[Study]) -> Table:
    """The runs the report does not use, each with the reason."""
    rows = tuple(
        (study.name or "runs", name_of(run.simulator), run.label, str(run.seed), reason)
        for study in found
        for run, reason in study.left_out
    )
    columns = ("study", "simulator", "arm", "seed", "why")
    return Table("left-out", "Runs that were left out, and why.", columns, rows)


def place(panel: Panel) -> str:
    """Where a panel was measured: the simulator and what else was set."""
    where = name_of(panel.simulator)
    return f"{where}, {name_of(panel.setting)}" if panel.setting else where


def title(panel: Panel) -> str:
    """The place of a panel with the length of its runs."""
    length = max(run.experiment.get("sessions", 0) for arm in panel.arms for run in arm.runs)
    where = place(panel)
    return f"{where}, {length:,} sessions" if length and "sessions" not in panel.setting else where


def _sessions(panel: Panel, median: float) -> str:
    if median != float("inf"):
        return f"{median:,.0f}"
    longest = max(run.curve[-1]["sessions"] for arm in panel.arms for run in arm.runs if run.curve)
    return f"> {longest:,.0f}"

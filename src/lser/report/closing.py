"""What a comparison or a study ends with in a terminal: a sentence and a table in 80 columns."""

import textwrap
from collections.abc import Iterable
from dataclasses import replace

from lser.experiments.records import Record
from lser.report.findings import Finding, find_out
from lser.report.sorting import studies
from lser.report.stats import Interval
from lser.report.style import interval, listing, name_of, number
from lser.report.table import Table

WIDTH = 80
NAME = 8  # columns that the first column has at least
SIGNS = {"above": "▲", "below": "▼", "above?": "△", "below?": "▽", "open": "=", "unknown": "?"}


def closing(records: Iterable[Record], *, seed: int = 0) -> str:
    """For every panel of these records its table and what it shows, each line within 80 columns."""
    return "\n\n".join(panel_text(one) for one in findings(records, seed=seed))


def findings(records: Iterable[Record], *, against: str = "", seed: int = 0) -> list[Finding]:
    """Every panel of these records; where `against` is an arm of it, that is the reference."""
    found = [one for study in find_out(studies(records), seed=seed) for one in study.panels]
    if not against:
        return found
    return [
        Finding(replace(one.panel, spec=replace(one.panel.spec, reference=against)), seed)
        for one in found
    ]


def panel_text(found: Finding) -> str:
    """One panel: its verdict, its table and what the signs mean."""
    table = scores_table(found)
    notes = "\n".join(fill(note) for note in table.notes)
    return f"{fill(verdict(found))}\n\n{table.text()}{notes}".rstrip()


def verdict(found: Finding) -> str:
    """One sentence: who ends clearly above the reference, who below, and who is not separated."""
    panel, reference = found.panel, found.panel.reference
    top = max(found.estimates, key=lambda row: row.mean.estimate)
    highest = f"{name_of(top.arm.name)} has the highest mean, {number(top.mean.estimate)}"
    place = f"{panel.title}: "
    if reference is None or len(panel.arms) < 2:
        return f"{place}{highest}."
    against = name_of(reference.name)
    pairs = [row.versus for row in found.estimates if row.versus is not None]
    if max(pair.pairs for pair in pairs) < 2:
        return f"{place}one seed cannot tell them apart; {highest}."
    parts = []
    for word in ("above", "below"):
        for pair in (pair for pair in pairs if found.reading(pair) == word):
            shown = f"{interval(pair.difference, sign=True)} over {pair.pairs} paired seeds"
            parts.append(f"{name_of(pair.arm)} ends clearly {word} {against} ({shown})")
    clear = bool(parts)
    others = [name_of(p.arm) for p in pairs if found.reading(p) not in ("above", "below")]
    if others:
        verb = "is" if len(others) == 1 else "are"
        seeds = "" if clear else f" over {max(pair.pairs for pair in pairs)} paired seeds"
        parts.append(f"{listing(others)} {verb} not separated from {against}{seeds}")
    if not clear:
        parts.append(highest)
    return f"{place}{'; '.join(parts)}."


def scores_table(found: Finding) -> Table:
    """The final scores of a panel, narrow enough for a terminal of 80 columns."""
    panel, scale = found.panel, found.panel.scale
    against = name_of(panel.reference.name) if panel.reference else ""
    columns = ["arm", "seeds", f"final {name_of(panel.metric)}"]
    columns += ["share"] if scale else []
    columns += ["difference", ""] if against else []
    rows = []
    for row in found.estimates:
        cells = [name_of(row.arm.name), str(len(row.arm.runs)), interval(row.mean)]
        if scale:
            cells.append(number(scale.share(row.mean.estimate), digits=2))
        if against:
            pair = row.versus
            shown = pair.difference if pair else Interval(*(float("nan"),) * 3)
            cells += [interval(shown, sign=True), SIGNS[found.reading(pair)] if pair else ""]
        rows.append(cells)
    rest = [max(len(line[i]) for line in (columns, *rows)) for i in range(1, len(columns))]
    name = max(NAME, WIDTH - sum(rest) - 2 * len(rest))
    rows = [line for cells in rows for line in _wrapped(cells, name)]
    notes = ["Means with 95 % t-intervals over seeds."]
    if scale:
        notes.append(
            f"share: of the way from {scale.random.name} ({number(scale.random.score)}) to "
            f"{scale.best.name} ({number(scale.best.score)})."
        )
    if against:
        notes.append(
            f"difference: minus {against}, paired over seeds. ▲ clearly above, ▼ clearly below "
            "(with Holm's correction over the arms), △ ▽ only without the correction, "
            "= not separated, ? too few seeds."
        )
    caption = f"{panel.title}: final {name_of(panel.metric)}."
    lines = tuple(tuple(cells) for cells in rows)
    return Table(f"{panel.name}-closing", caption, tuple(columns), lines, notes=tuple(notes))


def _wrapped(cells: list[str], width: int) -> list[list[str]]:
    """A row whose name takes as many lines as it needs: names are never cut."""
    first, *more = textwrap.wrap(
        cells[0], width, break_on_hyphens=False, subsequent_indent="  "
    ) or [""]
    return [[first, *cells[1:]], *([part, *[""] * (len(cells) - 1)] for part in more)]


def short(text: str, width: int) -> str:
    """`text`, cut with an ellipsis where it is longer than `width`."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def fill(text: str, width: int = WIDTH) -> str:
    """`text` broken into lines of at most `width` columns."""
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)

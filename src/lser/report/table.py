"""A table: rows of text that become CSV, Markdown or plain text; a template makes HTML of it."""

import csv
import io
import re
from dataclasses import dataclass

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
    marks: tuple[tuple[str, ...], ...] = ()
    """For each cell a word that gives it a colour; nothing for a table without colours."""
    notes: tuple[str, ...] = ()
    """What stands under it."""

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


def _inert(cell: str) -> str:
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def _markdown(cell: str) -> str:
    return " ".join(cell.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")

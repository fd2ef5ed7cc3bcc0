"""The page: one HTML file that needs nothing else, in light and dark, on desk and phone.

Its text comes from the templates beside this module with every value escaped; what a record holds
is data, whatever it looks like.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from lser.report.figures import Figure
from lser.report.table import Table

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True)
class Part:
    """A heading with what stands under it: figures and tables."""

    title: str
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class Section:
    """One study on the page."""

    name: str
    """Its anchor, of plain letters only."""
    title: str
    question: str
    findings: Sequence[str]
    parts: Sequence[Part]
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class Page:
    """Everything that the template shows."""

    title: str
    question: str
    answer: Sequence[str]
    lead: str
    first: Sequence[Table]
    """The tables of the first screen."""
    figure: Figure | None
    sections: Sequence[Section]
    short: Sequence[tuple[str, Sequence[str]]]
    notes: Sequence[str]
    tables: Sequence[Table]
    provenance: Sequence[tuple[str, str]]
    warnings: Sequence[str] = ()
    files: bool = True
    """Whether to link the figures and tables saved beside the page."""
    open: bool = False
    """Whether the sections are unfolded."""


def render(page: Page) -> str:
    """The whole page as HTML."""
    return _environment().get_template("page.html.j2").render(page=page)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("lser.report", "templates")
    return Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )

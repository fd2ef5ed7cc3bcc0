"""``lser report``: records as one page with figures and tables."""

from pathlib import Path
from typing import Annotated

import tyro

from lser.experiments import records


def report(argv: list[str]) -> int:
    """Draw records."""
    return int(tyro.cli(_report, args=argv, prog="lser report"))


def _report(
    runs: Annotated[Path, tyro.conf.Positional] = Path("runs"),
    /,
    out: Path = Path("report"),
    title: str = "Experience replay for online recommendation",
) -> int:
    """Draw the records under a folder as one self-contained page, figures and tables.

    example: lser report results --out report

    Args:
        runs: Folder of records, or a packed file of them.
        out: Where the page, the figures (SVG, PNG) and the tables (CSV, Markdown) go.
        title: Heading of the page.
    """
    from lser.report import build_report

    found = records.find(runs)
    if not any(record.status == "done" for record in found):
        raise ValueError(f"no finished record under {runs}")
    print(build_report(found, out, title=title))
    return 0

"""``lser runs``: a table of records."""

import json
from pathlib import Path
from typing import Annotated

import tyro
from rich.table import Table
from rich.text import Text

from lser.cli.display import stdout
from lser.experiments import records
from lser.report.naming import clean


def runs(argv: list[str]) -> int:
    """List records."""
    return int(tyro.cli(_runs, args=argv, prog="lser runs"))


def _runs(
    folder: Annotated[Path, tyro.conf.Positional] = Path("runs"),
    /,
    json_output: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> int:
    """List the records under a folder, with their last scores.

    example: lser runs results --json

    Args:
        folder: Where to look.
        json_output: Print JSON lines.
    """
    found = records.find(folder)
    rows = [_row(record, folder) for record in found]
    if json_output:
        for row in rows:
            print(json.dumps(row))
        return 0
    table = Table(title=Text(f"{len(rows)} records under {folder}"))
    for name in ("study", "simulator", "label", "seed", "status", "sessions", "score", "path"):
        table.add_column(name, overflow="fold", justify="right" if name == "score" else "left")
    for row in rows:
        table.add_row(*(Text(clean(str(value))) for value in row.values()))  # data, never markup
    stdout().print(table)
    return 0


def _row(record: records.Record, root: Path) -> dict[str, object]:
    last = record.final or (record.curve[-1] if record.curve else None)
    return {
        "study": record.study,
        "simulator": record.simulator,
        "label": record.label,
        "seed": record.seed,
        "status": record.status,
        "sessions": int(last.get("sessions", 0)) if last else 0,
        "score": f"{record.metric} {last['metric']:.4f}" if last else "",
        "path": str(record.path.relative_to(root) if root in record.path.parents else record.path),
    }

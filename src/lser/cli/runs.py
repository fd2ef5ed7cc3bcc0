"""``lser runs``: the records under a folder."""

from pathlib import Path
from typing import Annotated, Any

import tyro

from lser.cli.json_text import json_text
from lser.cli.words import plain
from lser.experiments import records
from lser.report.naming import clean, natural
from lser.report.style import count

UNFINISHED = ("stopped", "died")


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
    rows = sorted((row(record) for record in records.find(folder)), key=_order)
    if json_output:
        for one in rows:
            print(json_text(one))
        return 0
    print(plain(f"{count(len(rows), 'record')} under {folder}"))
    place = None
    for one in rows:
        here = " / ".join(clean(part) for part in (one["study"], one["simulator"]) if part)
        if here != place:
            print(f"\n{here or '(not readable)'}")
            place = here
        print(f"  {plain(_line(one))}\n    {clean(one['path'], 4_000)}")
    if any(one["status"] in UNFINISHED for one in rows):
        print("\nstopped and died runs go on with: lser resume PATH")
    return 0


def row(record: records.Record) -> dict[str, Any]:
    """A record as plain data: numbers as numbers, and a path that other commands take."""
    last = record.final or (record.curve[-1] if record.curve else None)
    return {
        "study": record.study,
        "simulator": record.simulator,
        "label": record.label,
        "seed": record.seed,
        "status": record.status,
        "sessions": int(last.get("sessions", 0)) if last else 0,
        "metric": record.metric,
        "score": float(last["metric"]) if last else None,
        "path": record.where,
    }


def _order(one: dict[str, Any]) -> tuple[Any, ...]:
    return one["study"], one["simulator"], natural(one["label"]), one["seed"], one["path"]


def _line(one: dict[str, Any]) -> str:
    """A record within 78 columns."""
    label = clean(str(one["label"]), 30)
    score = "no score yet" if one["score"] is None else f"{one['metric']} {one['score']:.4f}"
    sessions = f"{one['sessions']:,} sessions"
    return f"{label:<30} seed {one['seed']:<3} {one['status']:<8} {sessions:>15}  {score}".rstrip()

"""``lser watch``: follow a running record in the terminal."""

import time
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from lser.cli.display import left, scores
from lser.experiments import progress, records

BLOCKS = " ▁▂▃▄▅▆▇█"


def watch(argv: list[str]) -> int:
    """Follow a record."""
    return int(tyro.cli(_watch, args=argv, prog="lser watch"))


def _watch(
    record: Annotated[Path, tyro.conf.Positional], /, every: float = 1.0, once: bool = False
) -> int:
    """Follow a running record: its progress, scores and curve, until it ends.

    example: lser watch runs/runs/bazaar/lser-seed0-1a2b3c4d

    Args:
        record: Folder of the record.
        every: Seconds between looks.
        once: Look once and stop.
    """
    console = Console()
    if once:
        console.print(view(record))
        return 0
    with Live(view(record), console=console, auto_refresh=False) as live:
        while records.load(record).status == "running":
            time.sleep(every)
            live.update(view(record), refresh=True)
    return 0


def view(folder: Path) -> Group:
    """The record in three lines: what it is, where it stands, and its curve."""
    record = records.load(folder)
    title = f"{record.simulator} / {record.label} / seed {record.seed}: {record.status}"
    now = progress.read(folder)
    where = "no progress yet"
    if record.final is not None:
        score = f"{record.final['metric']:.4f} ± {record.final['metric_se']:.4f}"
        where = f"{record.final['sessions']:,} sessions, final {record.metric} {score}"
    elif now is not None:
        done = f"{now['sessions']:,}/{now['of']:,} sessions"
        where = f"{done}, {scores(now)}, {left(now['left'])}"
    values = [line["metric"] for line in record.curve]
    return Group(Text(title, style="bold"), Text(where), Text(f"{record.metric} {spark(values)}"))


def spark(values: list[float], width: int = 60) -> str:
    """A curve in one line of text, from 0 to its highest value."""
    if not values:
        return "(no evaluation yet)"
    top = max(max(values), 1e-12)
    shown = values[-width:]
    bars = "".join(BLOCKS[round(max(v, 0.0) / top * (len(BLOCKS) - 1))] for v in shown)
    return f"{bars}  {values[-1]:.3f} (highest {top:.3f})"

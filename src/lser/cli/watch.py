"""``lser watch``: follow a running record in the terminal."""

import math
import time
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Group
from rich.live import Live
from rich.text import Text

from lser.checks import check_number
from lser.cli.display import LINE_SECONDS, left, scores, stdout
from lser.cli.words import plain, quoted
from lser.experiments import progress, records
from lser.experiments.signals import VALUES

BLOCKS = "▁▂▃▄▅▆▇█"


def watch(argv: list[str]) -> int:
    """Follow a record."""
    return int(tyro.cli(_watch, args=argv, prog="lser watch"))


def _watch(
    record: Annotated[Path, tyro.conf.Positional], /, every: float = 1.0, once: bool = False
) -> int:
    """Follow a running record: its progress, scores and curve, until it ends.

    example: lser watch runs/bazaar/lser-seed0-1a2b3c4d

    Args:
        record: Folder of the record.
        every: Seconds between looks.
        once: Look once and stop.
    """
    check_number("--every", every, low=0.01, high=86_400)
    console = stdout()
    if once:
        console.print(view(record))
    elif console.is_terminal:
        with Live(view(record), console=console, auto_refresh=False) as live:
            while records.load(record).status == "running":
                time.sleep(every)
                live.update(view(record), refresh=True)
            live.update(view(record), refresh=True)  # it may have ended since the last look
    else:
        _lines(record, every)
    return 0


def _lines(record: Path, every: float) -> None:
    """Without a terminal: where the run stands once a minute, and at its end."""
    shown = None
    while records.load(record).status == "running":
        if shown is None or time.monotonic() - shown >= LINE_SECONDS:
            print(plain(where(record)), flush=True)
            shown = time.monotonic()
        time.sleep(every)
    print(plain(f"{records.load(record).status}: {where(record)}"), flush=True)


def view(folder: Path) -> Group:
    """The record in a few lines: what it is, where it stands, its curve and its critic."""
    record = records.load(folder)
    title = f"{record.simulator} / {record.label} / seed {record.seed}: {record.status}"
    values = [line["metric"] for line in record.curve]
    curve = Text(plain(f"{record.metric} {spark(values)}"))
    parts = [Text(plain(title), style="bold"), Text(plain(where(folder))), curve]
    if record.curve and (critic := values_of(record.curve[-1])):
        parts.append(critic)
    return Group(*parts)


def values_of(line: dict[str, float]) -> Text | None:
    """The critic's values beside what rewards allow, in red where they have left it."""
    if not line.keys() >= set(VALUES.values()):
        return None
    largest = max(line["value_replayed_largest"], line["value_own_largest"])
    words = (
        f"values: of what is replayed {line['value_replayed_mean']:.4g}, of its own actions "
        f"{line['value_own_mean']:.4g}, largest {largest:.4g}, possible "
        f"{line['value_bound_low']:.4g} to {line['value_bound_high']:.4g}; "
        f"spread over actions {line['value_spread']:.3g}, saturated {line['saturated']:.0%}"
    )
    if "one_reward" in line:
        words += f", batches of one reward {line['one_reward']:.0%}"
    return Text(words, style="bold red" if largest > line["value_bound_high"] else "")


def where(folder: Path) -> str:
    """Where a record stands, in one line."""
    record, now = records.load(folder), progress.read(folder)
    if record.final is not None and record.status == "done":
        score = f"{record.final['metric']:.4f}"
        if "metric_se" in record.final:
            score += f" ± {record.final['metric_se']:.4f}"
        sessions = record.final.get("sessions")
        after = "" if sessions is None else f"{sessions:,} sessions, "
        return f"{after}final {record.metric} {score}"
    if now is None:
        return "no progress yet"
    done = f"{now['sessions']:,}/{now['of']:,} sessions, {scores(now)}"
    if record.status == "running":
        return f"{done}, {left(now['left'])}"
    return (
        f"{done}; go on with: lser resume {quoted(folder)}" if record.status != "failed" else done
    )


def spark(values: list[float], width: int = 40) -> str:
    """A curve in one line of text, from its lowest value (0 if that is lower) to its highest.

    A value that is no number is a gap.
    """
    if not values:
        return "(no evaluation yet)"
    known = [value for value in values if math.isfinite(value)]
    top, bottom = max(known, default=math.nan), min(0.0, *known, 0.0)
    span = (top - bottom) or 1.0
    bars = "".join(
        BLOCKS[round((v - bottom) / span * (len(BLOCKS) - 1))] if math.isfinite(v) else " "
        for v in values[-width:]
    )
    return f"{bars}  {values[-1]:.3f} (highest {top:.3f})"

"""Progress on stderr: a live bar in a terminal, a plain line every few seconds elsewhere."""

import sys
import time
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from lser.experiments.progress import Status, summary

LINE_SECONDS = 5.0
PLAIN_WIDTH = 160  # of tables that go to a file or a pipe


def stdout() -> Console:
    """A console for results: as wide as the terminal, or wide enough where there is none."""
    console = Console()
    return console if console.is_terminal else Console(width=PLAIN_WIDTH)


class RunDisplay:
    """Shows one run: sessions, steps/s, the score so far, the last evaluation, time left."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._console = Console(stderr=True)
        self._shown = 0.0
        self._bar: Progress | None = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed:,.0f}/{task.total:,.0f} sessions"),
                TextColumn("{task.fields[scores]}"),
                TimeRemainingColumn(),
                console=self._console,
            )
            self._task = self._bar.add_task(self._name, total=1, scores="")
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, status: Status) -> None:
        """Show a run's status, not too often."""
        now = time.monotonic()
        if now - self._shown < (0.2 if self._bar is not None else LINE_SECONDS):
            return
        self._shown = now
        numbers = summary(status)
        if self._bar is not None:
            self._bar.update(
                self._task,
                completed=numbers["sessions"],
                total=numbers["of"],
                scores=scores(numbers),
            )
        else:
            done = f"{numbers['sessions']:,}/{numbers['of']:,} sessions"
            line = f"{self._name}: {done}, {scores(numbers)}, {left(numbers['left'])}"
            print(line, file=sys.stderr, flush=True)


def scores(numbers: dict[str, Any]) -> str:
    """A run's rate and scores in a few words."""
    parts = [f"{numbers['steps_per_second']:,.0f} steps/s"]
    parts.append(f"{numbers['metric']} so far {numbers['so_far']:.3f}")
    if numbers["evaluation"] is not None:
        parts.append(f"last evaluation {numbers['evaluation']:.3f}")
    return ", ".join(parts)


def left(seconds: float | None) -> str:
    """Time left in words."""
    if seconds is None:
        return "time left unknown"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} left" if hours else f"{minutes}:{rest:02} left"

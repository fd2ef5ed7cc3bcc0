"""Progress on stderr: a live bar in a terminal, a plain line a minute elsewhere."""

import math
import sys
import time
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from lser.experiments.progress import Status, summary

LINE_SECONDS = 60.0
BAR_SECONDS = 0.2
PLAIN_WIDTH = 160  # of tables that go to a file or a pipe


class Results(Console):
    """A console whose reader may leave early, as head does."""

    def on_broken_pipe(self) -> None:
        """Leave it to `lser.cli.main`, for which that is no failure; rich exits with 1."""
        raise BrokenPipeError


def stdout() -> Console:
    """A console for results: as wide as the terminal, or wide enough where there is none."""
    console = Results()
    return console if console.is_terminal else Results(width=PLAIN_WIDTH)


class RunDisplay:
    """Shows one run in 80 columns: sessions, the scores so far, time left; its last state too."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._console = Console(stderr=True)
        self._shown: float | None = None
        self._last: Status | None = None
        self._bar: Progress | None = None
        self._task: Any = None

    def __enter__(self) -> Self:
        print(self._name, file=sys.stderr, flush=True)
        if self._console.is_terminal:
            self._bar = Progress(
                BarColumn(bar_width=8),
                TextColumn("{task.fields[words]}", table_column=Column(no_wrap=True), markup=False),
                console=self._console,
            )
            self._task = self._bar.add_task("", total=1, words="")
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._last is not None:
            self._show(self._last)
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, status: Status) -> None:
        """Show a run's status, not too often."""
        self._last = status
        now = time.monotonic()
        every = BAR_SECONDS if self._bar is not None else LINE_SECONDS
        if self._shown is None or now - self._shown >= every:
            self._shown = now
            self._show(status)

    def _show(self, status: Status) -> None:
        numbers = summary(status)
        words = line(numbers)
        if self._bar is None:
            print(words, file=sys.stderr, flush=True)
            return
        done = min(numbers["sessions"], numbers["of"])
        self._bar.update(self._task, completed=done, total=numbers["of"], words=words)


def line(numbers: dict[str, Any]) -> str:
    """A run in at most 70 columns: sessions, scores and time left."""
    done = min(numbers["sessions"], numbers["of"])
    words = [f"{done:,}/{numbers['of']:,} sessions", scores(numbers)]
    if done < numbers["of"]:
        words.append(left(numbers["left"]))
    return ", ".join(words)


def scores(numbers: dict[str, Any]) -> str:
    """A run's score over training, and at its last evaluation, in a few words."""
    metric = str(numbers["metric"]).replace("reward_per_step", "reward")
    text = f"{metric} {numbers['so_far']:#.3g}"
    if numbers["evaluation"] is not None:
        text += f" (evaluated {numbers['evaluation']:#.3g})"
    return text


def left(seconds: float | None) -> str:
    """Time left in words."""
    if seconds is None or not math.isfinite(seconds):
        return "time left unknown"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} left" if hours else f"{minutes}:{rest:02} left"

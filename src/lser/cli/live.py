"""Many runs under way: one row per arm in a terminal, a line a minute elsewhere."""

import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lser.cli.display import LINE_SECONDS, left
from lser.cli.words import plain
from lser.experiments import progress, records
from lser.experiments.study import Job, Tally, finished, reached
from lser.report.closing import short
from lser.report.stats import mean_t
from lser.report.style import interval, name_of

MOST_ROWS = 12  # arms that fit a screen; a larger study shows the line alone


class Row(NamedTuple):
    """Where one arm stands."""

    arm: str
    done: int
    runs: int
    score: str
    left: float | None


class Standings:
    """The arms of a study or comparison from the records under way."""

    def __init__(self, jobs: Sequence[Job], tally: Tally) -> None:
        self.tally = tally
        self.arms: dict[str, list[Job]] = {}
        for job in jobs:
            self.arms.setdefault(arm_of(job), []).append(job)
        self._ended: dict[str, float | None] = {}

    def rows(self) -> list[Row]:
        """Each arm: its runs, the mean of their latest scores with its interval, and time left."""
        return [self._row(arm, jobs) for arm, jobs in self.arms.items()]

    def _row(self, arm: str, jobs: list[Job]) -> Row:
        scores = [score for job in jobs if (score := self._score(job)) is not None]
        ended = sum(job.folder in self._ended for job in jobs)
        share = sum(self._share(job) for job in jobs) / len(jobs)
        elapsed = self.tally.elapsed
        rest = elapsed * (1 - share) / share if share > 0.001 else None
        return Row(arm, ended, len(jobs), interval(mean_t(scores)) if scores else "–", rest)

    def _score(self, job: Job) -> float | None:
        """The final score, or the last evaluation of a run under way."""
        if job.folder not in self._ended:
            folder = Path(job.folder)
            if not finished(job):
                now = progress.read(folder)
                return None if now is None else now["evaluation"]
            final = records.read(folder).final
            self._ended[job.folder] = float(final["metric"]) if final else None
        return self._ended[job.folder]

    def _share(self, job: Job) -> float:
        return 1.0 if job.folder in self._ended else reached(job)


def arm_of(job: Job) -> str:
    """What a run is a replication of."""
    plain = job.experiment
    return str(plain["label"] or plain["memory"]["name"])


class Watch:
    """Shows a tally while its jobs run: live in a terminal, a plain line a minute elsewhere."""

    def __init__(self, jobs: Sequence[Job], tally: Tally, already: int) -> None:
        self._standings = Standings(jobs, tally)
        self._tally, self._already = tally, already
        self._console = Console(stderr=True)
        self._over = threading.Event()
        self._live: Live | None = None
        self._lines: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(console=self._console, refresh_per_second=2, get_renderable=self.view)
            self._live.start()
        else:
            self._lines = threading.Thread(target=self._speak, daemon=True)
            self._lines.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._live is not None:
            self._live.refresh()
            self._live.stop()
        if self._lines is not None:
            self._lines.join()
            print(line(self._tally, self._already), file=sys.stderr, flush=True)

    def _speak(self) -> None:
        while not self._over.wait(LINE_SECONDS):
            print(line(self._tally, self._already), file=sys.stderr, flush=True)

    def view(self) -> Group:
        """The arms, if they fit a screen, and the line below them."""
        parts: list[Table | Text] = [Text(line(self._tally, self._already))]
        if len(self._standings.arms) <= MOST_ROWS:
            parts.insert(0, table(self._standings.rows()))
        return Group(*parts)


def table(rows: Sequence[Row]) -> Table:
    """The arms in at most 80 columns."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("arm", "runs", "score so far", "left"):
        right = name in ("runs", "left")
        shown.add_column(name, no_wrap=True, justify="right" if right else "left")
    for row in rows:
        rest = "done" if row.done == row.runs else left(row.left).removesuffix(" left")
        rest = rest.replace("time left unknown", "–")
        cells = (short(plain(name_of(row.arm)), 34), f"{row.done}/{row.runs}", row.score, rest)
        shown.add_row(*(Text(cell) for cell in cells))  # data, never markup
    return shown


def line(tally: Tally, already: int) -> str:
    """Where all runs stand, in one line."""
    waiting = tally.total - tally.done - len(tally.failed) - len(tally.running)
    words = [f"{already} done before"] if already else []
    words += [f"{tally.done} done", f"{len(tally.running)} running"]
    words += [f"{len(tally.failed)} failed"] if tally.failed else []
    words += [f"{waiting} waiting", f"{tally.share():.0%}"]
    if tally.share() < 1:
        words.append(f"{tally.sessions():,.0f} of {tally.asked:,} sessions")
        words += [f"{tally.pace():,.0f} steps/s", left(tally.left())]
    return ", ".join(words)

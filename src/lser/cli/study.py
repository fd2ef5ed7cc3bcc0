"""``lser study``: a whole study on this machine's cores, resumable, with one progress display."""

import shlex
import sys
import time
from math import inf
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lser.cli.display import LINE_SECONDS, left, stdout
from lser.experiments import records
from lser.experiments.preflight import replay_bytes
from lser.experiments.presets import Scale
from lser.experiments.studies import GROUPS, STUDIES, plan
from lser.experiments.study import Job, Map, Processes, Tally, finished, job_for
from lser.fleet.map import Fleets

Engine = Literal["processes", "fleet"]

UPDATES_PER_SECOND = 400  # of one process; only --dry-run's estimate uses it


def study(argv: list[str]) -> int:
    """Run a study."""
    command = shlex.join(["lser", "study", *argv])
    arguments = tyro.cli(_arguments, args=argv, prog="lser study", description=_description())
    return _study(*arguments, command=command)


def _description() -> str:
    lines = [f"  {name:<12} {spec.about}" for name, spec in STUDIES.items()]
    groups = [f"  {name:<12} all of: {', '.join(parts)}" for name, parts in GROUPS.items()]
    return "\n".join(
        [
            "Run a study: many experiments, side by side, each left as a record.",
            "",
            "Finished runs are never repeated; the same command continues an interrupted study.",
            "",
            *lines,
            *groups,
            "",
            "example: lser study epsilon --scale medium --seeds 5 --out runs",
        ]
    )


def _arguments(
    name: Annotated[str, tyro.conf.Positional],
    /,
    scale: Scale = "medium",
    seeds: int = 5,
    only: str = "",
    workers: int = 0,
    out: Path = Path("runs"),
    dry_run: bool = False,
    engine: Engine = "processes",
    device: str = "cuda",
    fleet_size: int = 64,
    deadline: float = inf,
) -> tuple[str, Scale, int, str, int, Path, bool, Engine, str, int, float]:
    """Collect the arguments.

    Args:
        name: The study.
        scale: quick (a smoke test), medium (separates the cells), or paper (its full length).
        seeds: Seeds per cell, from 0.
        only: Keep runs whose simulator, label or study contains this text.
        workers: Processes side by side; 0: as many as cores, or 4 fleets.
        out: Folder for the records.
        dry_run: List the runs, their memory and an estimate of time, and stop.
        engine: A process for each run, or fleets: runs with their learners stacked on a device.
        device: Where a fleet learns.
        fleet_size: Runs of one fleet, at most.
        deadline: Seconds after which fleets stop; unfinished runs start anew the next time.
    """
    return (
        *(name, scale, seeds, only, workers, out, dry_run),
        *(engine, device, fleet_size, deadline),
    )


def _study(
    name: str,
    scale: Scale,
    seeds: int,
    only: str,
    workers: int,
    out: Path,
    dry_run: bool,
    engine: Engine,
    device: str,
    fleet_size: int,
    deadline: float,
    *,
    command: str,
) -> int:
    if seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {seeds}")
    processes = Processes(workers) if workers > 0 else Processes()
    jobs = [job_for(experiment, out, command) for experiment in plan(name, scale, seeds)]
    jobs = [job for job in jobs if only in f"{job.folder}/{job.experiment['label']}"]
    if not jobs:
        raise ValueError(f"--only {only!r} leaves no run of {name}")
    if dry_run:
        _list(jobs, processes.workers)
        return 0
    fleets = Fleets(device, fleet_size, workers or 4, deadline)
    code = run_jobs(jobs, fleets if engine == "fleet" else processes)
    print(out)
    return code


def run_jobs(jobs: list[Job], pool: Map) -> int:
    """Run what is not finished with a progress display; 1 when a run failed."""
    waiting = [job for job in jobs if not finished(job)]
    tally = _go(waiting, pool, already=len(jobs) - len(waiting))
    for job in tally.failed:
        print(f"\nfailed: {job.folder}\n{_error(job)}", file=sys.stderr)
    return 1 if tally.failed else 0


def _error(job: Job) -> str:
    try:
        record = records.load(job.folder)
        stopped = "stopped before its end" if record.status == "stopped" else "the process died"
        return str(record.meta.get("error") or stopped)
    except ValueError as error:
        return f"the process died before its record began ({error})"


def _go(jobs: list[Job], pool: Map, already: int) -> Tally:
    tally = Tally(jobs)
    console = Console(stderr=True)
    if console.is_terminal:
        with Live(
            console=console, refresh_per_second=2, get_renderable=lambda: _view(tally, already)
        ):
            for done in pool.run(jobs, started=tally.started):
                tally.ended(done)
        return tally
    shown = time.monotonic()
    for done in pool.run(jobs, started=tally.started):
        tally.ended(done)
        if time.monotonic() - shown > LINE_SECONDS or not tally.running:
            shown = time.monotonic()
            print(_view(tally, already), file=sys.stderr, flush=True)
    return tally


def _view(tally: Tally, already: int) -> Text:
    waiting = tally.total - tally.done - len(tally.failed) - len(tally.running)
    words = [
        f"{tally.done} done",
        f"{len(tally.running)} running",
        f"{len(tally.failed)} failed",
        f"{waiting} waiting",
        f"{tally.share():.0%} of the work",
        left(tally.left()),
    ]
    if already:
        words.insert(0, f"{already} done before")
    return Text(", ".join(words))


def _list(jobs: list[Job], workers: int) -> None:
    waiting = [job for job in jobs if not finished(job)]
    table = Table(title=f"{len(jobs)} runs, {len(jobs) - len(waiting)} of them finished")
    for column in ("study", "simulator", "label", "seed", "sessions", "about updates", "finished"):
        table.add_column(column)
    work = 0.0
    for job in jobs:
        plain = job.experiment
        updates = Tally([job]).work
        done = job not in waiting
        work += 0 if done else updates
        simulator = plain["simulator"]
        assert isinstance(simulator, dict)
        row = (plain["study"], simulator["name"], plain["label"], plain["seed"], plain["sessions"])
        cells = (*map(str, row), f"{updates:,.0f}", "yes" if done else "")
        table.add_row(*(Text(cell) for cell in cells))  # data, never markup
    console = stdout()
    console.print(table)
    seconds = work / UPDATES_PER_SECOND / workers
    memory = workers * replay_bytes(1_000_000, 91, 27) / 2**30
    console.print(
        Text(
            f"about {left(seconds).removesuffix(' left')} h:m:s on {workers} workers at "
            f"{UPDATES_PER_SECOND} updates/s each; at most {memory:.1f} GiB of replay memory"
        )
    )

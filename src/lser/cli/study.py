"""``lser study``: a whole study on cores, GPUs or a cluster, resumable, with one display."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from textwrap import fill
from typing import Annotated

import tyro
from rich.table import Table
from rich.text import Text

from lser.catalogue import SIMULATORS
from lser.cli.display import left, stdout
from lser.cli.engines import Engine, Place
from lser.cli.jobs import run_jobs
from lser.experiments import records
from lser.experiments.experiment import Experiment, from_json
from lser.experiments.preflight import replay_bytes
from lser.experiments.presets import Scale
from lser.experiments.ready import sizes
from lser.experiments.studies import GROUPS, RELEASED, STUDIES, plan
from lser.experiments.study import Job, Tally, finished, job_for
from lser.report.style import count

UPDATES_PER_SECOND = 400  # of one process; only --dry-run's estimate uses it


def study(argv: list[str]) -> int:
    """Run a study."""
    command = shlex.join(["lser", "study", *argv])
    arguments = tyro.cli(_arguments, args=argv, prog="lser study", description=_description())
    return _study(*arguments, command=command)


def _description() -> str:
    about = {name: spec.about for name, spec in STUDIES.items()}
    for name, parts in GROUPS.items():
        regime = ", in the regime of the paper's release" if name in RELEASED else ""
        about[name] = f"all of: {', '.join(parts)}{regime}"
    lines = [fill(f"  {n:<12} {text}", 78, subsequent_indent=" " * 15) for n, text in about.items()]
    return "\n".join(
        [
            "Run a study: many experiments, side by side, each left as a record.",
            "",
            "Finished runs are never repeated; the same command continues an interrupted study.",
            "",
            *lines,
            "",
            "example: lser study epsilon --scale medium --seeds 5 --out runs",
        ]
    )


def _arguments(
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY")],
    /,
    scale: Scale = "medium",
    seeds: int = 5,
    only: str = "",
    workers: int = 0,
    out: Path = Path("runs"),
    dry_run: bool = False,
    engine: Engine = "processes",
    device: str = "cuda",
    fleet_size: int = 128,
    deadline: float = inf,
    address: str = "",
    gpus: float = 0.0,
) -> tuple[str, Scale, int, str, Path, bool, Place]:
    """Collect the arguments.

    Args:
        name: The study.
        scale: quick (a smoke test), medium (separates the cells), or paper (its full length).
        seeds: Seeds per cell, from 0.
        only: Keep runs whose simulator, label or study contains this text, or one of several
            with | between them.
        workers: Runs side by side, or processes of a fleet; 0: as many as cores.
        out: Folder for the records.
        dry_run: List the runs, their memory and an estimate of time, and stop.
        engine: A process for each run; fleets: runs with their learners stacked on a device; or
            ray: a task of a Ray cluster for each run.
        device: Where a fleet learns.
        fleet_size: Runs of one fleet, at most.
        deadline: Seconds after which fleets stop; the same command goes on where they stood.
        address: With --engine ray: the cluster, host:port or auto; by default this machine's, or
            a new one of its cores.
        gpus: With --engine ray: the part of a GPU for each fleet; 0: runs on cores, no fleets.
    """
    place = Place(engine, workers, device, fleet_size, deadline, address, gpus)
    return name, scale, seeds, only, out, dry_run, place


def _study(
    name: str,
    scale: Scale,
    seeds: int,
    only: str,
    out: Path,
    dry_run: bool,
    place: Place,
    *,
    command: str,
) -> int:
    if seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {seeds}")
    jobs = [job_for(experiment, out, command) for experiment in plan(name, scale, seeds)]
    jobs = [job for job in jobs if _chosen(job, only)]
    if not jobs:
        raise ValueError(f"--only {only!r} leaves no run of {name}")
    if dry_run:
        _list(jobs, place.processes().workers, place)
        return 0
    code = run_jobs(jobs, place.map())
    print(_close(jobs))
    print(f"\ndraw it: lser report {shlex.quote(str(out))} --out report", file=sys.stderr)
    return code


def _chosen(job: Job, only: str) -> bool:
    text = f"{job.folder}/{job.experiment['label']}"
    return any(part in text for part in only.split("|"))


def _close(jobs: list[Job]) -> str:
    """What the finished runs show."""
    from lser.report.closing import closing

    return closing([record for job in jobs if (record := records.read(Path(job.folder))).final])


def _list(jobs: list[Job], workers: int, place: Place) -> None:
    cells: dict[tuple[str, ...], list[Job]] = {}
    for job in jobs:
        plain = job.experiment
        row = (plain["simulator"]["name"], plain["label"], f"{plain['sessions']:,}")
        cells.setdefault(row, []).append(job)
    waiting = {job.folder: Tally([job]).work for job in jobs if not finished(job)}
    title = f"{count(len(jobs), 'run')}, {len(jobs) - len(waiting)} of them finished"
    table = Table(title=title, box=None, pad_edge=False)
    for column in ("simulator", "label", "sessions", "seeds", "finished"):
        table.add_column(column, justify="left" if column in ("simulator", "label") else "right")
    for cell, runs in cells.items():
        done = sum(job.folder not in waiting for job in runs)
        table.add_row(*(Text(word) for word in (*cell, str(len(runs)), str(done))))  # never markup
    console = stdout()
    console.print(table)
    console.print(Text(_estimate(sum(waiting.values()), jobs, workers, place)))


def _estimate(work: float, jobs: list[Job], workers: int, place: Place) -> str:
    """How long, and how much memory, in one sentence."""
    if place.stacks:
        return f"about {work:,.0f} updates; how fast fleets are depends on the device"
    seconds = work / UPDATES_PER_SECOND / workers
    largest = _largest([from_json(dict(job.experiment)) for job in jobs])
    return (
        f"about {left(seconds).removesuffix(' left')} (h:mm:ss or m:ss) on "
        f"{count(workers, 'worker')} at {UPDATES_PER_SECOND} updates/s each; at most "
        f"{min(workers, len(jobs)) * largest / 2**30:.1f} GiB of replay memory"
    )


def _largest(runs: Sequence[Experiment]) -> int:
    """Bytes of the largest memory among them."""
    worlds = {repr(run.simulator): run for run in runs}
    widths = {world: _widths(run) for world, run in worlds.items()}
    return max(replay_bytes(r.capacity, *widths[repr(r.simulator)], r.memory) for r in runs)


def _widths(run: Experiment) -> tuple[int, int]:
    """The numbers of an observation and of an action; a plan downloads nothing."""
    if "files" in SIMULATORS[run.names[0]].needs:
        run = replace(run, simulator=replace(run.simulator, weights=None, generated=True))
    return sizes(run)

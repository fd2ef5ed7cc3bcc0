"""``lser compare``: memories or agents side by side, a verdict, a table and a page."""

import shlex
from pathlib import Path
from typing import Literal

import tyro

from lser.cli.engines import Place
from lser.cli.jobs import run_jobs
from lser.experiments.study import job_for


def compare(argv: list[str]) -> int:
    """Compare."""
    command = shlex.join(["lser", "compare", *argv])
    names, rest = _names(argv)
    arguments = tyro.cli(_arguments, args=rest, prog="lser compare [MEMORY ...]")
    return _compare(names, *arguments, command=command)


def _arguments(
    on: str = "bazaar",
    agents: tuple[str, ...] = (),
    cure: bool = False,
    sessions: int | None = None,
    seeds: int = 5,
    against: str = "",
    workers: int = 0,
    out: Path = Path("runs"),
    page: Path | None = None,
    engine: Literal["processes", "ray"] = "processes",
    address: str = "",
) -> tuple[str, tuple[str, ...], bool, int | None, int, str, Path, Path | None, Place]:
    """Train memories side by side on the same users and settings, and say which is better.

    A memory is a name of `lser memories` or module:Class of your own. Finished runs are never
    repeated: the same command continues an interrupted comparison.

    examples: lser compare lser-steady uniform --cure --sessions 1000 --seeds 5
              lser compare lser uniform my_pkg:MyReplay --on Pendulum-v1
              lser compare lser-steady --agents click-model ridge ddpg

    Args:
        on: A name of `lser simulators`, module:Class, or a Gymnasium id.
        agents: Names of `lser agents` or module:Class; without any, what learns most there.
        cure: Give every arm what lser-steady has beside its buckets: like against like.
        sessions: User sessions per run; by default a length of minutes.
        seeds: Runs per arm, from seed 0; equal seeds are paired.
        against: The arm the others are measured against; by default uniform, or the last one.
        workers: Runs side by side; 0: as many as cores.
        out: Folder for the records.
        page: Folder for the page; by default compare/ under --out.
        engine: A process for each run, or a task of a Ray cluster.
        address: With --engine ray: the cluster, host:port or auto; by default this machine's, or
            a new one of its cores.
    """
    place = Place(engine, workers, address=address)
    return on, agents, cure, sessions, seeds, against, out, page, place


def _compare(
    names: list[str],
    on: str,
    agents: tuple[str, ...],
    cure: bool,
    sessions: int | None,
    seeds: int,
    against: str,
    out: Path,
    page: Path | None,
    place: Place,
    *,
    command: str,
) -> int:
    from lser.comparison import outcome, plan, reference

    arms = names or ["lser-steady", "uniform"]
    runs = plan(arms, on=on, agents=agents, cure=cure, sessions=sessions, seeds=seeds)
    reference([run.label for run in runs], against)
    jobs = [job_for(run, out, command) for run in runs]
    code = run_jobs(jobs, place.map())
    if code:
        return code
    found = outcome(jobs, against)
    print(found)
    print(found.page(page or out / "compare" / "page"))
    return 0


def _names(argv: list[str]) -> tuple[list[str], list[str]]:
    """The memories before the first option."""
    count = next((i for i, word in enumerate(argv) if word.startswith("-")), len(argv))
    return argv[:count], argv[count:]

"""``lser demo``: LSER and uniform replay side by side on Bazaar, and a page about it."""

import shlex
from dataclasses import replace
from pathlib import Path

import tyro

from lser.catalogue import SIMULATORS
from lser.experiments import records
from lser.experiments.experiment import Experiment
from lser.experiments.presets import lasting, preset
from lser.experiments.study import Processes, job_for

MEMORIES = ("lser", "uniform")
STATE_DEPENDENCE = 0.75  # the right page depends on the user more than at Bazaar's default of .5


def demo(argv: list[str]) -> int:
    """Run the demo."""
    command = shlex.join(["lser", "demo", *argv])
    arguments = tyro.cli(_arguments, args=argv, prog="lser demo")
    return _demo(*arguments, command=command)


def _arguments(
    sessions: int = 1_000, seeds: int = 8, workers: int = 0, out: Path = Path("demo")
) -> tuple[int, int, int, Path]:
    """Train LSER and uniform replay side by side on Bazaar and write one page about it.

    Both memories get the same users, networks, settings and number of updates; only what is
    replayed differs. Takes about two minutes on two cores.

    example: lser demo --seeds 5

    Args:
        sessions: User sessions per run.
        seeds: Runs per memory.
        workers: Runs side by side; 0: as many as cores.
        out: Folder for the records and the page.
    """
    return sessions, seeds, workers, out


def cells(sessions: int, seeds: int) -> list[Experiment]:
    """The demo's runs: both memories at equal settings, all memories of a seed together."""
    return [
        replace(
            lasting(preset("bazaar", memory), sessions),
            simulator=SIMULATORS["bazaar"].params(state_dependence=STATE_DEPENDENCE),
            evaluate_every=max(1, sessions // 10),
            study="demo",
            label=memory,
            seed=seed,
        )
        for seed in range(seeds)
        for memory in MEMORIES
    ]


def _demo(sessions: int, seeds: int, workers: int, out: Path, *, command: str) -> int:
    from lser.cli.study import run_jobs
    from lser.report import demo_page, summary_table

    jobs = [job_for(cell, out / "runs", command) for cell in cells(sessions, seeds)]
    code = run_jobs(jobs, Processes(workers) if workers > 0 else Processes())
    if code:
        return code
    found = [records.load(job.folder) for job in jobs]
    print(summary_table(found).text())
    print(demo_page(found, out))
    return 0

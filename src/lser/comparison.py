"""Compare memories or agents on one environment over seeds: in one call, with a verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from lser.catalogue import MEMORIES, nearest
from lser.experiments import records
from lser.experiments.experiment import Experiment
from lser.experiments.presets import LEARNABLE, lasting, learnable, preset, steady
from lser.experiments.ready import check
from lser.experiments.study import Here, Job, Map, Processes, finished, job_for
from lser.report import Table, closing, demo_page
from lser.report.findings import Finding

STUDY = "compare"


@dataclass(frozen=True)
class Comparison:
    """What a comparison found: its arms, their scores, a verdict, a table and a page."""

    records: tuple[records.Record, ...]
    against: str = ""
    """The arm that the others are measured against."""

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of what was compared, in the order they were given."""
        return tuple(dict.fromkeys(record.label for record in self.records))

    @property
    def scores(self) -> dict[str, dict[int, float]]:
        """The final score of every arm and seed."""
        found: dict[str, dict[int, float]] = {arm: {} for arm in self.arms}
        for record in self.records:
            if record.final is not None:
                found[record.label][record.seed] = float(record.final["metric"])
        return found

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Every panel: one, unless the arms differ in more than memory and agent."""
        return tuple(closing.findings(self.records, against=self.against))

    @property
    def verdict(self) -> str:
        """One sentence for every panel."""
        return "\n".join(closing.verdict(found) for found in self.findings)

    @property
    def table(self) -> Table:
        """The scores of the (first) panel, 80 columns wide as text."""
        return closing.scores_table(self.findings[0])

    def page(self, path: Path | str) -> Path:
        """Write one self-contained page into the folder `path`; returns its ``index.html``."""
        return demo_page(self.records, path, title=" against ".join(self.arms))

    def __str__(self) -> str:
        """The verdict and the tables, each line within 80 columns."""
        return "\n\n".join(closing.panel_text(found) for found in self.findings)


def compare(
    *arms: str | Experiment,
    on: str = "bazaar",
    agents: Sequence[str] = (),
    cure: bool = False,
    sessions: int | None = None,
    seeds: int = 5,
    against: str = "",
    out: Path | str = "runs",
    workers: int = 1,
    engine: Map | None = None,
) -> Comparison:
    """Train every arm on the same users and settings, seed by seed, and say what it shows.

    An arm is the name of a memory, ``module:Class`` of one of your own, or an `Experiment` with a
    label; `on` is a simulator's name, ``module:Class`` or a Gymnasium id. Without `agents` it is
    the one that learns most there. `cure` gives every arm what `lser-steady` has, so that like is
    compared with like (`lser.preset`). The runs leave records under `out`; those that are finished
    are not repeated. With one worker everything happens in this process; with more, or 0 for all
    cores, runs go to processes of their own, which must be able to import what is named (and a
    script needs its ``if __name__ == "__main__":``). An `engine` takes the runs elsewhere, as
    ``lser.ray.RayRuns("host:6379")`` does to a cluster.
    """
    runs = plan(arms, on=on, agents=agents, cure=cure, sessions=sessions, seeds=seeds)
    check(runs, out)
    jobs = [job_for(run, Path(out), "lser.compare") for run in runs]
    local: Map = Here() if workers == 1 else Processes(workers) if workers > 0 else Processes()
    pool = engine or local
    waiting = [job for job in jobs if not finished(job)]
    failed = [done for done in pool.run(waiting, started=_quiet) if not done.ok]
    if failed:
        first = records.read(Path(failed[0].job.folder))
        ended = first.meta.get("error") or failed[0].why or "the process died"
        why = str(ended).strip().splitlines()[-1]
        raise RuntimeError(f"{len(failed)} of {len(jobs)} runs failed, first {first.where}: {why}")
    return outcome(jobs, against)


def plan(
    arms: Sequence[str | Experiment],
    *,
    on: str = "bazaar",
    agents: Sequence[str] = (),
    cure: bool = False,
    sessions: int | None = None,
    seeds: int = 5,
) -> list[Experiment]:
    """Every run of a comparison, all arms of a seed before the next seed."""
    if not arms:
        raise ValueError("arms is empty: name at least one memory, such as lser uniform")
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {seeds}")
    if sessions is not None and sessions < 1:
        raise ValueError(f"sessions must be at least 1, got {sessions}")
    cells = [
        _cell(arm, on, agent, sessions, with_agent=len(agents) > 1, cure=cure)
        for arm in arms
        for agent in agents or ("",)
    ]
    labels = [cell.label for cell in cells]
    for label in labels:
        if labels.count(label) > 1:
            raise ValueError(f"arm {label!r} is named twice")
    return [replace(cell, seed=seed) for seed in range(seeds) for cell in cells]


def _cell(
    arm: str | Experiment,
    on: str,
    agent: str,
    sessions: int | None,
    *,
    with_agent: bool,
    cure: bool,
) -> Experiment:
    if isinstance(arm, Experiment):
        run, label = steady(arm) if cure else arm, arm.label or arm.names[1]
    else:
        if on in LEARNABLE:  # at their presets nobody learns in a run of minutes
            run = learnable(on, arm, agent, cure=cure)
        else:
            run = preset(on, arm, agent, scale="quick", cure=cure)
        label = arm if arm in MEMORIES else MEMORIES[arm].title
        label = f"{label} with {agent}" if with_agent else label
    run = lasting(run, sessions) if sessions else run
    return replace(run, study=STUDY, label=label)


def outcome(jobs: Sequence[Job], against: str = "") -> Comparison:
    """What the finished runs of these jobs show."""
    found = Comparison(tuple(records.load(job.folder) for job in jobs))
    return replace(found, against=reference(found.arms, against))


def reference(arms: Sequence[str], against: str = "") -> str:
    """The arm to measure against: the one asked for, else uniform replay, else the last."""
    if against:
        nearest("arm", against, arms)
        return against
    return "uniform" if "uniform" in arms else arms[-1]


def _quiet(_: Job) -> None:
    """Nobody watches."""

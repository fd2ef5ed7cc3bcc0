"""A study's runs as tasks of a Ray cluster: records travel, so no disk need be shared."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lser.checks import check_number
from lser.experiments import records
from lser.experiments.owner import Owner
from lser.experiments.recording import write_json
from lser.experiments.study import Done, Job, finished, for_children
from lser.ray.desk import Desk
from lser.ray.engine import connected
from lser.ray.mirror import Changes, apply, whole
from lser.ray.node import Errand, Outcome, Parcel, Runs, Work, carry

log = logging.getLogger("lser")
SPARE = 1  # tasks that wait at the cluster, so that a free core never waits for the study
GRACE = 120.0  # seconds for checkpoints when a study is stopped
LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class RayRuns:
    """A map over tasks of a Ray cluster, a core for each run; records are those of `Processes`.

    A run whose worker or node dies goes on elsewhere from the checkpoint that came back last.
    """

    address: str = ""
    """Where the cluster is, as ``ray.init`` takes it; by default this machine's, or a new one."""
    workers: int = 0
    """Runs side by side at most; 0: as many as the cluster has cores."""
    checkpoint_seconds: float = 180.0
    """Seconds between checkpoints, each of which is sent back: what a lost node costs at most."""
    retries: int = 3
    """How often a run may lose its worker without a new checkpoint in between."""

    def __post_init__(self) -> None:
        check_number("checkpoint_seconds", self.checkpoint_seconds, low=0.0)
        for name in ("workers", "retries"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")

    def run(self, jobs: Sequence[Job], *, started: Callable[[Job], None]) -> Iterator[Done]:
        """Keep the cluster busy; stop the runs cleanly (with checkpoints) when interrupted."""
        with connected(self.address) as ray:
            demand = Demand({"CPU": 1.0}, self.workers)
            work = Runs(self.checkpoint_seconds)
            tasks = Tasks(ray, work, demand, self.retries)
            yield from tasks.run([[job] for job in jobs], started)


@dataclass(frozen=True)
class Demand:
    """What one task takes of the cluster, and how many there may be."""

    resources: dict[str, float]
    most: int = 0

    def places(self, ray: Any) -> int:
        """How many tasks are to be at the cluster now; it may grow and shrink."""
        if self.most:
            return self.most
        total = ray.cluster_resources()
        asked = {name: n for name, n in self.resources.items() if n > 0}
        return SPARE + int(min((total.get(name, 0.0) / n for name, n in asked.items()), default=0))

    def options(self) -> dict[str, Any]:
        """The same for ``ray.remote``; retries are the study's own, with the newest checkpoint."""
        return {
            "num_cpus": self.resources.get("CPU", 0.0),
            "num_gpus": self.resources.get("GPU", 0.0),
            "max_retries": 0,
            "runtime_env": {"env_vars": dict.fromkeys(for_children.NAMES, "1")},
        }


@dataclass
class Group:
    """Jobs of one task and what became of it so far."""

    jobs: list[Job]
    owners: list[Owner]
    number: int = 0
    deaths: int = 0
    checkpoint: str = ""
    begun: bool = False
    told: bool = False


class Tasks:
    """Groups of jobs under way at a cluster."""

    def __init__(self, ray: Any, work: Work, demand: Demand, retries: int) -> None:
        self._ray, self._work, self._demand, self._retries = ray, work, demand, retries
        self._desk = ray.remote(Desk).options(**_beside_us(ray)).remote()
        self._task = ray.remote(carry).options(**demand.options())
        self._running: dict[Any, Group] = {}
        self._numbers = 0

    def run(self, groups: Sequence[list[Job]], started: Callable[[Job], None]) -> Iterator[Done]:
        """Carry out every group, telling `started`, and yield their jobs as they end."""
        queue = list(reversed(groups))
        try:
            while queue or self._running:
                while queue and len(self._running) < self._demand.places(self._ray):
                    yield from self._begin(queue.pop(), started)
                for group in self._look(LOOK_SECONDS, started):
                    yield from (Done(job, finished(job)) for job in group.jobs)
        finally:
            self._stop()

    def _begin(self, jobs: list[Job], started: Callable[[Job], None]) -> Iterator[Done]:
        """Send a group out; jobs whose folder somebody else writes to end here."""
        kept, owners = [], []
        for job in jobs:
            try:
                owners.append(Owner(Path(job.folder)))
                kept.append(job)
            except ValueError as error:
                log.error("%s", error)
                started(job)
                yield Done(job, False)
        if kept:
            self._send(Group(kept, owners))

    def _send(self, group: Group) -> None:
        self._numbers += 1
        group.number, group.begun = self._numbers, False
        parcels = [Parcel(job, whole(Path(job.folder))) for job in group.jobs]
        task = self._task.remote(Errand(group.number, parcels), self._work, self._desk)
        self._running[task] = group

    def _look(self, timeout: float, started: Callable[[Job], None] | None) -> list[Group]:
        """Take what was reported; the groups that ended. Those whose worker died are sent anew."""
        ray = self._ray
        ready, _ = ray.wait(list(self._running), num_returns=1, timeout=timeout)
        self._take_news(started)
        ended = []
        for task in ready:
            group = self._running.pop(task)
            try:
                self._arrived(group, ray.get(task))
            except ray.exceptions.RayTaskError as error:  # before the errand could begin
                self._fail(group, str(error))
            except ray.exceptions.RayError as error:
                if started is not None and self._may_try_again(group, error):
                    self._send(group)
                    continue
            self._tell(group, started)
            for owner in group.owners:
                owner.release()
            ended.append(group)
        return ended

    def _take_news(self, started: Callable[[Job], None] | None) -> None:
        """Bring records up to date; a desk that is being restarted has no news."""
        try:
            news = self._ray.get(self._desk.take.remote(), timeout=GRACE)
        except self._ray.exceptions.RayError:
            return
        known = {group.number: group for group in self._running.values()}
        for number, changes in news.items():
            if number in known:
                group = known[number]
                group.begun = True
                self._file(group, changes)
                self._tell(group, started)

    def _file(self, group: Group, changes: Sequence[Changes]) -> None:
        for job, change in zip(group.jobs, changes, strict=True):
            apply(Path(job.folder), change)
        newest = max(change.checkpoint for change in changes)
        if newest > group.checkpoint:
            group.checkpoint, group.deaths = newest, 0

    def _tell(self, group: Group, started: Callable[[Job], None] | None) -> None:
        if not group.told and started is not None:
            group.told = True
            for job in group.jobs:
                started(job)

    def _arrived(self, group: Group, outcome: Outcome) -> None:
        self._file(group, outcome.records)
        if outcome.error:
            self._fail(group, outcome.error)

    def _may_try_again(self, group: Group, error: Exception) -> bool:
        """Whether a group whose worker died goes on elsewhere; else its records say why not."""
        why = str(error).strip().splitlines()[0]
        final = isinstance(error, self._ray.exceptions.RuntimeEnvSetupError)
        group.deaths += 1
        if final or group.deaths > self._retries:
            times = f" {group.deaths} times without a new checkpoint" if group.deaths > 1 else ""
            self._fail(group, f"its worker died{times}: {why}")
            return False
        log.warning("%s: its worker died (%s); it goes on elsewhere", group.jobs[0].folder, why)
        return True

    def _fail(self, group: Group, error: str) -> None:
        """Let no record say that it runs when it does not; what a run said itself stands."""
        for job in group.jobs:
            folder = Path(job.folder)
            if not (folder / records.EXPERIMENT).exists():
                write_json(folder / records.EXPERIMENT, job.experiment)
            meta = records.read(folder).meta
            if meta.get("status", "running") in ("running", "died"):
                write_json(folder / records.META, {**meta, "status": "failed", "error": error})

    def _stop(self) -> None:
        """Ask every task to write checkpoints and end, and take what they leave."""
        ray = self._ray
        if self._running:
            with suppress(ray.exceptions.RayError):
                ray.get(self._desk.stop.remote(), timeout=GRACE)
            self._take_news(None)
            for task in [t for t, group in self._running.items() if not group.begun]:
                ray.cancel(task)
        patience = time.monotonic() + GRACE
        while self._running and time.monotonic() < patience:
            self._look(LOOK_SECONDS, None)
        for task, group in self._running.items():
            ray.cancel(task, force=True)
            self._fail(group, "the study was stopped, and no checkpoint came back in time")
        ray.kill(self._desk)


def _beside_us(ray: Any) -> dict[str, Any]:
    """Options for an actor that lives where the study runs, if that is a node of the cluster."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    place = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
    return {"num_cpus": 0, "max_restarts": -1, "scheduling_strategy": place}

"""What a task does on its node: records come in, runs go on, records go back."""

import signal
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lser import __version__
from lser.experiments.experiment import from_json
from lser.experiments.progress import ProgressFile, Status
from lser.experiments.study import Job
from lser.ray.engine import the_ray
from lser.ray.mirror import Changes, Mirror, apply, scratch_folder
from lser.ray.warm import warm

REPORT_SECONDS = 2.0
_PATIENCE = 120.0  # seconds until a report that is not answered counts as lost


class Parcel(NamedTuple):
    """A job and its record as far as it is known where the study runs."""

    job: Job
    record: Changes


class Errand(NamedTuple):
    """Jobs that are carried out together, by one task."""

    number: int
    parcels: Sequence[Parcel]
    version: str = __version__


class Outcome(NamedTuple):
    """The records that a task leaves, and what ended it if that was an error."""

    records: list[Changes]
    error: str


Stop = Callable[[], bool]
Work = Callable[[Sequence[Job], Stop], None]


def carry(errand: Errand, work: Work, desk: Any) -> Outcome:
    """Carry out an errand in this process; its records travel to the desk while it lasts."""
    with scratch_folder() as folder:
        jobs = []
        for place, (job, record) in enumerate(errand.parcels):
            here = folder / str(place) / Path(job.folder).name
            here.mkdir(parents=True)
            apply(here, record)
            jobs.append(job._replace(folder=str(here)))
        mirrors = [Mirror(Path(job.folder)) for job in jobs]
        error = ""
        with Reporter(errand.number, mirrors, desk) as reporter:
            try:
                if errand.version != __version__:
                    raise ValueError(f"this node has lser {__version__}, not {errand.version}")
                if not reporter.stopping():
                    warm(job.experiment for job in jobs)
                    work(jobs, reporter.stopping)
            except BaseException as raised:
                error = "".join(traceback.format_exception(raised))
        for mirror in mirrors:
            mirror.forget()
        return Outcome([mirror.changes() for mirror in mirrors], error)


class Reporter:
    """A thread that reports to the desk every few seconds what changed, and hears when to stop."""

    def __init__(self, number: int, mirrors: Sequence[Mirror], desk: Any) -> None:
        self._number, self._mirrors, self._desk = number, mirrors, desk
        self._over, self._stop, self._heard = (threading.Event() for _ in range(3))
        self._thread = threading.Thread(target=self._go, daemon=True, name="report to the desk")

    def stopping(self) -> bool:
        """Whether the study asked to stop."""
        return self._stop.is_set()

    def __enter__(self) -> "Reporter":
        self._thread.start()
        self._heard.wait(_PATIENCE)  # so that a study that was stopped begins nothing
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()

    def _go(self) -> None:
        # never in the main thread: a task that waits for Ray there lends its core to another
        self._report()
        self._heard.set()
        while not self._over.wait(REPORT_SECONDS):
            self._report()

    def _report(self) -> None:
        ray = the_ray()
        changes = [mirror.changes() for mirror in self._mirrors]
        try:
            answer = self._desk.report.remote(self._number, changes)
            if ray.get(answer, timeout=_PATIENCE):
                self._stop.set()
        except ray.exceptions.RayError:  # the desk is being restarted: everything once more
            for mirror in self._mirrors:
                mirror.forget()


@dataclass(frozen=True)
class Runs:
    """The work of a task with one run."""

    checkpoint_seconds: float

    def __call__(self, jobs: Sequence[Job], stop: Stop) -> None:
        """Run, or continue, the job's experiment; a stop leaves a checkpoint."""
        import torch

        from lser.experiments.run import run
        from lser.experiments.stopping import Interrupted

        torch.set_num_threads(1)
        (job,) = jobs
        folder = Path(job.folder)
        progress = ProgressFile(folder, every=REPORT_SECONDS)
        asked = False

        def watch(status: Status) -> None:
            nonlocal asked
            progress(status)
            if stop() and not asked:
                asked = True
                signal.raise_signal(signal.SIGTERM)  # which the run takes between two steps

        every = self.checkpoint_seconds
        experiment = from_json(dict(job.experiment))
        try:
            run(experiment, folder, watch=watch, command=job.command, checkpoint_seconds=every)
        except Interrupted:
            return

"""Many runs: a map over experiments that survives failures and interruptions."""

import multiprocessing
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from json import dumps
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from lser.checks import check_count
from lser.experiments import progress, records
from lser.experiments.experiment import Experiment, from_json, settings_of, to_json
from lser.experiments.owner import Taken
from lser.experiments.stopping import STOPS, heard

TAKEN = 75  # exit code of a job whose record another process writes (sysexits: try again later)


class Job(NamedTuple):
    """An experiment and the folder of its record; plain data, so that any engine can carry it."""

    experiment: dict[str, Any]
    folder: str
    command: str


class Done(NamedTuple):
    """How a job ended."""

    job: Job
    ok: bool
    why: str = ""
    """What ended its process, where the record cannot know."""


class Map(Protocol):
    """Runs jobs somewhere; a cluster engine implements this one method."""

    def run(self, jobs: Sequence[Job], *, started: Callable[[Job], None]) -> Iterator[Done]:
        """Start every job, telling `started`, and yield each as it ends, in any order."""
        ...


def work(job: Job) -> None:
    """Carry out one job, in this process; progress is left in its folder."""
    end_with_parent()
    import torch  # here: the parent plans and watches without it

    from lser.experiments.run import Interrupted, run

    torch.set_num_threads(1)
    folder = Path(job.folder)
    watch = progress.ProgressFile(folder)
    try:
        run(from_json(dict(job.experiment)), folder, watch=watch, command=job.command)
    except Taken:
        raise SystemExit(TAKEN) from None
    except Interrupted:  # its record says so, and where it stood
        raise SystemExit(1) from None


def end_with_parent() -> None:
    """Let SIGTERM stop this process, with a checkpoint, when the one that started it is gone."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True, name="end with parent").start()


@contextmanager
def term_as_interrupt() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end what is inside as Ctrl-C does: workers stop with checkpoints."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    numbers = [number for number in STOPS if number != signal.SIGINT]
    try:
        before = {number: signal.signal(number, interrupt) for number in heard(numbers)}
    except ValueError:  # not in the main thread: signals are not ours to catch
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True)
class Processes:
    """A map over processes of this machine, one run each, one torch thread each."""

    workers: int = os.cpu_count() or 1

    def __post_init__(self) -> None:
        check_count("workers", self.workers)

    def run(self, jobs: Sequence[Job], *, started: Callable[[Job], None]) -> Iterator[Done]:
        """Keep `workers` runs going; stop them cleanly (with checkpoints) when interrupted."""
        context = multiprocessing.get_context("spawn")
        queue = list(reversed(jobs))
        running: dict[int, tuple[SpawnProcess, Job]] = {}
        try:
            while queue or running:
                while queue and len(running) < self.workers:
                    job = queue.pop()
                    process = context.Process(target=work, args=(job,))
                    with for_children():
                        process.start()
                    running[process.sentinel] = (process, job)
                    started(job)
                for sentinel in wait(list(running), timeout=0.5):
                    assert isinstance(sentinel, int)
                    process, job = running.pop(sentinel)
                    process.join()
                    yield Done(job, process.exitcode == 0, killed_by(process.exitcode))
        finally:
            for process, _ in running.values():
                process.terminate()  # SIGTERM: the run writes a checkpoint and stops
            for process, _ in running.values():
                process.join()


def killed_by(code: int | None) -> str:
    """The signal that ended a process, in words; nothing for one that ended by itself."""
    if code == TAKEN:
        return "another process writes this record: nothing was done here"
    if code is None or code >= 0:
        return ""
    number = -code
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    words = f"the process was ended by {name}"
    if name != "SIGKILL":
        return words
    return (
        f"{words}, as the system does where memory runs out: fewer --workers or a smaller "
        "--capacity need less; the same command goes on from the last checkpoint"
    )


class Here:
    """A map in this process, one run after the other: nothing need be importable by others."""

    def run(self, jobs: Sequence[Job], *, started: Callable[[Job], None]) -> Iterator[Done]:
        """Carry out every job in turn; one that fails leaves its reason in its record."""
        import torch

        from lser.experiments.stopping import Interrupted

        threads = torch.get_num_threads()
        try:
            for job in jobs:
                started(job)
                try:
                    work(job)
                except Interrupted:
                    raise KeyboardInterrupt from None
                except Exception:  # the record has the traceback
                    yield Done(job, False)
                else:
                    yield Done(job, True)
        finally:
            torch.set_num_threads(threads)


class for_children:
    """What processes started inside inherit: one thread each, and no ear for Ctrl-C.

    Runs side by side must not compete. A terminal sends Ctrl-C to all of them, and whoever started
    them, who hears it too, says when to stop.
    """

    NAMES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

    def __enter__(self) -> None:
        self._before = {name: os.environ.get(name) for name in self.NAMES}
        os.environ.update(dict.fromkeys(self.NAMES, "1"))
        self._in_main = threading.current_thread() is threading.main_thread()
        if self._in_main:
            self._heard = signal.signal(signal.SIGINT, signal.SIG_IGN)

    def __exit__(self, *exception: object) -> None:
        if self._in_main:
            signal.signal(signal.SIGINT, self._heard or signal.SIG_DFL)
        for name, value in self._before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def job_for(experiment: Experiment, root: Path, command: str) -> Job:
    """The job of `experiment`, in a folder named after its cell, its seed and its settings."""
    plain = to_json(experiment)
    key = dumps(settings_of(experiment), sort_keys=True, default=str)
    digest = sha256(key.encode()).hexdigest()[:8]
    simulator = str(plain["simulator"]["name"])
    label = "".join(c if c.isalnum() or c in ".-" else "-" for c in experiment.label or "run")
    name = f"{label}-seed{experiment.seed}-{digest}"
    study = [_folder_name(experiment.study)] if experiment.study else []
    folder = root.joinpath(*study, _folder_name(simulator), name)
    return Job(plain, str(folder), command)


def _folder_name(study: str) -> str:
    """A name as one folder: itself where it is plain, else with a checksum."""
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,79}", study):
        return study
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", study).strip("-")[:40]
    return f"{plain or 'study'}-{sha256(study.encode(errors='replace')).hexdigest()[:8]}"


def finished(job: Job) -> bool:
    """Whether the job's record is complete, so that it need not run again; a damaged one is not."""
    return records.is_done(Path(job.folder))


class Tally:
    """The overall progress of a study, from the records under way."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.total = len(jobs)
        self.work = sum(_work(job) for job in jobs)
        self.asked = sum(_asked(job) for job in jobs)
        self.running: list[Job] = []
        self.failed: list[Job] = []
        self.ends: dict[str, str] = {}  # by folder: what ended a process that could not say
        self.done = 0
        self.began = time.monotonic()
        self._ended_work = 0.0
        self._ended_sessions = 0.0

    def started(self, job: Job) -> None:
        """Note that a job runs."""
        self.running.append(job)

    def ended(self, done: Done) -> None:
        """Note how a job ended."""
        self.running.remove(done.job)
        part = 1.0 if done.ok else reached(done.job)
        self._ended_work += _work(done.job)
        self._ended_sessions += part * _asked(done.job)
        self.done += done.ok
        if not done.ok:
            self.failed.append(done.job)
            self.ends[done.job.folder] = done.why

    @property
    def elapsed(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.began

    def share(self) -> float:
        """The part of the whole work that is done, runs under way included."""
        done = self._ended_work + sum(_work(job) * reached(job) for job in self.running)
        return done / self.work if self.work else 1.0

    def sessions(self) -> float:
        """Those that all runs have had, as far as they have told."""
        under_way = sum(_asked(job) * reached(job) for job in self.running)
        return self._ended_sessions + under_way

    def pace(self) -> float:
        """Steps a second of all runs under way."""
        told = [progress.read(Path(job.folder)) for job in self.running]
        going = [now for now in told if now and now["sessions"] < now["of"]]
        return sum(float(now["steps_per_second"]) for now in going)

    def left(self) -> float | None:
        """Seconds left at the pace so far."""
        share = self.share()
        return self.elapsed * (1 - share) / share if share > 0.001 else None


def _work(job: Job) -> float:
    """A run's size in updates, about."""
    return from_json(dict(job.experiment)).expected_updates


def _asked(job: Job) -> int:
    return int(job.experiment["sessions"])


def reached(job: Job) -> float:
    """The part of its sessions that a run has had."""
    now = progress.read(Path(job.folder))
    return min(1.0, now["sessions"] / now["of"]) if now else 0.0

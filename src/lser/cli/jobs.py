"""Many runs from the command line: checked first, then carried out with a display, then told."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lser.cli.live import Watch
from lser.cli.words import plain
from lser.experiments import records
from lser.experiments.experiment import from_json
from lser.experiments.ready import check
from lser.experiments.study import Job, Map, Processes, Tally, finished, term_as_interrupt

MOST_ERRORS = 3  # failures that are told in full; the others have theirs in their records


def run_jobs(jobs: Sequence[Job], pool: Map) -> int:
    """Run what is not finished with a progress display; 1 when a run failed."""
    if not jobs:
        raise ValueError("there is nothing to run; --seeds must be at least 1")
    waiting = [job for job in jobs if not finished(job)]
    workers = pool.workers if isinstance(pool, Processes) else 1
    runs = [from_json(dict(job.experiment)) for job in waiting]
    check(runs, Path(jobs[0].folder), side_by_side=min(workers, len(runs)))
    tally = Tally(waiting)
    try:
        if waiting:
            with term_as_interrupt(), Watch(jobs, tally, already=len(jobs) - len(waiting)):
                for done in pool.run(waiting, started=tally.started):
                    tally.ended(done)
    except KeyboardInterrupt:
        print("stopped; the same command goes on where it stood", file=sys.stderr)
        raise
    _tell(tally.failed, tally.ends)
    return 1 if tally.failed else 0


def _tell(failed: Sequence[Job], ends: Mapping[str, str]) -> None:
    for job in failed[:MOST_ERRORS]:
        words = why(job, ends.get(job.folder, ""))
        print(plain(f"\nfailed: {job.folder}\n{words}"), file=sys.stderr)
    if len(failed) > MOST_ERRORS:
        print(f"\nand {len(failed) - MOST_ERRORS} more failed: see lser runs", file=sys.stderr)


def why(job: Job, end: str = "") -> str:
    """What ended a run that did not finish: its record's words, or what ended its process."""
    try:
        record = records.load(job.folder)
    except ValueError:
        return end or "the process died before its record began"
    died = end or "the process died"
    stopped = "stopped before its end" if record.status == "stopped" else died
    return str(record.meta.get("error") or stopped)

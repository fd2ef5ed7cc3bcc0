"""Many runs from the command line: checked first, then carried out with a display, then told."""

import sys
from collections.abc import Sequence
from pathlib import Path

from lser.cli.live import Watch
from lser.cli.words import plain
from lser.experiments import records
from lser.experiments.experiment import from_json
from lser.experiments.ready import check
from lser.experiments.study import Job, Map, Tally, finished, term_as_interrupt

MOST_ERRORS = 3  # failures that are told in full; the others have theirs in their records


def run_jobs(jobs: Sequence[Job], pool: Map) -> int:
    """Run what is not finished with a progress display; 1 when a run failed."""
    if not jobs:
        raise ValueError("there is nothing to run; --seeds must be at least 1")
    waiting = [job for job in jobs if not finished(job)]
    check([from_json(dict(job.experiment)) for job in waiting], Path(jobs[0].folder))
    tally = Tally(waiting)
    if waiting:
        with term_as_interrupt(), Watch(jobs, tally, already=len(jobs) - len(waiting)):
            for done in pool.run(waiting, started=tally.started):
                tally.ended(done)
    _tell(tally.failed)
    return 1 if tally.failed else 0


def _tell(failed: Sequence[Job]) -> None:
    for job in failed[:MOST_ERRORS]:
        print(plain(f"\nfailed: {job.folder}\n{why(job)}"), file=sys.stderr)
    if len(failed) > MOST_ERRORS:
        print(f"\nand {len(failed) - MOST_ERRORS} more failed: see lser runs", file=sys.stderr)


def why(job: Job) -> str:
    """What ended a run that did not finish, in its record's words."""
    try:
        record = records.load(job.folder)
    except ValueError:
        return "the process died before its record began"
    stopped = "stopped before its end" if record.status == "stopped" else "the process died"
    return str(record.meta.get("error") or stopped)

"""Runs that are made one after another and go on where they stood, and their packing."""

from collections.abc import Sequence
from pathlib import Path

from lser.experiments import records
from lser.experiments.study import Here, Job, finished


def carry_out(
    verb: str, jobs: Sequence[Job], file: Path, kept: Sequence[records.Record] = ()
) -> None:
    """``run`` what is not finished, or ``pack`` what is, behind the records that are `kept`."""
    if verb == "run":
        for done in Here().run([job for job in jobs if not finished(job)], started=lambda _: None):
            print(done.ok, done.job.folder, flush=True)
    else:
        records.pack([*kept, *(records.load(job.folder) for job in jobs if finished(job))], file)

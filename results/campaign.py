"""Runs that are made one after another and go on where they stood, and their packing."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

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


def run_pack_or_print(
    words: Sequence[str],
    jobs: Callable[[str, Path], Sequence[Job]],
    file: Path,
    block: Callable[[], str],
) -> None:
    """What a script does: ``run`` or ``pack FOLDER [PLACE PLACES]``, or print every figure.

    `jobs` says which, by verb and folder; of these it is every PLACES-th from PLACE on, less those
    that `file` has.
    """
    match words:
        case []:
            print(block())
        case [verb, folder, *part]:
            place, places = map(int, part or (0, 1))
            packed = records.find(file) if file.exists() else []
            known = {_key(run.experiment) for run in packed}
            # dealt before what is packed is left out: a part is the same whenever it begins
            part_of_it = jobs(verb, Path(folder))[place::places]
            wanted = [job for job in part_of_it if _key(job.experiment) not in known]
            carry_out(verb, wanted, file, packed)


def _key(experiment: Mapping[str, Any]) -> str:
    return json.dumps(experiment, sort_keys=True)


def gather(folders: Sequence[Path], wanted: Callable[[records.Record], bool], file: Path) -> None:
    """Pack every `wanted` record of the folders, wherever it ran, with those `file` has already.

    Of runs of one arm, world and seed the one that went furthest is kept, and the older of equals.
    """
    found: dict[str, records.Record] = {}
    for place in (*([file] if file.exists() else []), *folders):
        for run in records.find(place):
            if run.status != "damaged" and wanted(run):
                world = json.dumps(run.experiment["simulator"], sort_keys=True)
                key = f"{run.label} {run.seed} {world}"
                found[key] = max(found.get(key, run), run, key=_reached)
    records.pack(found.values(), file)


def _reached(run: records.Record) -> tuple[bool, float]:
    return run.final is not None, run.curve[-1]["sessions"] if run.curve else -1.0

"""``lser resume``: continue an interrupted run, exactly."""

from pathlib import Path
from typing import Annotated

import tyro

from lser.experiments import records
from lser.experiments.experiment import from_json


def resume(argv: list[str]) -> int:
    """Continue the run in a record's folder."""
    return int(tyro.cli(_resume, args=argv, prog="lser resume"))


def _resume(record: Annotated[Path, tyro.conf.Positional], /, address: str = "") -> int:
    """Continue an interrupted run; its record ends as if it had never stopped.

    example: lser resume runs/bazaar/lser-seed0-1a2b3c4d

    Args:
        record: Folder of the record.
        address: The Ray cluster of a run with feeders, host:port or auto.
    """
    from lser.cli.train import execute

    held = records.load(record)
    if held.status == "done":
        raise ValueError(f"{record} is finished; there is nothing to resume")
    every = held.meta.get("checkpoint_seconds", 60.0)  # as the run was started
    command = str(held.meta.get("command", ""))
    experiment = from_json(held.experiment)
    return execute(experiment, record, command=command, checkpoint_seconds=every, address=address)

"""Runs that a fleet can have, small, and the records they leave alone."""

import json
from dataclasses import replace
from pathlib import Path

from lser.experiments import records
from lser.experiments.presets import preset
from lser.experiments.run import Run
from lser.experiments.study import job_for

LENGTH = {"sessions": 12, "evaluate_every": 4, "learning_starts": 16}


def small(memory="lser", agent="ddpg", knobs=None, **changes):
    base = preset("bazaar", memory, agent, scale="quick")
    base = replace(
        base,
        agent=replace(base.agent, **{"hidden": (16, 16), "diagnose_every": 3, **(knobs or {})}),
    )
    sizes = {"sessions": 40, "evaluate_every": 20, "evaluate_sessions": 20, "final_sessions": 40}
    sizes |= {"users": 4, "batch_size": 16, "capacity": 500}
    return replace(base, **{**sizes, **changes})


def jobs(folder, *experiments):
    return [job_for(experiment, folder, "test") for experiment in experiments]


def alone(folder, experiments):
    found = []
    for number, experiment in enumerate(experiments):
        run = Run(experiment, folder / "alone" / str(number))
        run.go()
        found.append(run.folder)
    return found


def assert_same_records(expected, work):
    for one, job in zip(expected, work, strict=True):
        mine, its = Path(job.folder), Path(one)
        assert (mine / records.CURVE).read_bytes() == (its / records.CURVE).read_bytes()
        final = [json.loads((folder / records.FINAL).read_text()) for folder in (mine, its)]
        assert final[0] == final[1]
        record = records.load(mine)
        assert record.status == "done"
        assert record.meta["engine"] == "fleet on cpu"

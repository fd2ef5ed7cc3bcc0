"""Kernels compiled once per node: the first task does it, those beside it wait for the cache."""

import hashlib
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from lser import __version__, locks
from lser.experiments.experiment import Experiment, from_json


def warm(experiments: Iterable[dict[str, Any]]) -> None:
    """See to it that what these experiments compile is in the cache of this node.

    Where the system has no locks every process compiles for itself.
    """
    seen = set()
    for plain in experiments:
        experiment = from_json(dict(plain))
        if experiment.names not in seen and locks.AVAILABLE:
            seen.add(experiment.names)
            _once(experiment)


def _once(experiment: Experiment) -> None:
    folder = Path(tempfile.gettempdir()) / f"lser-warm-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    name = repr((experiment.names, __version__, os.fspath(Path(__file__).parent)))
    mark = folder / hashlib.sha256(name.encode()).hexdigest()[:16]
    with mark.open("a+") as file:
        locks.wait_for_lock(file)
        if mark.stat().st_size:
            return
        with suppress(Exception):  # what is wrong with it the run itself will say
            short_run(experiment)
            file.write("warm\n")


def short_run(experiment: Experiment) -> None:
    """Two updates and an evaluation of this experiment, for the sake of what they compile."""
    from lser.experiments.run import run

    brief = replace(
        experiment,
        sessions=1,
        evaluate_every=1,
        evaluate_sessions=1,
        final_sessions=1,
        learning_starts=0,
        intervention=None,
    )
    with tempfile.TemporaryDirectory() as folder:
        run(brief, Path(folder) / "warm")

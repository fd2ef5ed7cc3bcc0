"""How far a run is, as a small file beside its record, so that others can watch it."""

import json
import time
from collections.abc import Callable
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lser.experiments.recording import write_json
from lser.opening import read_text

if TYPE_CHECKING:  # training loads torch, which watchers do without
    from lser.training import Step

PROGRESS = "progress.json"
MOST_BYTES = 1 << 16  # of the file: many times what is written
COUNTED = ("sessions", "of", "steps_per_second", "left")  # finite, and of a sensible size
NUMBERS = (*COUNTED, "so_far", "evaluation")
LACKING = {
    "metric": "score", "so_far": nan, "steps_per_second": 0.0, "evaluation": None, "left": None,
}  # fmt: skip
MOST = 1e15


class Status(NamedTuple):
    """What a watcher of a run is told after every vector step."""

    step: "Step"
    sessions: int  # asked for
    metric: str
    so_far: float  # the simulator's metric over training, exploration included
    evaluation: dict[str, float] | None  # the last line of the curve
    elapsed: float  # seconds, earlier parts of a resumed run included


Watcher = Callable[[Status], None]


class ProgressFile:
    """A watcher that leaves the run's progress in its folder every few seconds."""

    def __init__(self, folder: Path, every: float = 2.0) -> None:
        self._path = folder / PROGRESS
        self._every = every
        self._written = 0.0

    def __call__(self, status: Status) -> None:
        """Write when it is time."""
        now = time.monotonic()
        if now - self._written < self._every:
            return
        self._written = now
        write_json(self._path, summary(status), sync=False)


def summary(status: Status) -> dict[str, Any]:
    """The numbers a person wants of a run under way."""
    step = status.step
    rate = step.steps / status.elapsed if status.elapsed > 0 else 0.0
    share = min(1.0, step.sessions / status.sessions)
    return {
        "sessions": step.sessions,
        "of": status.sessions,
        "steps": step.steps,
        "updates": step.updates,
        "steps_per_second": rate,
        "metric": status.metric,
        "so_far": status.so_far,
        "evaluation": status.evaluation and status.evaluation["metric"],
        "elapsed": status.elapsed,
        "left": status.elapsed * (1 - share) / share if share > 0 else None,
    }


def read(folder: Path) -> dict[str, Any] | None:
    """The progress last left in `folder`, if any; what is none is taken for none."""
    path = folder / PROGRESS
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        found = json.loads(read_text(path))
    except (OSError, ValueError, RecursionError):
        return None
    value = {**LACKING, **found} if isinstance(found, dict) else {}
    return value if _whole(value) else None


def _whole(value: dict[str, Any]) -> bool:
    """Whether it has every number that is shown or reckoned with."""
    if not isinstance(value.get("metric"), str):
        return False
    names = [n for n in NUMBERS if value.get(n) is not None or LACKING.get(n, 0) is not None]
    numbers: list[Any] = [value.get(name) for name in names]
    if not all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers):
        return False
    counts = [number for name, number in zip(names, numbers, strict=True) if name in COUNTED]
    return all(abs(n) < MOST for n in counts) and value["of"] > 0

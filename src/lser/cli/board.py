"""A run's numbers as TensorBoard scalars or as a plain table, as they come."""

import csv
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lser.cli.outcome import flat
from lser.experiments.progress import Status

COUNTS = ("sessions", "steps", "updates", "evaluated")
SHEET = "curve.csv"


class Numbers(ABC):
    """A watcher that hands over every line of the curve once, with all that is known beside it.

    That is the score over training so far, the losses and values of the last update, and the
    memory's own statistics.
    """

    def __init__(self, stats: Callable[[], Mapping[str, float]]) -> None:
        self._stats = stats
        self._seen: dict[str, float] | None = None
        self._losses: dict[str, float] = {}

    def __call__(self, status: Status) -> None:
        """Pass on the last line of the curve if it is new."""
        self._losses = losses(status) or self._losses  # not every step has an update
        line = status.evaluation
        if line is None or line == self._seen:
            return
        self._seen = line
        found = {
            name if name in COUNTS else f"{group(name)}{name}": v for name, v in flat(line).items()
        }
        found[f"training/{status.metric}"] = status.so_far
        found |= {f"learning/{name}": value for name, value in self._losses.items()}
        found |= {f"memory/{name}": value for name, value in flat(dict(self._stats())).items()}
        self.take(found)

    @abstractmethod
    def take(self, numbers: dict[str, float]) -> None:
        """Keep the numbers of one evaluation."""


class Board(Numbers):
    """Logs the numbers for TensorBoard."""

    def __init__(self, folder: Path, stats: Callable[[], Mapping[str, float]]) -> None:
        super().__init__(stats)
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            needed = "pip install tensorboard"
            raise ValueError(f"--tensorboard needs TensorBoard: {needed}") from error
        self._writer: Any = SummaryWriter(str(folder / "tensorboard"))

    def take(self, numbers: dict[str, float]) -> None:
        """Log all but the counts, by environment steps."""
        for name, value in numbers.items():
            if name not in COUNTS:
                self._writer.add_scalar(name, value, int(numbers["steps"]))
        self._writer.flush()


class Sheet(Numbers):
    """Keeps the numbers as ``curve.csv``, a column for every name; a resumed run goes on in it."""

    def __init__(self, folder: Path, stats: Callable[[], Mapping[str, float]]) -> None:
        super().__init__(stats)
        self._path = folder / SHEET
        self._rows: list[dict[str, Any]] = []
        if self._path.exists():
            with self._path.open(newline="") as file:
                self._rows = list(csv.DictReader(file))

    def take(self, numbers: dict[str, float]) -> None:
        """Add a row; those that a resumed run repeats are replaced."""
        steps = numbers["steps"]
        self._rows = [row for row in self._rows if float(row["steps"]) < steps] + [numbers]
        columns = list(dict.fromkeys(name for row in self._rows for name in row))
        with self._path.open("w", newline="") as file:
            writer = csv.DictWriter(file, columns, restval="")
            writer.writeheader()
            writer.writerows(self._rows)


def group(name: str) -> str:
    """Where TensorBoard shows a number: with the critic's, training's or the evaluation's."""
    if "/" in name:
        return ""
    if name in ("saturated", "one_reward") or name.startswith("value_"):
        return "critic/"
    return "training/" if name.startswith("learning_") or name == "regret" else "evaluation/"


def losses(status: Status) -> dict[str, float]:
    """What the last update reports of itself: its losses, and how far its values were off."""
    learned = status.step.learned
    if learned is None:
        return {}
    values = flat(learned.values._asdict()) if learned.values is not None else {}
    return {**learned.losses, **values, "td_error": float(abs(learned.td_errors).mean())}

"""A run's numbers as TensorBoard scalars, as they come."""

from pathlib import Path
from typing import Any

from lser.cli.outcome import flat
from lser.experiments.progress import Status

COUNTS = ("sessions", "steps", "updates", "evaluated")


class Board:
    """A watcher that logs every line of the curve once, and what the last update learned."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            needed = "pip install tensorboard"
            raise ValueError(f"--tensorboard needs TensorBoard: {needed}") from error
        self._writer: Any = SummaryWriter(str(folder / "tensorboard"))
        self._logged: dict[str, float] | None = None

    def __call__(self, status: Status) -> None:
        """Log the last line of the curve if it is new, with every number it has."""
        line = status.evaluation
        if line is None or line is self._logged:
            return
        self._logged = line
        steps = int(line["steps"])
        for name, value in flat(line).items():
            if name not in COUNTS:
                self._writer.add_scalar(f"{group(name)}{name}", value, steps)
        self._writer.add_scalar(f"training/{status.metric}", status.so_far, steps)
        for name, value in losses(status).items():
            self._writer.add_scalar(f"learning/{name}", value, steps)
        self._writer.flush()


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

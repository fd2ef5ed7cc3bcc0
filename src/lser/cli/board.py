"""A run's evaluations as TensorBoard scalars, as they come."""

from pathlib import Path
from typing import Any

from lser.experiments.progress import Status
from lser.experiments.signals import VALUES


class Board:
    """A watcher that logs every evaluation once."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            needed = "pip install 'lser[tensorboard]'"
            raise ValueError(f"--tensorboard needs TensorBoard: {needed}") from error
        self._writer: Any = SummaryWriter(str(folder / "tensorboard"))
        self._logged: dict[str, float] | None = None

    def __call__(self, status: Status) -> None:
        """Log the last evaluation if it is new."""
        line = status.evaluation
        if line is None or line is self._logged:
            return
        self._logged = line
        steps = int(line["steps"])
        for key in ("metric", "reward", "length", "reward_per_step"):
            self._writer.add_scalar(f"evaluation/{key}", line[key], steps)
        for key in (*VALUES.values(), "one_reward"):
            if key in line:
                self._writer.add_scalar(f"critic/{key}", line[key], steps)
        for key in ("learning_metric", "learning_reward", "regret"):
            if key in line:
                self._writer.add_scalar(f"training/{key}", line[key], steps)
        self._writer.add_scalar(f"training/{status.metric}", status.so_far, steps)
        self._writer.flush()

"""Training as a generator, evaluation and checkpoints."""

from lser.training.evaluate import Evaluation, evaluate
from lser.training.goals import GoalEnv
from lser.training.loop import Progress, Step, train
from lser.training.sight import SightedEnv
from lser.training.traffic import Traffic

__all__ = [
    "Evaluation",
    "GoalEnv",
    "Progress",
    "SightedEnv",
    "Step",
    "Traffic",
    "evaluate",
    "train",
]

"""What a run tells of itself beside its scores: what it earns while learning, and its critic."""

import logging
from typing import Any

from lser.agents.protocol import Values
from lser.experiments.experiment import Experiment, to_json
from lser.experiments.studies.platforms import scale_of
from lser.simulators.base import Metric
from lser.training import Progress, Step

SLACK = 0.02  # of the bound's width: what a fit may overshoot without a word
VALUES = {  # keys of a record, in the order of `Values`
    "replayed_mean": "value_replayed_mean",
    "replayed_largest": "value_replayed_largest",
    "own_mean": "value_own_mean",
    "own_largest": "value_own_largest",
    "spread": "value_spread",
    "saturated": "saturated",
    "bound_low": "value_bound_low",
    "bound_high": "value_bound_high",
}
UNBOUNDED = "value_bound='auto' bounds its targets"
BOUNDED = "its targets are bounded, so this is what the fit overshoots"
log = logging.getLogger("lser")


class Signals:
    """Counts what training earns, and says so once when values leave what rewards allow."""

    def __init__(self, experiment: Experiment, metric: Metric, name: str) -> None:
        self.metric = metric
        self.sums = [0.0, 0.0, 0.0]  # the metric's numerator and denominator, and the reward
        scale = scale_of(to_json(experiment), metric.name)
        self._best = None if scale is None else scale.best.score
        self._name = name
        self._bounded = getattr(experiment.agent, "value_bound", None) is not None
        self._warned = False

    def count(self, step: Step) -> None:
        """Add a vector step, exploration included."""
        numbers: dict[str, Any] = {"reward": step.reward, "steps": step.reward * 0 + 1, **step.info}
        self.sums[0] += float(numbers[self.metric.numerator].sum())
        self.sums[1] += float(numbers[self.metric.denominator].sum())
        self.sums[2] += float(step.reward.sum())

    @property
    def so_far(self) -> float:
        """The simulator's metric over all of training."""
        over, under, _ = self.sums
        return over / under if under else 0.0

    def line(self, progress: Progress) -> dict[str, float]:
        """The numbers of one line of a curve; counting batches of one reward begins anew."""
        over, under, reward = self.sums
        found = {"learning_metric": self.so_far, "learning_reward": reward / max(progress.steps, 1)}
        if self._best is not None:
            found["regret"] = self._best * under - over
        if progress.batches:
            found["one_reward"] = progress.one_reward / progress.batches
            progress.one_reward = progress.batches = 0
        return {**found, **self.values(progress)}

    def values(self, progress: Progress) -> dict[str, float]:
        """What the critic said when it was last looked at."""
        return dict(zip(VALUES.values(), progress.values, strict=False))

    def warn(self, progress: Progress) -> None:
        """Say so, once, if the critic's values have left what rewards allow."""
        if self._warned or not progress.values:
            return
        now = Values._make(progress.values)
        if now.bound_low == now.bound_high:  # no reward but one has been seen: nothing to leave
            return
        slack = SLACK * (now.bound_high - now.bound_low)
        largest = max(now.replayed_largest, now.own_largest)
        if largest > now.bound_high + slack or now.replayed_mean < now.bound_low - slack:
            self._warned = True
            log.warning(
                "%s: after %s updates the critic's values (mean %.4g, largest %.4g) have left "
                "what rewards allow, %.4g to %.4g; %s",
                self._name,
                f"{progress.updates:,}",
                now.replayed_mean,
                largest,
                now.bound_low,
                now.bound_high,
                BOUNDED if self._bounded else UNBOUNDED,
            )

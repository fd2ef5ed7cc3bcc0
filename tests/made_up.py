"""Made-up runs of planned studies on VirtualTaobao, for the scripts that read them."""

from pathlib import Path

import numpy as np

from lser.experiments import records
from lser.experiments.experiment import to_json

RESULTS = Path(__file__).resolve().parents[1] / "results"
READ = (  # scripts that read what a study of the plan has packed
    *("confirmation", "length", "like_with_like", "options", "reruns", "fall"),
    *("parts", "more_seeds", "plateaus"),
)
POINTS = 20


def point(sessions, score):
    """An evaluation."""
    return {
        "sessions": sessions, "steps": 8 * sessions, "updates": 8 * sessions, "metric": score,
        "metric_se": 0.001, "reward_per_step": 10 * score, "reward": 77 * score, "length": 7.7,
        "value_own_mean": 900.0, "value_bound_high": 1000.0, "one_reward": 0.2,
    }  # fmt: skip


def run(experiment, level, *, peak=0.0, status="done", share=1.0):
    """A record that rises to `level`, or to `peak` and then falls to it; cut off at a `share`."""
    luck = np.random.default_rng([experiment.seed, len(experiment.label)]).normal(0, 0.01)
    sessions = round(experiment.sessions * share)
    at = [round(sessions * n / POINTS) for n in range(POINTS + 1)]
    tops = [min(1.0, 2 * n / POINTS) * max(level, peak) for n in range(POINTS)]
    curve = [point(s, score) for s, score in zip(at, [*tops, level], strict=True)]
    machine = {"system": "Linux", "processor": "made up", "cores": 2, "python": "cpython"}
    return records.Record(
        path=Path("runs"),
        experiment=to_json(experiment),
        meta={"status": status, "metric": "ctr", "engine": "fleet on cpu", "machine": machine},
        curve=curve,
        final=None if status == "failed" else point(sessions, level + luck),
    )


def pack(script, runs):
    records.pack(runs, script.FILE)
    script.runs.cache_clear()

"""The cure at the paper's length: the figures of K in plan.md, from the committed records.

``python results/cure.py`` prints them.
"""

import gzip
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from committed import RESULTS, SEED

from lser.experiments import records
from lser.report.stats import iqm, mean_t, paired_difference, paired_p, probability_of_improvement

ARMS = ("lser with the cure", "reward-top with the cure", "uniform with the cure")
FALL, LONG = 0.1, 5_000  # below the best so far, for so many sessions


def longest_fall(curve: Sequence[Any]) -> float:
    """The most sessions in a row that a run stayed more than `FALL` below its best so far."""
    best, since, longest = 0.0, None, 0.0
    for point in curve:
        best = max(best, point["metric"])
        if point["metric"] >= best - FALL:
            since = None
            continue
        since = point["sessions"] if since is None else since
        longest = max(longest, point["sessions"] - since)
    return longest


def main() -> None:
    """Print every figure."""
    found = records.find(RESULTS / "cure_virtual_taobao.jsonl.gz")
    runs = {arm: {r.seed: r for r in found if r.label == arm} for arm in ARMS}
    final = {arm: {s: r.final["metric"] for s, r in runs[arm].items()} for arm in ARMS}
    for arm in ARMS:
        scores = list(final[arm].values())
        learning = np.mean([r.final["learning_metric"] for r in runs[arm].values()])
        falls = [longest_fall(r.curve) for r in runs[arm].values()]
        print(
            f"{arm}: mean {np.mean(scores):.3f}, IQM {iqm(scores):.3f}, lowest {min(scores):.3f}, "
            f"below .8: {sum(s < 0.8 for s in scores)}, while learning {learning:.3f}, "
            f"fell for {LONG:,} sessions: {sum(f >= LONG for f in falls)} (longest {max(falls):,})"
        )
    ours, top, uniform = ARMS
    pair = [tuple(np.array(list(final[arm].values())) for arm in (ours, uniform))]
    chance = probability_of_improvement(pair, np.random.default_rng(SEED))  # type: ignore[arg-type]
    print(f"P({ours} > {uniform}): {chance.estimate:.3f} [{chance.low:.3f}, {chance.high:.3f}]")
    for first, second in ((ours, uniform), (ours, top), (uniform, top)):
        gap = paired_difference(final[first], final[second])
        mean = mean_t(gap)
        print(
            f"{first} minus {second}: {mean.estimate:+.3f} [{mean.low:+.3f}, {mean.high:+.3f}], "
            f"p = {paired_p(gap):.3f}"
        )
    with gzip.open(RESULTS / "cure_as_printed.json.gz", "rt") as file:
        printed = json.load(file)
    until = printed["until"]
    curves = {"lser as printed": [run["curve"] for run in printed["runs"]]}
    curves[ours] = [run.curve for run in runs[ours].values()]
    for arm, drawn in curves.items():
        there = [min(c, key=lambda p: abs(p["sessions"] - until))["metric"] for c in drawn]
        print(
            f"{arm} at {until:,}: mean {np.mean(there):.3f}, "
            f"below .8: {sum(s < 0.8 for s in there)}, "
            f"fell: {sum(longest_fall(c) >= LONG for c in drawn)}"
        )


if __name__ == "__main__":
    main()

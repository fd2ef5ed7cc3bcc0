"""The paper's regime with bounded values: the figures of Q in plan.md.

``python results/regime_bounded.py run FOLDER`` makes the runs, one after another, and goes on where
it stood; ``pack FOLDER`` writes ``paper_regime_bounded.jsonl.gz``; without arguments it prints what
they say.
"""

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from campaign import carry_out
from committed import RESULTS
from paper_regime import Curve, continuing, levels

from lser.experiments import records
from lser.experiments.studies import plan
from lser.experiments.study import Job, job_for
from lser.report.stats import Interval, holm, mean_t, paired_difference, paired_p
from lser.report.style import interval, listing, name_of, number

FILE = RESULTS / "paper_regime_bounded.jsonl.gz"
MEMORIES, SEEDS, SESSIONS = ("lser", "uniform"), 5, 3_000


def jobs(folder: Path) -> list[Job]:
    """The runs of Q: A's continuing half with bounded values, shorter; seed by seed."""
    cells = [one for one in plan("paper-regime", "paper", SEEDS) if one.horizon != "session"]
    chosen = [one for one in cells if one.label in MEMORIES]
    made = [
        replace(
            one,
            agent=replace(one.agent, value_bound="auto"),
            sessions=SESSIONS,
            label=f"{one.label}, bounded values",
        )
        for one in sorted(chosen, key=lambda one: one.seed)
    ]
    return [job_for(one, folder, "python results/regime_bounded.py run") for one in made]


def gaps() -> dict[str, tuple[Interval, float, int]]:
    """Q: CTR late in 3,000 sessions, bounded minus as printed, with Holm's p and the seeds."""
    found = {}
    for arm in MEMORIES:
        ours = {run.seed: run.curve for run in runs(arm)}
        scores = [
            {seed: _late(curve) for seed, curve in curves.items() if seed in ours}
            for curves in (ours, continuing().curves[arm])
        ]
        found[arm] = paired_difference(*scores)
    corrected = holm([paired_p(one) for one in found.values()])
    return {
        arm: (mean_t(one), p, len(one))
        for (arm, one), p in zip(found.items(), corrected, strict=True)
    }


@cache
def runs(arm: str) -> list[records.Record]:
    """The committed runs of one memory."""
    return [run for run in records.find(FILE) if run.label.startswith(arm)]


def _over_the_bound(run: records.Record) -> float:
    return float(run.curve[-1]["value_own_mean"] / run.curve[-1]["value_bound_high"])


def _late(curve: Curve) -> float:
    return float(np.mean([p["metric"] for p in curve if p["sessions"] in (2_000, 3_000)]))


def reading() -> str:
    """What Q says in words."""
    parts = [
        f"{name_of(arm)} {interval(mean, sign=True)} over {seeds} seeds "
        f"(p = {number(p)} after Holm)"
        for arm, (mean, p, seeds) in gaps().items()
    ]
    ends = {arm: [_late(run.curve) for run in runs(arm)] for arm in MEMORIES}
    values = [
        f"{name_of(arm)} {np.median([_over_the_bound(r) for r in runs(arm)]):.2f}"
        for arm in MEMORIES
    ]
    if any(mean.low > 0 for mean, _, _ in gaps().values()):
        raise ValueError("bounded values help now, and the text says that they do not")
    return (
        "**The paper's regime with bounded values** (Q of the plan; A's continuing half with "
        '`value_bound="auto"` alone, 3,000 sessions, points at 2,000 and 3,000): CTR '
        f"{levels(ends)}; bounded minus as printed {listing(parts)}. Values rise to the bound "
        f"instead of past it ({listing(values)} of it at the end, in the middle of five runs): as "
        "far as five seeds can tell, **bounds alone do not bring these runs back**."
    )


def main(words: list[str]) -> None:
    """Run, pack, or print what they say."""
    if words:
        carry_out(words[0], jobs(Path(words[1])), FILE)
    else:
        print(reading())


if __name__ == "__main__":
    main(sys.argv[1:])

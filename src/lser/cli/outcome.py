"""What a finished run has to say: its score on the scale of the possible, and what to do next."""

import math
import textwrap
from pathlib import Path
from typing import Any

from lser.cli.words import quoted
from lser.experiments import records
from lser.experiments.experiment import Experiment


def score_line(record: records.Record, experiment: Experiment) -> str:
    """The final score against random actions and the best policy known, in two lines."""
    final = record.final or {}
    error = final.get("metric_se")
    shown = f"{final['metric']:.4f}" + (f" ± {error:.4f}" if error is not None else "")
    first = f"final {record.metric} {shown} after {int(final['sessions']):,} sessions"
    return "\n".join([first, *scale_words(experiment, final["metric"])])


def scale_words(experiment: Experiment, score: float) -> list[str]:
    """Where a score lies between random and best known; nothing where these are not known."""
    from lser.experiments.build import anchors

    known = anchors(experiment)
    if known is None:
        return []
    random, best = known
    span = best.score - random.score
    share = (score - random.score) / span if span else math.nan
    if math.isnan(share):
        return []
    text = (
        f"random actions {random.score:.4g}, best known {best.score:.4g} ({best.policy}): "
        f"{share:.0%} of the way"
    )
    return textwrap.wrap(text, 80)


def next_commands(folder: Path) -> str:
    """Two commands that go on from here."""
    place = quoted(folder)
    return f"next: lser evaluate {place}\n      lser report {place} --out report"


def flat(line: dict[str, Any], prefix: str = "") -> dict[str, float]:
    """Every number of a line by its name; those of nested objects as ``outer/inner``."""
    found: dict[str, float] = {}
    for name, value in line.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[f"{prefix}{name}"] = value
    return found

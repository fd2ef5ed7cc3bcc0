"""How much of the spread is the machine's: the figures of J in plan.md.

``python results/reruns.py run FOLDER`` makes the runs on a CPU, one after another, and goes on
where it stood; those on a second device are in the fleet of H (``planned.py FOLDER h``), the first
are C's. ``python results/reruns.py pack FOLDER FOLDER`` packs what both hold into
``reruns.jsonl.gz``; without arguments it prints every figure.
"""

import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import confirmation
import numpy as np
import options
from campaign import carry_out
from cells import CPU, FLEET, NOISE, RERUN, rerun
from committed import RESULTS, by_arm
from delayed import Scores
from scored import Scored, gather, levels, row, scored

from lser.experiments.study import Job, job_for
from lser.report.stats import paired_difference
from lser.report.style import name_of, percent

FILE = RESULTS / "reruns.jsonl.gz"
FIRST = "the first fleet"
PLACES = (FIRST, FLEET, CPU)
GAP = "LSER minus uniform"


class Spread(NamedTuple):
    """Standard deviations of final CTR within and between seeds, and what share is within."""

    within: float
    between: float
    seeds: int

    @property
    def share(self) -> float:
        """The share of the variance that equal seeds do not have in common."""
        total = self.within**2 + self.between**2
        return self.within**2 / total if total else 0.0


def jobs(folder: Path) -> list[Job]:
    """The runs on a CPU."""
    return [job_for(one, folder, "python results/reruns.py run") for one in rerun(CPU)]


@cache
def runs() -> Scored:
    """The reruns by arm and place."""
    return scored(by_arm(FILE))


def known() -> bool:
    """Whether C and its reruns have been made."""
    return FILE.is_file() and confirmation.known()


def places(arm: str) -> dict[str, Scores]:
    """The final CTR of an arm in every place, over the seeds that all have."""
    found = {FIRST: confirmation.runs(NOISE).of(arm)}
    found |= {place: runs().of(f"{arm} on {place}") for place in (FLEET, CPU)}
    held = {place: scores for place, scores in found.items() if scores}
    seeds = set.intersection(*(set(scores) for scores in held.values()))
    return {place: {s: scores[s] for s in sorted(seeds)} for place, scores in held.items()}


def gaps() -> dict[str, Scores]:
    """LSER minus uniform in every place, by seed."""
    ours, theirs = (places(arm) for arm in RERUN)
    return {
        place: {
            seed: ours[place][seed] - theirs[place][seed]
            for seed in sorted(ours[place].keys() & theirs[place])
        }
        for place in ours
    }


def spread(found: dict[str, Scores]) -> Spread:
    """Variance components of a one-way layout, seeds at random, a run of each seed per place."""
    scores = np.array([list(by.values()) for by in found.values()])  # (places, seeds)
    times, seeds = scores.shape
    within = float(scores.var(axis=0, ddof=1).mean())
    between = float(scores.mean(axis=0).var(ddof=1)) - within / times
    return Spread(within**0.5, max(0.0, between) ** 0.5, seeds)


def spreads() -> dict[str, Spread]:
    """Of each arm, and of their paired difference."""
    return {**{arm: spread(places(arm)) for arm in RERUN}, GAP: spread(gaps())}


def equal() -> str:
    """H's own LSER arm beside the rerun in the same fleet: the same experiment twice."""
    if not options.known():
        return ""
    apart = paired_difference(options.runs().of("lser"), runs().of(f"lser on {FLEET}"))
    if not apart.size:
        return ""
    return (
        " H's own LSER arm, the same experiment twice in one fleet, ends at the same CTR in "
        f"{int((apart == 0).sum())} of {apart.size} seeds (largest difference "
        f"{np.abs(apart).max():.3f})."
    )


def reading() -> str:
    """What J says in words; nothing before it has been run."""
    if not known():
        return ""
    found = spreads()
    parts = "; ".join(
        f"{name_of(arm)} {one.within:.3f} within a seed and {one.between:.3f} between seeds, "
        f"{percent(one.share)} of the variance within"
        for arm, one in found.items()
    )
    means = "; ".join(
        f"{name_of(arm)} "
        + levels({place: float(np.mean(list(s.values()))) for place, s in places(arm).items()})
        for arm in RERUN
    )
    return (
        "**How much of the spread is the machine's** (J of the plan; VirtualTaobao, 15,000 "
        f"sessions, equal settings and seeds run {len(places(RERUN[0]))} times, "
        f"{found[GAP].seeds} seeds of 10, of the reruns {runs().whole()}). Standard deviation of "
        f"the final CTR: {parts}. Means: {means}.{equal()}"
    )


def table() -> str:
    """Every seed in every place."""
    held = list(places(RERUN[0]))
    lines = [row("arm", "seed", *held), "|" + "---|" * (2 + len(held))]
    for arm in RERUN:
        found = places(arm)
        lines += [
            row(name_of(arm), str(seed), *(f"{found[p][seed]:.3f}" for p in held))
            for seed in found[FIRST]
        ]
    return "\n".join(lines)


def block() -> str:
    """The words and the table."""
    return f"{reading()}\n\n{table()}" if known() else ""


def main(words: list[str]) -> None:
    """Run, pack, or print every figure."""
    if words[:1] == ["pack"]:
        gather("reruns", FILE, *map(Path, words[1:]))
    elif words:
        carry_out(words[0], jobs(Path(words[1])), FILE)
    else:
        print(block())


if __name__ == "__main__":
    main(sys.argv[1:])

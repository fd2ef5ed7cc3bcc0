"""Where users differ in how readily they click: the figures of CC in plan.md.

``python results/generous.py run FOLDER PLACE PLACES`` makes every PLACES-th run, one after another,
and goes on where it stood; ``pack FOLDER`` keeps what is finished in ``generous.jsonl.gz``;
without arguments it prints every figure from there.
"""

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from campaign import run_pack_or_print
from committed import RESULTS
from delayed import Gap, gap
from lead import Ratio, ratio_of, times
from locality import CONTROLS, SHORT, at
from standing import chance, ran, with_holm

from lser.cli.demo import ARMS, EARNS, ENDS, SAME, cells
from lser.cli.demo import OURS as RECOMMENDER
from lser.experiments import records
from lser.experiments.build import anchors
from lser.experiments.experiment import Experiment, from_json
from lser.experiments.studies import plan
from lser.experiments.study import Job, job_for
from lser.report.findings import LEVEL
from lser.report.stats import Interval, holm, mean_t, paired_difference
from lser.report.style import interval, listing, name_of

FILE = RESULTS / "generous.jsonl.gz"
COMMAND = "python results/generous.py run FOLDER"
OURS, WORLDS = "lser", 3
ALIKE, GENEROUS = 0.0, 2.0
FINAL, EARLY = "metric", "learning_metric"
MEMORIES, LEAD = "generosity", "generous-lead"  # the two halves
SEEDS, LEAD_SEEDS = range(240, 250), range(630, 642)
Scores = dict[int, float]  # by seed


def runs() -> list[Experiment]:
    """Every run, memories first, all arms of a seed together."""
    like = [
        one
        for one in plan("locality", "medium", 1)
        if one.label in (OURS, *CONTROLS)
        and (one.batch_size, one.agent.discount) == (32, 0.99)
        and (one.simulator.sparsity, one.simulator.state_dependence) == (0.02, 0.5)
    ]
    memories = [
        _at(one, generosity, seed, MEMORIES)
        for seed in SEEDS
        for generosity in (ALIKE, GENEROUS)
        for one in like
    ]
    return memories + [_at(o, GENEROUS, s, LEAD) for s in LEAD_SEEDS for o in cells(1_000, 1)]


def _at(one: Experiment, generosity: float, seed: int, study: str) -> Experiment:
    shop = replace(one.simulator, generosity=generosity, world_seed=seed % WORLDS)
    return replace(one, simulator=shop, seed=seed, study=study)


def jobs(folder: Path) -> list[Job]:
    """The same as jobs."""
    return [job_for(one, folder, COMMAND) for one in runs()]


def there() -> bool:
    """Whether it has run."""
    return FILE.exists()


@cache
def found() -> dict[tuple[str, float, str], dict[int, records.Record]]:
    """The runs by half, dial and arm, by seed."""
    by: dict[tuple[str, float, str], dict[int, records.Record]] = {}
    for run in records.find(FILE):
        key = run.study, run.experiment["simulator"]["generosity"], run.label
        by.setdefault(key, {})[run.seed] = run
    return by


def share(run: records.Record, ctr: float) -> float:
    """A CTR between random actions (0) and the oracle (1) of the run's own world."""
    random, oracle = anchors(from_json(dict(run.experiment))) or (None, None)
    assert random is not None
    assert oracle is not None
    return (ctr - random.score) / (oracle.score - random.score)


@cache
def shares(generosity: float, arm: str) -> Scores:
    """The share of the possible at 2,000 sessions of every seed."""
    return {s: share(r, at(r, SHORT)) for s, r in found()[MEMORIES, generosity, arm].items()}


@cache
def primary() -> dict[str, tuple[Gap, float]]:
    """LSER minus each control where users differ, with Holm's p over the three."""
    return with_holm({c: gap(shares(GENEROUS, OURS), shares(GENEROUS, c)) for c in CONTROLS})


def answer() -> str:
    """Whether locality pays there: above all three, below one, or neither."""
    kept = [one.mean.estimate for one, p in primary().values() if p <= LEVEL]
    if any(mean < 0 for mean in kept):
        return "costs"
    return "pays" if len(kept) == len(CONTROLS) else "open"


def change() -> Gap:
    """LSER's lead over uniform where users differ, minus that where they do not."""

    def lead(dial: float) -> Scores:
        theirs = shares(dial, "uniform")
        return {seed: ours - theirs[seed] for seed, ours in shares(dial, OURS).items()}

    return gap(lead(GENEROUS), lead(ALIKE))


def ends(arm: str, key: str) -> Scores:
    """What every run of an arm of the demo ended at, or earned while learning."""
    return {s: float((r.final or {})[key]) for s, r in found()[LEAD, GENEROUS, arm].items()}


def over(arm: str, key: str) -> Ratio:
    """How many times an arm's CTR the recommender has."""
    return ratio_of(ends(RECOMMENDER, key), ends(arm, key))


def leads() -> dict[str, tuple[Interval, float]]:
    """Over both bandits tuned to earn while learning, with Holm's p: the second primary test."""
    raw = [over(arm, EARLY) for arm in EARNS]
    corrected = holm([one.p for one in raw])
    return {a: (one.times, p) for a, one, p in zip(EARNS, raw, corrected, strict=True)}


def keeps() -> bool:
    """Whether the recommender leads both."""
    return all(lead.low > 1 and p <= LEVEL for lead, p in leads().values())


def _levels(generosity: float) -> str:
    means = {arm: np.mean(list(shares(generosity, arm).values())) for arm in (OURS, *CONTROLS)}
    return listing([f"{name_of(arm)} {mean:.2f}" for arm, mean in means.items()])


def reading() -> str:
    """What CC says in words; nothing before it has run."""
    if not there():
        return ""
    gaps = "; ".join(
        f"{name_of(c)} {interval(one.mean, sign=True)} ({chance(p)})"
        for c, (one, p) in primary().items()
    )
    ours = "; ".join(f"{arm} {times(lead)} ({chance(p)})" for arm, (lead, p) in leads().items())
    late = "; ".join(f"{arm} {times(over(arm, FINAL).times)}" for arm in ENDS)
    final, early = (
        mean_t(paired_difference(ends(RECOMMENDER, key), ends(SAME, key))) for key in (FINAL, EARLY)
    )
    answered = {"open": "is open"}.get(answer(), answer())
    kept = "keeps its lead" if keeps() else "does not surely keep its lead"
    return (
        "**Where users differ in how readily they click** (CC of the plan; Bazaar with "
        f"`generosity=2`, new seeds). *Memories* (batch 32, discount .99, sparsity .02, 2,000 "
        f"sessions, {len(SEEDS)} seeds in three worlds, shares of the possible): locality "
        f"**{answered}**; LSER minus each control, Holm over the three: {gaps}. Means "
        f"{_levels(GENEROUS)}; with equally ready users {_levels(ALIKE)}; LSER's lead over uniform "
        f"changes by {interval(change().mean, sign=True)} ({chance(change().p)}). *The "
        f"recommender* (the demo's settings, 1,000 sessions, {len(LEAD_SEEDS)} seeds), whose "
        "tastes of bounded length assume that users do not differ so, "
        f"**{kept}**: times the CTR of bandits tuned to "
        f"earn, while learning, Holm over the two: {ours}; at the end, times those tuned for it: "
        f"{late}. Its memory adds {interval(final, sign=True)} at the end and "
        f"{interval(early, sign=True)} while learning."
    )


def table() -> str:
    """Every arm of both halves."""
    lines = ["| | equally ready | differing |", "|---|---|---|"]
    for arm in (OURS, *CONTROLS):
        cells = (interval(mean_t(list(shares(d, arm).values()))) for d in (ALIKE, GENEROUS))
        lines.append(f"| {name_of(arm)}, share of the possible | {' | '.join(cells)} |")
    for label in (arm.label for arm in ARMS):
        final, early = (mean_t(list(ends(label, key).values())) for key in (FINAL, EARLY))
        said = f"{interval(final)} at the end, {interval(early)} while learning"
        lines.append(f"| {label}, CTR | | {said} |")
    return "\n".join(lines)


def block() -> str:
    """The words, the table and how the runs were made."""
    if not there():
        return ""
    return f"{reading()}\n\n{table()}\n\n{ran(records.find(FILE))}"


if __name__ == "__main__":
    run_pack_or_print(sys.argv[1:], lambda _, folder: jobs(folder), FILE, block)

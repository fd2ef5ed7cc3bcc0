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
from locality import CONTROLS, SHORT, at
from standing import chance, ran, with_holm

from lser.cli.demo import ARMS, EARNS, ENDS, SAME, cells
from lser.cli.demo import OURS as RECOMMENDER
from lser.experiments import records
from lser.experiments.experiment import Experiment
from lser.experiments.studies import plan
from lser.experiments.study import Job, job_for
from lser.report.findings import LEVEL
from lser.report.stats import Interval, holm, mean_t, paired_difference, paired_p
from lser.report.style import interval, listing, name_of
from lser.simulators.bazaar import Params
from lser.simulators.bazaar.oracle import myopic_score

FILE = RESULTS / "generous.jsonl.gz"
COMMAND = "python results/generous.py run FOLDER"
OURS, WORLDS = "lser", 3
ALIKE, GENEROUS = 0.0, 2.0
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
    shop = {key: x for key, x in run.experiment["simulator"].items() if key != "name"}
    shop["demographics"] = tuple(shop["demographics"])
    world = Params(**shop)
    return (ctr - world.sparsity) / (myopic_score(world).ctr - world.sparsity)


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
    leads = [
        paired_difference(shares(dial, OURS), shares(dial, "uniform")) for dial in (GENEROUS, ALIKE)
    ]
    both = [dict(zip(sorted(shares(ALIKE, OURS)), lead, strict=True)) for lead in leads]
    return gap(*both)


def lead(key: str, arm: str) -> tuple[Interval, float]:
    """How many times an arm's CTR the recommender has, geometric mean over seeds; and p."""
    ours, theirs = (found()[LEAD, GENEROUS, one] for one in (RECOMMENDER, arm))
    logs = [_log(ours[s], key) - _log(theirs[s], key) for s in ours]
    return Interval(*np.exp(mean_t(logs))), paired_p(logs)


def _log(run: records.Record, key: str) -> float:
    return float(np.log((run.final or {})[key]))


def leads() -> dict[str, tuple[Interval, float]]:
    """Over both bandits tuned to earn while learning, with Holm's p: the second primary test."""
    raw = {arm: lead("learning_metric", arm) for arm in EARNS}
    corrected = holm([p for _, p in raw.values()])
    return {arm: (times, p) for (arm, (times, _)), p in zip(raw.items(), corrected, strict=True)}


def keeps() -> bool:
    """Whether the recommender leads both."""
    return all(times.low > 1 and p <= LEVEL for times, p in leads().values())


def _times(value: Interval) -> str:
    return f"{value.estimate:.2f} [{value.low:.2f}, {value.high:.2f}]"


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
    ours = "; ".join(f"{arm} {_times(times)} ({chance(p)})" for arm, (times, p) in leads().items())
    ends = "; ".join(f"{arm} {_times(lead('metric', arm)[0])}" for arm in ENDS)
    final, early = (
        mean_t(paired_difference(_of(RECOMMENDER, key), _of(SAME, key)))
        for key in ("metric", "learning_metric")
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
        f"{ends}. Its memory adds {interval(final, sign=True)} at the end and "
        f"{interval(early, sign=True)} while learning."
    )


def _of(arm: str, key: str) -> Scores:
    return {s: float((r.final or {})[key]) for s, r in found()[LEAD, GENEROUS, arm].items()}


def table() -> str:
    """Every arm of both halves."""
    lines = ["| | equally ready | differing |", "|---|---|---|"]
    for arm in (OURS, *CONTROLS):
        cells = (interval(mean_t(list(shares(d, arm).values()))) for d in (ALIKE, GENEROUS))
        lines.append(f"| {name_of(arm)}, share of the possible | {' | '.join(cells)} |")
    for label in (arm.label for arm in ARMS):
        final, early = (mean_t(list(_of(label, k).values())) for k in ("metric", "learning_metric"))
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

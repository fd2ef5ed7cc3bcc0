"""Who wins when every memory is tuned alike: I of plan.md on new seeds.

``python results/tuned_alike.py run FOLDER PLACE PLACES`` makes every PLACES-th run at the settings
that `equal_tuning.py` chose, one after another, and goes on where it stood; ``pack FOLDER`` keeps
the arms that are complete in ``tuned_alike.jsonl.gz``; without arguments it prints every figure
from there.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import equal_tuning
import numpy as np
from campaign import run_pack_or_print
from committed import RESULTS, by_arm
from delayed import Gap, Scores, gap, verdict
from equal_tuning import DEFAULT, FIRST, MEMORIES, Setting, area, chosen, end, setting_of
from locality import share, signed, world_of
from standing import chance, ran, who_wins, with_holm

from lser.experiments import records
from lser.experiments.experiment import Experiment
from lser.experiments.presets import preset
from lser.experiments.study import Job, finished, job_for
from lser.report.stats import Interval, mean_t, welch
from lser.report.style import interval, listing, name_of

FILE = RESULTS / "tuned_alike.jsonl.gz"
STUDY = "tuned-alike"
COMMAND = "python results/tuned_alike.py run FOLDER"
OURS, BANDIT = "lser", "ridge"
SEEDS = range(130, 140)
PRESET = "{}, the preset's setting"
FALL = 0.1  # of the possible
SELDOM = 0.001  # updates a step: what is replayed does not change the bandit


def _run(memory: str, setting: Setting, seed: int, label: str) -> Experiment:
    one = equal_tuning.experiment(memory, setting, seed)
    return replace(one, study=STUDY, label=label, final_sessions=1_000)


def _bandit(seed: int) -> Experiment:
    """The linear bandit at its preset."""
    one, base = _run("uniform", DEFAULT, seed, BANDIT), preset("bazaar", "uniform", BANDIT)
    return replace(one, agent=base.agent, batch_size=base.batch_size, updates_per_step=SELDOM)


def stages() -> list[list[Experiment]]:
    """The runs in their order: each stage is whole before the next begins, seed by seed."""
    settings = chosen()
    some = [memory for memory in MEMORIES[:FIRST] if memory in settings]
    others = [memory for memory in MEMORIES[FIRST:] if memory in settings]
    first = [
        one
        for seed in SEEDS
        for one in (*(_run(m, settings[m], seed, m) for m in some), _bandit(seed))
    ]
    rest = [[_run(m, settings[m], seed, m) for seed in SEEDS] for m in others]
    before = [
        [_run(memory, DEFAULT, seed, PRESET.format(memory)) for seed in SEEDS]
        for memory in (OURS, "uniform")
        if settings[memory] != DEFAULT
    ]
    return [first, *rest, *before]


def jobs(folder: Path) -> list[Job]:
    """Every run, in the order of the stages."""
    return [job_for(one, folder, COMMAND) for stage in stages() for one in stage]


def whole(found: Sequence[Job]) -> list[Job]:
    """The runs of those arms that have all their seeds."""
    ended = [job for job in found if finished(job)]
    arms = [job.experiment["label"] for job in ended]
    return [job for job in ended if arms.count(job.experiment["label"]) == len(SEEDS)]


def there() -> bool:
    """Whether it has run."""
    return FILE.exists()


@cache
def runs() -> dict[str, dict[int, records.Record]]:
    """The committed runs, by arm and seed."""
    return by_arm(FILE)


def memories() -> list[str]:
    """The memories that were compared."""
    return [memory for memory in MEMORIES if memory in runs()]


def scores(arm: str, score: Callable[[records.Record], float] = end) -> Scores:
    """The share of the possible of every run, at the end or of its curve."""
    return {seed: score(run) for seed, run in runs()[arm].items()}


def mean(arm: str, score: Callable[[records.Record], float] = end) -> Interval:
    """Its mean over seeds."""
    return mean_t(list(scores(arm, score).values()))


def leads(score: Callable[[records.Record], float] = end) -> dict[str, tuple[Gap, float]]:
    """LSER minus every other memory, each at its own setting, with Holm's p."""
    ours = scores(OURS, score)
    return with_holm({m: gap(ours, scores(m, score)) for m in memories() if m != OURS})


def below(memory: str) -> bool:
    """Whether LSER ends below a memory; not before it has run."""
    return there() and verdict(leads()[memory][0].mean, leads()[memory][1]) == "below"


def outcome() -> str:
    """Who wins, by the rule of the plan."""
    return who_wins(leads())


def fell(run: records.Record) -> bool:
    """Whether a run ends more than a tenth of the possible below its best point."""
    return max(share(run, point["metric"]) for point in run.curve) - end(run) > FALL


def known(policy: str) -> float:
    """A known policy's share of the possible, the mean over the seeds' worlds."""
    found = []
    for run in runs()[OURS].values():
        simulator = run.experiment["simulator"]
        dials = simulator["sparsity"], simulator["state_dependence"], simulator["world_seed"]
        found.append(share(run, world_of(*dials)[policy]))
    return float(np.mean(found))


def _told(found: dict[str, tuple[Gap, float]]) -> str:
    return "; ".join(
        f"{name_of(m)} {signed(one.mean)} ({verdict(one.mean, p)}, {chance(p)})"
        for m, (one, p) in found.items()
    )


def reading() -> str:
    """What I says in words, the grid first; nothing before it has run."""
    return "\n\n".join(filter(None, (equal_tuning.reading(), comparison())))


def comparison() -> str:
    """What the comparison says in words; nothing before it has run."""
    if not there():
        return ""
    ends = sorted(memories(), key=lambda memory: -mean(memory).estimate)
    means = listing([f"{name_of(memory)} {mean(memory).estimate:.2f}" for memory in ends])
    fallen = listing([f"{name_of(m)} {sum(map(fell, runs()[m].values()))}" for m in ends])
    missing = [name_of(memory) for memory in MEMORIES if memory not in memories()]
    return (
        "**Who wins when all are tuned alike** (I of the plan; Bazaar at the preset's dials, "
        f"{equal_tuning.SESSIONS:,} sessions, each memory at the noise, batch and discount that "
        f"suited it best on the tuning seeds, {len(SEEDS)} new seeds; final share of the "
        f"possible). The primary test: **{outcome()}**. LSER minus each, Holm over the "
        f"{len(ends) - 1}: {_told(leads())}. Means: {means}; beside them random actions 0, the "
        f"best constant {known('constant'):.2f}, the linear bandit at its preset "
        f"{mean(BANDIT).estimate:.2f} and the oracle 1. Over training (area under the curve), Holm "
        f"over as many: {_told(leads(area))}. Runs that end more than a tenth of the possible "
        f"below their best, of {len(SEEDS)}: {fallen}.{_before()}"
        + (f" Not run: {listing(missing)}." if missing else "")
    )


def in_short() -> str:
    """What the front page says of it; nothing before it has run."""
    if not there():
        return ""
    ours, theirs = (mean(memory).estimate for memory in (OURS, "uniform"))
    arms = at_the_preset()
    before = f" (at the preset's setting of that time {signed(_gap(*arms))})" if arms else ""
    return (
        f"On Bazaar, with all tuned alike ({len(SEEDS)} new seeds, {equal_tuning.SESSIONS:,} "
        f"sessions), {outcome()}; LSER has {ours:.2f} of the possible and uniform {theirs:.2f}, "
        f"{signed(leads()['uniform'][0].mean)}{before}, a linear bandit "
        f"{mean(BANDIT).estimate:.2f}."
    )


def at_the_preset() -> tuple[str, str] | None:
    """The arms of LSER and uniform at the preset's setting, where both have run."""
    found = [arm for m in (OURS, "uniform") if (arm := _preset_arm(m)) is not None]
    return (found[0], found[1]) if len(found) == 2 else None


def _preset_arm(memory: str) -> str | None:
    if memory in runs() and setting_of_arm(memory) == DEFAULT:
        return memory
    return arm if (arm := PRESET.format(memory)) in runs() else None


def _gap(ours: str, theirs: str) -> Interval:
    return gap(scores(ours), scores(theirs)).mean


def _before() -> str:
    """The same two memories at the preset's setting, in words."""
    arms = at_the_preset()
    if arms is None:
        return ""
    ours, theirs = (mean(arm).estimate for arm in arms)
    return (
        f" At the preset's setting of that time ({DEFAULT.words}; no test) LSER has {ours:.2f} "
        f"and uniform {theirs:.2f}, LSER minus uniform {signed(_gap(*arms))}."
    )


def setting_of_arm(arm: str) -> Setting:
    """What an arm was given."""
    return setting_of(next(iter(runs()[arm].values())))


def table() -> str:
    """Every memory at its setting, the best first, and the bandit."""
    lines = [
        "| memory | setting | final share [95 %] | worst run | area | LSER minus it [95 %] | "
        "Welch | p after Holm |",
        "|" + "---|" * 8,
    ]
    found = leads()
    for arm in sorted(runs(), key=lambda arm: -mean(arm).estimate):
        memory, *setting = arm.split(", ")
        row = [
            ", ".join([name_of(memory), *(f"{one} of that time" for one in setting)]),
            "" if arm == BANDIT else setting_of_arm(arm).words,
            interval(mean(arm), digits=3),
            f"{min(scores(arm).values()):.3f}",
            f"{mean(arm, area).estimate:.3f}",
            *(_minus(arm) if arm in (*found, BANDIT) else ("", "")),
            chance(found[arm][1]) if arm in found else "",
        ]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def _minus(arm: str) -> tuple[str, str]:
    """LSER minus an arm at the end, paired and by Welch."""
    ours, theirs = scores(OURS), scores(arm)
    return signed(gap(ours, theirs).mean), signed(welch(list(ours.values()), list(theirs.values())))


def block() -> str:
    """Every figure, the comparison first; nothing before it has run."""
    own = (comparison(), table(), ran(records.find(FILE))) if there() else ()
    return "\n\n".join(filter(None, (*own, equal_tuning.block())))


def wanted(verb: str, folder: Path) -> list[Job]:
    """What to run, or what of it to pack."""
    return jobs(folder) if verb == "run" else whole(jobs(folder))


if __name__ == "__main__":
    run_pack_or_print(sys.argv[1:], wanted, FILE, block)

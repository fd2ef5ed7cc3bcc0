"""Every memory tuned alike on Bazaar: the grid of I in plan.md, and what it chooses.

``python results/equal_tuning.py run FOLDER PLACE PLACES`` makes every PLACES-th run, one after
another, and goes on where it stood; ``pack FOLDER`` keeps what is finished in
``equal_tuning.jsonl.gz``; without arguments it prints every figure from there. `tuned_alike.py`
compares the memories at the settings that are chosen here.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from campaign import run_pack_or_print
from committed import RESULTS
from locality import share
from standing import ran

from lser.experiments import records
from lser.experiments.experiment import Experiment
from lser.experiments.presets import earlier_bazaar, lasting, preset
from lser.experiments.study import Job, job_for
from lser.report.panels import columns
from lser.report.stats import area_under_curve
from lser.report.style import listing, name_of

FILE = RESULTS / "equal_tuning.jsonl.gz"
STUDY = "equal-tuning"
COMMAND = "python results/equal_tuning.py run FOLDER"
MEMORIES = ("uniform", "lser", "reward-top", "shuffled-code", "per", "aer", "ser", "der", "her")
FIRST = 5  # memories that run side by side; the others follow one by one
SEEDS = range(200, 203)
SESSIONS, EVERY, WORLDS = 1_500, 150, 3


class Setting(NamedTuple):
    """What every memory is offered."""

    noise: float
    batch: int
    discount: float

    @property
    def words(self) -> str:
        """The setting in words."""
        return f"noise {self.noise:g}, batch {self.batch}, discount {self.discount:g}"


GRID = tuple(Setting(*one) for one in product((0.1, 0.3, 1.0), (32, 128), (0.0, 0.9, 0.99)))
DEFAULT = Setting(1.0, 128, 0.99)  # of the preset then
Held = dict[tuple[str, Setting], dict[int, records.Record]]  # by memory and setting, then seed


def experiment(memory: str, setting: Setting, seed: int) -> Experiment:
    """A run of Bazaar at its preset dials, in the world that comes with the seed."""
    one = earlier_bazaar(lasting(preset("bazaar", memory, "ddpg"), SESSIONS))
    agent = replace(one.agent, noise_scale=setting.noise, discount=setting.discount)
    return replace(
        one,
        simulator=replace(one.simulator, world_seed=seed % WORLDS),
        agent=agent,
        batch_size=setting.batch,
        evaluate_every=EVERY,
        final_sessions=500,
        seed=seed,
        study=STUDY,
        label=f"{memory}, {setting.words}",
    )


def jobs(folder: Path) -> list[Job]:
    """The grid seed by seed: of the first memories together, then of one memory after another."""
    groups = (MEMORIES[:FIRST], *((memory,) for memory in MEMORIES[FIRST:]))
    return [
        job_for(experiment(memory, setting, seed), folder, COMMAND)
        for group in groups
        for seed, memory, setting in product(SEEDS, group, GRID)
    ]


def there() -> bool:
    """Whether it has run."""
    return FILE.exists()


def setting_of(run: records.Record) -> Setting:
    """What a run was given."""
    agent = run.experiment["agent"]
    return Setting(agent["noise_scale"], run.experiment["batch_size"], agent["discount"])


@cache
def held() -> Held:
    """The runs that ended."""
    found: Held = {}
    for run in records.find(FILE):
        memory = run.label.split(",")[0]
        found.setdefault((memory, setting_of(run)), {})[run.seed] = run
    return found


@cache
def tuned() -> tuple[str, ...]:
    """The memories whose grid is complete."""
    return tuple(
        memory
        for memory in MEMORIES
        if all(set(SEEDS) <= set(held().get((memory, one), {})) for one in GRID)
    )


def area(run: records.Record) -> float:
    """The area under a run's curve of evaluations, as a share of the possible."""
    return share(run, area_under_curve(*columns(run)))


def end(run: records.Record) -> float:
    """The share of the possible at the end."""
    return share(run, (run.final or {})["metric"])


def mean_area(memory: str, setting: Setting) -> float:
    """The mean area over the tuning seeds."""
    return float(np.mean([area(held()[memory, setting][seed]) for seed in SEEDS]))


def mean_end(memory: str, setting: Setting) -> float:
    """The mean share at the end over the tuning seeds."""
    return float(np.mean([end(held()[memory, setting][seed]) for seed in SEEDS]))


@cache
def chosen() -> dict[str, Setting]:
    """The setting with the largest area under the curve, for every memory that is tuned."""
    return {memory: max(GRID, key=partial(mean_area, memory)) for memory in tuned()}


def reading() -> str:
    """What the grid says in words; nothing before it has run."""
    if not there():
        return ""
    cut = [name_of(memory) for memory in MEMORIES if memory not in tuned()]
    groups: dict[Setting, list[str]] = {}
    for memory, setting in chosen().items():
        groups.setdefault(setting, []).append(name_of(memory))
    best = "; ".join(f"{one.words}: {listing(names)}" for one, names in groups.items())
    lost = {memory: _lost(memory) for memory in tuned()}
    least, most = min(lost, key=lost.__getitem__), max(lost, key=lost.__getitem__)
    return (
        f"**Equal tuning** (I of the plan, its Bazaar half; {SESSIONS:,} sessions at the preset's "
        f"dials, {len(GRID)} settings of noise, batch and discount for each of {len(lost)} "
        f"memories and controls, {len(SEEDS)} tuning seeds that nothing else uses). The largest "
        f"area under the curve has {best}. The preset's setting of that time ({DEFAULT.words}) "
        f"loses {lost[least]:.2f} of the possible on average over training ({name_of(least)}) to "
        f"{lost[most]:.2f} ({name_of(most)})."
        + (f" Cut for time: {listing(cut)}." if cut else "")
        + " Of a grid the best of few seeds flatters itself: what the settings are worth is for "
        "the new seeds to say."
    )


def _lost(memory: str) -> float:
    """What the preset's setting has less under the curve than the one chosen."""
    return mean_area(memory, chosen()[memory]) - mean_area(memory, DEFAULT)


def table() -> str:
    """A row for every memory: what is chosen, and what the preset's setting loses."""
    lines = [
        "| memory | noise | batch | discount | area | final share | final CTR | "
        "preset of that time: area | final share | area lost |",
        "|" + "---|" * 10,
    ]
    for memory, best in chosen().items():
        finals = [(held()[memory, best][s].final or {})["metric"] for s in SEEDS]
        row = [
            *(name_of(memory), f"{best.noise:g}", str(best.batch), f"{best.discount:g}"),
            *(f"{mean_area(memory, best):.3f}", f"{mean_end(memory, best):.3f}"),
            f"{np.mean(finals):.3f}",
            *(f"{mean_area(memory, DEFAULT):.3f}", f"{mean_end(memory, DEFAULT):.3f}"),
            f"{_lost(memory):.3f}",
        ]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def whole_grid() -> str:
    """The area under the curve of every setting and memory; what is chosen is bold."""
    return grid_table(chosen(), mean_area)


def grid_table(best: Mapping[str, Setting], score: Callable[[str, Setting], float]) -> str:
    """A score of every setting and memory; that of the best setting is bold."""
    lines = [
        "| noise | batch | discount | " + " | ".join(map(name_of, best)) + " |",
        "|" + "---|" * (3 + len(best)),
    ]
    for one in GRID:
        scores = {memory: f"{score(memory, one):.3f}" for memory in best}
        cells = [f"**{scores[m]}**" if best[m] == one else scores[m] for m in best]
        row = [f"{one.noise:g}", str(one.batch), f"{one.discount:g}", *cells]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def block() -> str:
    """Every figure; nothing before it has run."""
    if not there():
        return ""
    return "\n\n".join(
        [
            reading(),
            "Areas and final scores are means over the tuning seeds, in shares of the possible:",
            table(),
            '<details markdown="1"><summary>The whole grid: area under the curve</summary>',
            whole_grid(),
            "</details>",
            f"{ran(records.find(FILE))}",
        ]
    )


if __name__ == "__main__":
    run_pack_or_print(sys.argv[1:], lambda _, folder: jobs(folder), FILE, block)

"""Does the recommender keep its lead as patience and drift grow: P in plan.md.

``python results/lead.py run FOLDER`` makes the runs, one after another, and goes on where it
stood; ``python results/lead.py pack FOLDER`` writes ``lead_bounded.jsonl.gz``; without arguments it
prints every figure from there. N, the same with the click model of L, is in ``lead.jsonl.gz``.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from campaign import carry_out
from committed import RESULTS

from lser.cli.demo import EARNS, ENDS, OURS, SAME, STATE_DEPENDENCE, cells
from lser.experiments import records
from lser.experiments.experiment import Experiment
from lser.experiments.study import job_for
from lser.report.stats import Interval, holm, mean_t, paired_difference, paired_p

FIRST_SEED, SEEDS, WORLDS, SESSIONS = 610, 4, 3, 1_000
FILE = RESULTS / "lead_bounded.jsonl.gz"
TARGET = 1.1


class Dial(NamedTuple):
    """Where the bazaar stands."""

    patience: float
    drift: float

    @property
    def words(self) -> str:
        """The dial in words."""
        return f"patience {self.patience:g}, drift {self.drift:g}"


HOME = Dial(3.0, 0.05)  # the demo's
PATIENT = (Dial(6.0, 0.05), Dial(9.0, 0.05))
DRIFTING = (Dial(3.0, 0.1), Dial(3.0, 0.2))
DIALS = (HOME, *PATIENT, *DRIFTING)
GROWN = (*PATIENT, *DRIFTING)


def runs(first: int = FIRST_SEED, seeds: int = SEEDS) -> Iterator[Experiment]:
    """Every run of P: all dials and arms of a seed before the next, uniform replay at the end."""
    arms = cells(SESSIONS, 1)
    stages = [a for a in arms if a.label != SAME], [a for a in arms if a.label == SAME]
    for stage, seed, dial in product(stages, range(first, first + seeds), DIALS):
        for arm in stage:
            shop = replace(arm.simulator, **dial._asdict(), world_seed=seed % WORLDS)
            yield replace(arm, simulator=shop, seed=seed, study="lead-bounded")


Scores = dict[tuple[Dial, str], dict[int, float]]  # by dial and arm, by seed


class Lead(NamedTuple):
    """What every run ended at, what it earned while learning, and its clicks per session."""

    final: Scores
    learning: Scores
    clicks: Scores


@cache
def lead() -> Lead:
    """The committed runs."""
    found = Lead({}, {}, {})
    for run in records.find(FILE):
        simulator = run.experiment["simulator"]
        key = Dial(simulator["patience"], simulator["drift"]), run.label
        assert run.final is not None
        names = ("metric", "learning_metric", "reward")
        for scores, name in zip(found, names, strict=True):
            scores.setdefault(key, {})[run.seed] = float(run.final[name])
    return found


class Ratio(NamedTuple):
    """How many times the CTR of an arm the recommender has: the geometric mean over seeds."""

    times: Interval
    p: float
    seeds: int


def logs(ours: Mapping[int, float], theirs: Mapping[int, float]) -> dict[int, float]:
    """The logarithm of the ratio, of every seed that both have."""
    return {seed: float(np.log(ours[seed] / theirs[seed])) for seed in ours if seed in theirs}


def ratio_of(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Ratio:
    """Some runs over others."""
    found = list(logs(ours, theirs).values())
    return Ratio(Interval(*np.exp(mean_t(found))), paired_p(found), len(found))


def ratio(scores: Scores, dial: Dial, arm: str) -> Ratio:
    """The recommender over an arm at a dial."""
    return ratio_of(scores[dial, OURS], scores[dial, arm])


def change(scores: Scores, arm: str, grown: Dial) -> Ratio:
    """The lead at a grown dial as a multiple of the lead at the demo's, per seed."""
    both = [logs(scores[dial, OURS], scores[dial, arm]) for dial in (grown, HOME)]
    gaps = paired_difference(*both)
    return Ratio(Interval(*np.exp(mean_t(gaps))), paired_p(gaps), len(gaps))


def primary() -> dict[Dial, tuple[Ratio, float]]:
    """CTR while learning over that of the linear bandit tuned to earn, with Holm's p."""
    found = [ratio(lead().learning, dial, EARNS[0]) for dial in GROWN]
    corrected = holm([one.p for one in found])
    return dict(zip(GROWN, zip(found, corrected, strict=True), strict=True))


def holds() -> bool:
    """Whether the recommender leads at every grown dial, after Holm."""
    return all(one.times.low > 1 and p <= 0.05 for one, p in primary().values())


def times(value: Interval) -> str:
    """A ratio with its interval."""
    return f"{value.estimate:.2f} [{value.low:.2f}, {value.high:.2f}]"


def table() -> str:
    """The recommender over every bandit at every dial, while learning and at the end."""
    arms = (EARNS[0], EARNS[1], ENDS[0], ENDS[1])
    lines = [
        f"| dial | CTR while learning | over {arms[0]} | over {arms[1]} | CTR at the end | "
        f"over {arms[2]} | over {arms[3]} | memory adds, at the end |",
        "|" + "---|" * 8,
    ]
    for dial in DIALS:
        found = lead()
        row = [
            dial.words,
            f"{_mean(found.learning[dial, OURS]):.3f}",
            *(times(ratio(found.learning, dial, arm).times) for arm in arms[:2]),
            f"{_mean(found.final[dial, OURS]):.3f}",
            *(times(ratio(found.final, dial, arm).times) for arm in arms[2:]),
            _added(dial),
        ]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def _added(dial: Dial) -> str:
    """What the memory adds at the end, where uniform replay has run."""
    found = lead().final
    if (dial, SAME) not in found:
        return "not run"
    added = mean_t(paired_difference(found[dial, OURS], found[dial, SAME]))
    return f"{added.estimate:+.3f} [{added.low:+.3f}, {added.high:+.3f}]"


def reading() -> str:
    """What P says in words."""
    found = lead()
    tested = primary()
    at_home = ratio(found.learning, HOME, EARNS[0])
    grown = "; ".join(f"{dial.words} {times(one.times)}" for dial, (one, _) in tested.items())
    least = min(one.times.estimate for one, _ in tested.values())
    outcome = "**holds**" if holds() else "**does not hold**"
    enough = "1.1 or more at each of them" if least >= TARGET else "less than 1.1 at some of them"
    ends = "; ".join(f"{d.words} {times(ratio(found.final, d, ENDS[0]).times)}" for d in DIALS)
    pages = "; ".join(f"{d.words} {times(ratio(found.learning, d, EARNS[1]).times)}" for d in GROWN)
    return (
        "**The lead as patience and drift grow** (P of the plan; Bazaar at the demo's dial, 1,000 "
        f"sessions, {at_home.seeds} seeds in three worlds, geometric means of ratios over seeds). "
        f"The primary test, that LSER's recommender keeps its lead, {outcome}: while learning it "
        "has, times the CTR of the linear bandit tuned to earn, at the demo's own dial "
        f"{times(at_home.times)}; {grown}; {enough}. Over the bandit on pages tuned to earn: "
        f"{pages}. At the end, over the linear bandit tuned for the end: {ends}. The bandits were "
        "tuned at the demo's dial and not again."
    )


def worlds_table() -> str:
    """CTR of every arm at the end as a share of the possible, and of the known policies."""
    arms = [arm for arm in (OURS, SAME, *EARNS, *ENDS) if (HOME, arm) in lead().final]
    heads = " | ".join((*arms, "shared taste for everybody", "knows demographics"))
    lines = [f"| dial | {heads} |", "|---" * (len(arms) + 3) + "|"]
    for dial in DIALS:
        shares = {arm: _share(dial, arm) for arm in arms}
        known = [_known(dial, seed) for seed in lead().final[dial, OURS]]
        fixed = [float(np.mean([one[name] for one in known])) for name in ("constant", "informed")]
        cells = [f"{value:.2f}" for value in (*shares.values(), *fixed)]
        lines.append(f"| {dial.words} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _share(dial: Dial, arm: str) -> float:
    """The mean place of an arm's runs between random actions and the oracle of their worlds."""
    found = []
    for seed, ctr in lead().final[dial, arm].items():
        world = _world(dial, seed)
        found.append((ctr - world["random"]) / (world["oracle"] - world["random"]))
    return float(np.mean(found))


def _known(dial: Dial, seed: int) -> dict[str, float]:
    """The same of policies that learn nothing."""
    world = _world(dial, seed)
    span = world["oracle"] - world["random"]
    return {name: (world[name] - world["random"]) / span for name in ("constant", "informed")}


@cache
def _world(dial: Dial, seed: int) -> dict[str, float]:
    rows: list[dict[str, float]] = json.loads((RESULTS / "worlds.json").read_text())
    wanted = {**dial._asdict(), "sparsity": 0.02, "state_dependence": STATE_DEPENDENCE}
    wanted["world_seed"] = seed % WORLDS
    usual = HOME._asdict()
    [found] = [
        row
        for row in rows
        if all(row.get(name, usual.get(name)) == value for name, value in wanted.items())
    ]
    return found


def block() -> str:
    """The words and the tables."""
    return (
        f"{reading()}\n\n{table()}\n\nFinal CTR as a share of the possible (0 random actions, 1 "
        f"the myopic oracle, of each world):\n\n{worlds_table()}"
    )


def _mean(scores: dict[int, float]) -> float:
    return sum(scores.values()) / len(scores)


def main(words: list[str]) -> None:
    """Run, pack, or print every figure."""
    if words:
        verb, folder = words[0], Path(words[1])
        jobs = [job_for(run, folder, "python results/lead.py run FOLDER") for run in runs()]
        carry_out(verb, jobs, FILE)
        return
    for dial, (found, p) in primary().items():
        print(f"{dial.words}: {times(found.times)}, p = {found.p:.2g}, Holm {p:.2g}")
    for arm, dial in product((EARNS[0], ENDS[0]), GROWN):
        found = change(lead().learning, arm, dial)
        print(f"lead over {arm}, {dial.words} over home, learning: {times(found.times)}")
    for (dial, arm), clicks in lead().clicks.items():
        print(f"clicks per session, {dial.words}, {arm}: {_mean(clicks):.1f}")
    print(block())


if __name__ == "__main__":
    main(sys.argv[1:])

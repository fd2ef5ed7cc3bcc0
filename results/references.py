"""What the simplest agents score on every platform: lines for figures and tables.

``python results/references.py`` trains those that ``results/references.json`` lacks, at the
settings of the comparison, each with two seeds of its own, and the linear bandit in the worlds of
D, and writes them there. The numbers of the paper's platforms stand in
``lser.experiments.studies.platforms``, and a test holds them equal.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from committed import RESULTS

import lser
from lser.catalogue import SIMULATORS
from lser.experiments.experiment import Experiment
from lser.experiments.presets import lasting, learnable, preset
from lser.experiments.studies import REWARD, scale_of

FILE = RESULTS / "references.json"
SEEDS = (700, 701)
AGENTS = ("random", "popular", "constant", "ridge", "ridge-thompson")
SESSIONS = {  # what a linear bandit needs; what it learns in more is next to nothing
    "long-term-satisfaction": 300,
    "interest-evolution": 300,
    "recogym": 1_000,
    "virtual-taobao": 1_000,
}
SELDOM = 0.001  # what is replayed changes none of these agents


def runs() -> Iterator[tuple[str, Experiment]]:
    """Every run, with the name of its platform; the widest regressions last."""
    for sparsity, dependence, world in product((0.005, 0.02), (0.0, 0.5, 1.0), range(3)):
        dials = {"sparsity": sparsity, "state_dependence": dependence, "world_seed": world}
        run = lasting(preset("bazaar", "uniform", "ridge"), 2_000)
        yield (
            bazaar(sparsity, dependence, world),
            replace(run, simulator=SIMULATORS["bazaar"].params(**dials)),
        )
    for (platform, sessions), agent in product(SESSIONS.items(), AGENTS):
        run = lasting(preset(platform, "uniform", agent, scale="medium"), sessions)
        yield platform, run
        if platform == "long-term-satisfaction":
            world = learnable(platform).simulator
            yield f"{platform}, informative", replace(run, simulator=world, horizon="session")


def bazaar(sparsity: float, dependence: float, world: int) -> str:
    """What a world of D is called here."""
    return f"bazaar, sparsity {sparsity:g}, state dependence {dependence:g}, world {world}"


def score(run: Experiment) -> dict[str, float]:
    """The platform's metric and the reward per step of a trained agent on fresh users."""
    made = lser.build(run)
    for step in lser.train(
        made.env,
        made.agent,
        made.replay,
        batch_size=run.batch_size,
        updates_per_step=SELDOM,
        seed=made.seeds.users,
    ):
        if step.sessions >= run.sessions:
            break
    sessions = 2_000 if run.names[0] == "recogym" else 500
    fresh = lser.evaluate(made.agent, made.evaluation_env, sessions=sessions, seed=made.seeds.final)
    return {"metric": round(fresh.metric, 5), "reward": round(fresh.reward / fresh.length, 5)}


def table() -> str:
    """What every policy without a memory scores on every platform, and what is not known."""
    rows = json.loads(FILE.read_text())
    heads = ("random", "popular", "learned constant", "linear bandit", "the same, Thompson")
    lines = [
        f"| platform | {' | '.join(heads)} | neural bandit | best constant | best known |",
        "|" + "---|" * (len(heads) + 4),
    ]
    for name, platform, metric, key in SHOWN:
        known = scale_of({"simulator": platform}, metric)
        assert known is not None
        cells = []
        for agent in AGENTS:
            found = [r[key] for r in rows if (r["platform"], r["agent"]) == (name, agent)]
            cells.append(f"{sum(found) / len(found):.4g}")
        neural = [p.score for p in known.others if p.name == "neural bandit"] or [""]
        constant = known.constant.score if known.constant else ""
        shown = (
            f"{name}, {metric.replace('_', ' ')}",
            *cells,
            neural[0],
            constant,
            known.best.score,
        )
        lines.append("| " + " | ".join(map(str, shown)) + " |")
    return "\n".join(lines)


_LONG, _INTERESTS = "long-term-satisfaction", "interest-evolution"
SHOWN = (  # name, simulator, metric, and where the score stands
    ("virtual-taobao", {"name": "virtual-taobao"}, "ctr", "metric"),
    (_LONG, {"name": _LONG}, "reward_per_step", "metric"),
    (f"{_LONG}, informative", {"name": _LONG, "sensitivity": 0.1}, "reward_per_step", "metric"),
    (_INTERESTS, {"name": _INTERESTS}, "quality", "metric"),
    (_INTERESTS, {"name": _INTERESTS}, REWARD, "reward"),
    ("recogym", {"name": "recogym"}, "ctr", "metric"),
)


def main() -> None:
    """Train what is missing."""
    rows = json.loads(FILE.read_text()) if FILE.exists() else []
    have = {(row["platform"], row["agent"], row["seed"]) for row in rows}
    for (platform, run), seed in product(runs(), SEEDS):
        agent = run.names[2]
        if (platform, agent, seed) in have or (platform.startswith("bazaar") and seed != SEEDS[0]):
            continue
        found = score(replace(run, seed=seed))
        rows.append(
            {"platform": platform, "agent": agent, "sessions": run.sessions, "seed": seed, **found}
        )
        FILE.write_text("[\n " + ",\n ".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()

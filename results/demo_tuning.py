"""Choose the settings of the demo's arms on worlds and seeds of their own: `demo_tuning.json`.

The grid, the seeds and the rule are in plan.md, L. python results/demo_tuning.py [first [last]]
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import lser
from lser.catalogue import AGENTS, SIMULATORS
from lser.experiments.experiment import Experiment
from lser.experiments.presets import lasting, preset, steady

OUT = Path(__file__).with_name("demo_tuning.json")
WORLDS, SEEDS, SESSIONS = (10, 11), (300, 301, 302), 1_000
GAUSSIAN = [{"noise": n, "thompson": 0.0} for n in (0.25, 0.5, 1.0, 2.0)]
THOMPSON = [{"noise": 0.0, "thompson": t} for t in (0.5, 1.0, 2.0)]


def grid() -> Iterator[tuple[str, dict[str, float]]]:
    """Every agent with its settings."""
    for prior, thompson in ((10.0, 2.0), (10.0, 4.0)):
        yield "click-model", {"prior": prior, "thompson": thompson}
    for ridge in (1.0, 10.0):
        for exploring in (*GAUSSIAN[1:], *THOMPSON[1:]):
            yield "ridge-pages", {"ridge": ridge, **exploring}
    for ridge in (0.1, 1.0, 10.0):
        for exploring in (*GAUSSIAN[: 3 if ridge == 0.1 else 4], *THOMPSON):
            yield "ridge", {"ridge": ridge, **exploring}


def run_of(agent: str, knobs: dict[str, float], world: int, seed: int) -> Experiment:
    """One run of the grid; what a bandit replays changes nothing, so it hardly replays."""
    run = steady(lasting(preset("bazaar", "uniform", agent), SESSIONS))
    simulator = SIMULATORS["bazaar"].params(state_dependence=0.75, world_seed=world)
    often = 1.0 if agent == "click-model" else 0.001
    params = AGENTS[agent].params(**knobs)
    return replace(run, simulator=simulator, agent=params, seed=seed, updates_per_step=often)


def score(run: Experiment) -> tuple[float, float]:
    """CTR at the end on fresh users, and while learning."""
    made = lser.build(run)
    clicks, steps = 0.0, 0
    loop = lser.train(
        made.env,
        made.agent,
        made.replay,
        batch_size=run.batch_size,
        updates_per_step=run.updates_per_step,
        seed=made.seeds.users,
    )
    for step in loop:
        clicks, steps = clicks + float(step.reward.sum()), step.steps
        if step.sessions >= run.sessions:
            break
    fresh = lser.evaluate(made.agent, made.evaluation_env, sessions=1_000, seed=made.seeds.final)
    return fresh.metric, clicks / (10 * steps)


def main(first: int, last: int) -> None:
    """Run the settings from `first` to before `last`, keeping what is already there."""
    found = json.loads(OUT.read_text())["runs"] if OUT.exists() else []
    have = {(one["agent"], json.dumps(one["settings"]), one["world"], one["seed"]) for one in found}
    for agent, knobs in list(grid())[first:last]:
        for world in WORLDS:
            for seed in SEEDS[:2] if agent == "click-model" else SEEDS:
                if (agent, json.dumps(knobs), world, seed) in have:
                    continue
                final, learning = score(run_of(agent, knobs, world, seed))
                one = {"agent": agent, "settings": knobs, "world": world, "seed": seed}
                found.append({**one, "final": round(final, 5), "learning": round(learning, 5)})
        OUT.write_text(json.dumps({"chosen": chosen(found), "runs": found}, indent=0) + "\n")


def chosen(found: list[dict]) -> dict[str, dict]:
    """For each agent the setting that ends highest and the one that earns most while learning."""
    runs = defaultdict(lambda: defaultdict(list))
    for one in found:
        runs[one["agent"]][json.dumps(one["settings"])].append((one["final"], one["learning"]))
    best = {}
    for agent, settings in runs.items():
        means = {
            text: [sum(c) / len(c) for c in zip(*rows, strict=False)]
            for text, rows in settings.items()
        }
        for at, goal in enumerate(("end", "earning")):
            text = max(means, key=lambda text, at=at: means[text][at])
            scores = dict(
                zip(("final", "learning"), [round(m, 4) for m in means[text]], strict=False)
            )
            best.setdefault(agent, {})[goal] = {"settings": json.loads(text), **scores}
    return best


if __name__ == "__main__":
    bounds = [int(text) for text in sys.argv[1:3]]
    main(*([*bounds, 10_000][:2] if bounds else (0, 10_000)))

"""The demo: every arm on the same users, fresh seeds, an honest word on what the memory adds."""

import json
from pathlib import Path

from lser.cli.demo import ARMS, EARNS, ENDS, FIRST_SEED, OURS, SAME, cells, verdict
from lser.experiments.experiment import to_json
from lser.experiments.records import Record

ROOT = Path(__file__).resolve().parents[2]


def test_arms_differ_in_agent_and_memory_alone_and_seeds_are_new():
    runs = cells(1_000, 2)
    assert len(runs) == 2 * len(ARMS)
    assert {run.seed for run in runs} == {700, 701}
    assert {run.simulator.world_seed for run in cells(9, 1, world=2)} == {2}
    plain = [to_json(run) for run in runs]
    for part in ("simulator", "sessions", "users", "batch_size", "horizon"):
        assert len({str(one[part]) for one in plain}) == 1
    memory = next(run.memory for run in runs if run.label == OURS)
    assert (memory.bits, memory.greedy, memory.newest) == (10, 0.5, 8)
    ours, same = (next(r for r in runs if r.label == label) for label in (OURS, SAME))
    assert ours.agent == same.agent  # like with like: the model
    assert ours.memory.newest == same.memory.newest  # and the cure


def test_the_bandits_have_what_was_chosen_for_them_elsewhere():
    tuned = json.loads((ROOT / "results/demo_tuning.json").read_text())
    assert {run["world"] for run in tuned["runs"]} == {10, 11}
    assert max(run["seed"] for run in tuned["runs"]) < FIRST_SEED
    for run in cells(1_000, 1):
        if run.label in (*ENDS, *EARNS):
            goal = "end" if run.label in ENDS else "earning"
            agent = "ridge-pages" if run.agent.pages else "ridge"
            chosen = tuned["chosen"][agent][goal]["settings"]
            assert {name: getattr(run.agent, name) for name in chosen} == chosen


def records(ours, same, seeds=4):
    found = []
    for seed in range(seeds):
        scores = dict(zip(ENDS + EARNS, (0.25, 0.3, 0.2, 0.28), strict=True))
        scores |= {OURS: ours, SAME: same}
        for arm in ARMS:
            score = scores[arm.label] + 0.001 * ((seed * 7 + len(arm.label)) % 4)
            final = {"metric": score, "learning_metric": score / 2}
            experiment = {"label": arm.label, "seed": seed}
            found.append(Record(Path("nowhere"), experiment, final=final))
    return found


def test_what_the_memory_adds_is_said_as_it_is():
    first, second, third = verdict(records(0.32, 0.32))
    assert "has 1.28 and 1.07 times the CTR of linear bandits tuned for the end" in first
    assert "it has 1.60 and 1.14 times the CTR of those tuned to earn" in second
    assert "lowest run 0.320" in second
    assert "nothing that these runs could show" in third
    assert "nothing" not in verdict(records(0.36, 0.32))[2]


def test_a_bandit_without_a_click_is_said_to_have_none():
    found = records(0.32, 0.32)
    for one in found:
        if one.label == EARNS[1]:
            one.final["learning_metric"] = 0.0
    assert "(not one click there) times the CTR of those tuned to earn" in verdict(found)[1]

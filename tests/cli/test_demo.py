"""The demo: every arm on the same users, fresh seeds, an honest word on what the memory adds."""

from pathlib import Path

from lser.cli.demo import ARMS, BANDIT, OURS, SAME, cells, verdict
from lser.experiments.experiment import to_json
from lser.experiments.records import Record


def test_arms_differ_in_agent_and_memory_alone_and_seeds_are_new():
    runs = cells(1_000, 2)
    assert len(runs) == 2 * len(ARMS)
    assert {run.seed for run in runs} == {100, 101}
    plain = [to_json(run) for run in runs]
    for part in ("simulator", "sessions", "users", "batch_size", "updates_per_step", "horizon"):
        assert len({str(one[part]) for one in plain}) == 1
    memory = next(run.memory for run in runs if run.label == OURS)
    assert (memory.bits, memory.greedy, memory.newest) == (10, 0.5, 8)


def records(ours, same, bandit=0.25, seeds=4):
    found = []
    for seed in range(seeds):
        scores = {arm.label: 0.02 for arm in ARMS} | {OURS: ours, SAME: same, BANDIT: bandit}
        for arm in ARMS:
            score = scores[arm.label] + 0.001 * ((seed * 7 + len(arm.label)) % 5)
            final = {"metric": score, "learning_metric": score / 2}
            experiment = {"label": arm.label, "seed": seed}
            found.append(Record(Path("nowhere"), experiment, final=final))
    return found


def test_what_the_memory_adds_is_said_as_it_is():
    first, second, third = verdict(records(0.32, 0.32))
    assert "1.28 times its CTR at the end" in first
    assert "lowest run ends at 0.32" in second
    assert "nothing that these runs could show" in third
    assert verdict(records(0.36, 0.32))[2].endswith("over uniform replay.")

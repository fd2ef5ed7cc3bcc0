"""CC of the plan: what its script makes of made-up runs."""

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lser.experiments import records
from lser.experiments.experiment import to_json
from lser.simulators.base import Anchor

RESULTS = Path(__file__).resolve().parents[1] / "results"


@pytest.fixture
def generous(monkeypatch, tmp_path):
    """The script, as if nothing had run, in worlds whose oracle has a CTR of .5."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(RESULTS))
        __import__("generous")
    script = sys.modules["generous"]
    kept = (script.found, script.shares, script.primary)

    def forget():
        for one in kept:
            one.cache_clear()

    forget()
    monkeypatch.setattr(script, "FILE", tmp_path / "generous.jsonl.gz")
    known = tuple(Anchor(name, score, "made up") for name, score in (("", 0.02), ("", 0.52)))
    monkeypatch.setattr(script, "anchors", lambda _: known)
    yield script
    forget()


def pack(script, levels):
    """Runs that end at a level of CTR by dial and arm, with a little luck of their seed."""
    made = []
    for one in script.runs():
        luck = np.random.default_rng([one.seed, len(one.label)]).normal(0, 0.002)
        dial = one.simulator.generosity
        ctr = levels.get((dial, one.label), levels.get(one.label, 0.2)) + luck
        line = {"steps": 1, "updates": 1, "metric": ctr, "metric_se": 0.0, "reward": ctr,
                "length": 1.0, "learning_metric": ctr}  # fmt: skip
        curve = [{**line, "sessions": s} for s in (0, one.sessions - 500, one.sessions)]
        machine = {"system": "Linux", "processor": "made up", "cores": 2, "python": "cpython"}
        meta = {"status": "done", "metric": "ctr", "machine": machine, "command": script.COMMAND}
        final = {**line, "sessions": one.sessions}
        made.append(records.Record(Path("runs"), to_json(one), meta, curve, final))
    records.pack(made, script.FILE)


def test_its_runs_are_those_of_the_plan(generous):
    runs = generous.runs()
    halves = Counter(one.study for one in runs)
    assert halves == {"generosity": 80, "generous-lead": 72}
    assert len({str(replace(one, label="")) + one.label for one in runs}) == 152
    for one in runs:
        assert one.simulator.world_seed == one.seed % 3
        if one.study == "generous-lead":
            assert (one.simulator.generosity, one.sessions) == (2.0, 1_000)
        else:
            assert (one.batch_size, one.agent.discount, one.sessions) == (32, 0.99, 2_000)


def test_what_has_not_run_says_nothing(generous):
    assert (generous.reading(), generous.block()) == ("", "")


def test_locality_pays_above_all_controls(generous):
    pack(generous, {(2.0, "lser"): 0.3, "LSER recommender": 0.3, "earning bandit": 0.25})
    assert generous.answer() == "pays"
    assert generous.change().mean.estimate == pytest.approx(0.2, abs=0.02)  # .1 of .5
    assert generous.keeps()
    times, _ = generous.leads()["earning bandit"]
    assert times.estimate == pytest.approx(1.2, abs=0.02)
    said = generous.reading()
    assert "locality **pays**" in said
    assert "**keeps its lead**" in said
    assert "152 runs by" in generous.block()


def test_one_control_above_makes_it_cost(generous):
    pack(generous, {(2.0, "lser"): 0.25, (2.0, "reward-top"): 0.3})
    assert generous.answer() == "costs"


def test_one_control_level_leaves_it_open(generous):
    pack(generous, {(2.0, "lser"): 0.25, (2.0, "reward-top"): 0.25, "earning page bandit": 0.3})
    assert generous.answer() == "open"
    assert not generous.keeps()
    assert "**does not surely keep its lead**" in generous.reading()

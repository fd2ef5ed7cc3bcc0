"""V of the plan: what its script makes of runs, with made-up shares of the possible."""

import sys
from pathlib import Path

import numpy as np
import pytest

RESULTS = Path(__file__).resolve().parents[1] / "results"


@pytest.fixture
def cured(monkeypatch):
    """The script; it imports what lies beside it, and keeps nothing from test to test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(RESULTS))
        __import__("regions_cured")
    script = sys.modules["regions_cured"]
    cached = (script.seeds, script.primary, script.by_discount)
    for one in cached:
        one.cache_clear()
    monkeypatch.setattr(script, "there", lambda: True)
    yield script
    for one in cached:
        one.cache_clear()


def given(cured, monkeypatch, leads, *, noise=0.01):
    """Let LSER lie above each control by what `leads` says, with a little luck of every run's."""
    rng = np.random.default_rng(0)
    made = {
        (cell, arm): {
            seed: 0.5 - leads.get(arm, 0.0) + rng.normal(0, noise) for seed in cured.NEWEST
        }
        for cell in cured.HERE
        for arm in (cured.OURS, *cured.CONTROLS)
    }
    monkeypatch.setattr(cured, "shares", lambda cell, arm: made[cell, arm])
    return made


@pytest.mark.parametrize(
    ("uniform", "shuffled", "noise", "said"),
    [
        (0.05, 0.05, 0.01, "pays"),
        (0.015, 0.015, 0.005, "pays, by less than 0.03"),
        (0.0, 0.0, 0.01, "does not pay"),
        (-0.015, 0.0, 0.005, "does not pay"),
        (0.05, 0.0, 0.01, "open"),
        (0.05, -0.05, 0.01, "costs"),
        (0.0, 0.0, 0.3, "open"),
    ],
)
def test_the_rule_of_the_plan(cured, monkeypatch, uniform, shuffled, noise, said):
    given(cured, monkeypatch, {"uniform": uniform, "shuffled-code": shuffled}, noise=noise)
    assert cured.primary()[1] == said
    assert f"locality **{cured.said(said)}** by the primary test" in cured.reading()


def test_a_lead_is_the_mean_over_the_cells_of_every_seed(cured, monkeypatch):
    made = given(cured, monkeypatch, {"uniform": 0.1})
    by_seed = [
        np.mean([made[cell, "lser"][s] - made[cell, "uniform"][s] for cell in cured.HERE])
        for s in cured.NEWEST
    ]
    found, _ = cured.primary()[0]["uniform"]
    assert found.mean.estimate == pytest.approx(np.mean(by_seed))
    assert found.seeds == len(cured.NEWEST)


def test_seeds_that_one_cell_or_arm_lacks_are_left_out(cured, monkeypatch):
    made = given(cured, monkeypatch, {})
    del made[cured.HERE[2], "shuffled-code"][127]
    assert cured.seeds() == tuple(s for s in cured.NEWEST if s != 127)


def test_holm_is_over_every_lead_that_is_asked_for(cured, monkeypatch):
    given(cured, monkeypatch, {"uniform": 0.008, "shuffled-code": 0.008})
    alone = cured.leads([cured.NEAR])[0]["uniform"]
    beside = cured.leads([cured.NEAR, cured.FAR])[0]["uniform"]
    assert alone[0] == beside[0]
    assert alone[1] <= beside[1]


def test_its_runs_are_the_six_cells_of_three_arms_on_ten_new_seeds(cured):
    made = [job.experiment for job in cured.jobs(Path("runs"))]
    assert len(made) == 6 * 3 * 10
    assert {one["agent"]["value_bound"] for one in made} == {"auto"}
    assert {one["memory"]["newest"] for one in made} == {8}
    assert {one["memory"].get("greedy", 0.5) for one in made} == {0.5}


def test_before_it_has_run_it_says_nothing(cured, monkeypatch):
    monkeypatch.setattr(cured, "there", lambda: False)
    assert cured.reading() == cured.block() == ""

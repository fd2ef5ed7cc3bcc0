"""V and X of the plan: what their scripts make of runs, with made-up shares of the possible."""

import sys
from pathlib import Path

import numpy as np
import pytest

RESULTS = Path(__file__).resolve().parents[1] / "results"
SEEDS = range(10)


@pytest.fixture(params=["regions_cured", "regions_large"])
def script(request, monkeypatch):
    """Each script; it imports what lies beside it, and keeps nothing from test to test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(RESULTS))
        __import__(request.param)
    found = sys.modules[request.param]
    cached = [getattr(found, name) for name in ("primary", "by_discount") if hasattr(found, name)]
    for one in cached:
        one.cache_clear()
    monkeypatch.setattr(found, "there", lambda: True)
    yield found
    found.HELD.__dict__.pop("seeds", None)
    for one in cached:
        one.cache_clear()


def given(script, monkeypatch, leads, *, noise=0.01):
    """Let LSER lie above each control by what `leads` says, with a little luck of every run's."""
    rng, held = np.random.default_rng(0), script.HELD
    made = {
        (cell, arm): {seed: 0.5 - leads.get(arm, 0.0) + rng.normal(0, noise) for seed in SEEDS}
        for cell in held.cells
        for arm in ("lser", *held.controls)
    }
    monkeypatch.setattr(type(held), "shares", lambda _, cell, arm: made[cell, arm])
    held.__dict__.pop("seeds", None)
    return made


@pytest.mark.parametrize(
    ("uniform", "shuffled", "noise", "of_v", "of_x"),
    [
        (0.05, 0.05, 0.01, "pays", "pays"),
        (0.015, 0.015, 0.005, "pays, by less than 0.03", "pays"),
        (0.0, 0.0, 0.01, "does not pay", "does not pay"),
        (-0.015, 0.0, 0.005, "does not pay", "costs"),
        (0.05, 0.0, 0.01, "open", "open"),
        (0.05, -0.05, 0.01, "costs", "costs"),
        (0.0, 0.0, 0.3, "open", "open"),
    ],
)
def test_the_rule_of_the_plan(script, monkeypatch, uniform, shuffled, noise, of_v, of_x):
    said = of_x if "large" in script.__name__ else of_v
    leads = {"uniform": uniform, "shuffled-code": shuffled, "reward-top": uniform}
    given(script, monkeypatch, leads, noise=noise)
    [found] = script.HELD.leads([script.HELD.cells])
    assert script.HELD.rule(found) == said
    verb = "is open" if said == "open" else said
    assert f"**{verb}**" in script.reading()


def test_a_lead_is_the_mean_over_the_cells_of_every_seed(script, monkeypatch):
    made, held = given(script, monkeypatch, {"uniform": 0.1}), script.HELD
    by_seed = [
        np.mean([made[cell, "lser"][s] - made[cell, "uniform"][s] for cell in held.cells])
        for s in SEEDS
    ]
    found, _ = held.leads([held.cells])[0]["uniform"]
    assert found.mean.estimate == pytest.approx(np.mean(by_seed))
    assert found.seeds == len(SEEDS)


def test_seeds_that_one_cell_or_arm_lacks_are_left_out(script, monkeypatch):
    made = given(script, monkeypatch, {})
    del made[script.HELD.cells[2], "shuffled-code"][7]
    assert script.HELD.seeds == tuple(s for s in SEEDS if s != 7)


def test_holm_is_over_every_lead_that_is_asked_for(script, monkeypatch):
    given(script, monkeypatch, {}, noise=0.3)
    found = script.HELD.leads([script.NEAR, script.FAR])
    pairs = [pair for leads in found for pair in leads.values()]
    raw = sorted((gap.p, adjusted) for gap, adjusted in pairs)
    steps = [p * (len(raw) - rank) for rank, (p, _) in enumerate(raw)]
    expected = [min(1.0, max(steps[: rank + 1])) for rank in range(len(raw))]
    assert [adjusted for _, adjusted in raw] == pytest.approx(expected)
    assert any(adjusted > p for p, adjusted in raw)


def test_its_table_has_every_cell(script, monkeypatch):
    given(script, monkeypatch, {"uniform": 0.2, "shuffled-code": 0.2, "reward-top": 0.2})
    rows = script.HELD.table().splitlines()[2:]
    assert len(rows) == len(script.HELD.cells)
    assert all("**pays**" in row for row in rows)


@pytest.mark.parametrize("script", ["regions_cured"], indirect=True)
def test_vs_runs_have_the_cure(script):
    made = [job.experiment for job in script.jobs(Path("runs"))]
    assert {one["agent"]["value_bound"] for one in made} == {"auto"}
    assert {one["memory"]["newest"] for one in made} == {8}
    assert {one["memory"].get("greedy", 0.5) for one in made} == {0.5}


def test_its_runs_are_those_of_its_cells_and_arms_seed_by_seed(script):
    made = [job.experiment for job in script.jobs(Path("runs"))]
    seeds = getattr(script, "LEAST", len(SEEDS))
    assert len(made) == len(script.HELD.cells) * (1 + len(script.HELD.controls)) * seeds
    assert {one["sessions"] for one in made} == {2_000}
    assert {one["batch_size"] for one in made} == {128 if "large" in script.__name__ else 32}


def test_before_it_has_run_it_says_nothing(script, monkeypatch):
    monkeypatch.setattr(script, "there", lambda: False)
    assert script.reading() == script.block() == ""


@pytest.mark.parametrize("script", ["regions_large"], indirect=True)
@pytest.mark.parametrize(("seeds", "there"), [(4, False), (5, True)])
def test_x_is_cut_with_fewer_than_five_seeds(script, monkeypatch, tmp_path, seeds, there):
    monkeypatch.undo()  # `there` itself
    monkeypatch.setattr(script, "FILE", tmp_path / "packed")
    (tmp_path / "packed").touch()
    made = given(script, monkeypatch, {})
    for scores in made.values():
        for seed in SEEDS[seeds:]:
            del scores[seed]
    assert script.there() == there

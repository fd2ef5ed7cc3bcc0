"""U of the plan: what its script makes of runs, with made-up shares of the possible."""

import sys
from pathlib import Path

import numpy as np
import pytest

RESULTS = Path(__file__).resolve().parents[1] / "results"
SEEDS = tuple(range(110, 120))


@pytest.fixture
def regions(monkeypatch):
    """The script; it imports what lies beside it, and keeps nothing from test to test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(RESULTS))
        __import__("regions")
    script = sys.modules["regions"]
    cached = (script.pays, script.does_not_pay, script.seeds)
    for one in cached:
        one.cache_clear()
    monkeypatch.setattr(script, "there", lambda: True)
    yield script
    for one in cached:
        one.cache_clear()


def given(regions, monkeypatch, level):
    """Let `level` (cell, arm) be the mean share, with a little noise of every seed's own."""
    rng = np.random.default_rng(0)
    arms = (regions.OURS, *regions.CONTROLS)
    made = {
        (cell, arm): dict(
            zip(SEEDS, level(cell, arm) + rng.normal(0, 0.01, len(SEEDS)), strict=True)
        )
        for cell in regions.NEW
        for arm in arms
    }
    monkeypatch.setattr(regions, "shares", lambda cell, arm: made.get((cell, arm), {}))
    return made


def flat(lead, *, far=None):
    """A world where LSER's lead depends on the discount alone, and 0 is the better discount."""

    def level(cell, arm):
        base = 0.6 if cell.discount == 0 else 0.3
        ahead = far if far is not None and cell.discount else lead
        return base + (ahead if arm == "lser" else 0.0)

    return level


def test_a_lead_over_cells_is_the_mean_of_each_seeds_own_leads(regions, monkeypatch):
    made = given(regions, monkeypatch, flat(0.1))
    cells = regions.SHORT_SIGHTED
    by_seed = [
        sum(made[cell, "lser"][s] - made[cell, "uniform"][s] for cell in cells) / 3 for s in SEEDS
    ]
    found = regions.lead(cells, "uniform")
    assert found.mean.estimate == pytest.approx(np.mean(by_seed))
    assert found.seeds == len(SEEDS)


def test_seeds_that_one_cell_or_arm_lacks_are_left_out(regions, monkeypatch):
    made = given(regions, monkeypatch, flat(0.1))
    del made[regions.NEW[3], "reward-top"][114]
    assert regions.seeds() == tuple(s for s in SEEDS if s != 114)


def test_locality_pays_far_and_not_near(regions, monkeypatch):
    given(regions, monkeypatch, flat(0.0, far=0.05))
    said = regions.reading()
    assert "(six cells) it **pays**" in said
    assert "(three cells) locality **does not pay**" in said
    assert regions.holds()


@pytest.mark.parametrize("control", ["uniform", "reward-top", "shuffled-code"])
def test_a_control_that_is_not_beaten_leaves_it_open(regions, monkeypatch, control):
    def level(cell, arm):
        return flat(0.05)(cell, arm) + (0.06 if arm == control else 0.0)

    given(regions, monkeypatch, level)
    assert not regions.holds()
    assert "it **is open**" in regions.reading()


@pytest.mark.parametrize("lead", [-0.05, 0.05])
def test_a_lead_that_matters_is_not_nothing(regions, monkeypatch, lead):
    given(regions, monkeypatch, flat(lead))
    assert not regions.does_not_pay()[1]


def test_words_that_the_runs_no_longer_carry_are_an_error(regions, monkeypatch):
    given(regions, monkeypatch, lambda cell, arm: 0.5)
    with pytest.raises(ValueError, match="discount is worth more"):
        regions.reading()


def test_before_it_has_run_it_says_nothing(regions, monkeypatch):
    monkeypatch.setattr(regions, "there", lambda: False)
    assert regions.reading() == regions.block() == ""
    assert not regions.holds()

"""F by watch time and G of the plan: what their scripts make of records, with made-up ones."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lser.experiments.experiment import to_json
from lser.experiments.records import Record, find, pack
from lser.experiments.studies import plan
from lser.experiments.studies.shops import SHOPS

RESULTS = Path(__file__).resolve().parents[1] / "results"
NAMES = ("campaign", "committed", "delayed", "interest", "interest_watch", "offers", "standing")


@pytest.fixture(scope="module")
def scripts():
    """The scripts by name; they import what lies beside them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(RESULTS))
        for name in NAMES:
            __import__(name)
        return {name: sys.modules[name] for name in NAMES}


def made(cell, score, *, points=20, status="done", end=True, **others):
    """A record of `cell`: its points rise by a hundredth of the score at the end, or end early."""

    def line(at):
        value = score * (0.8 + 0.01 * at)
        return {
            "sessions": at * cell.evaluate_every,
            "metric": value,
            "reward_per_step": value,
            "reward": 80 * value,
            "length": 80.0,
            "steps": 80.0,
            **others,
        }

    return Record(
        path=Path("made-up"),
        experiment=json.loads(json.dumps(to_json(cell))),
        meta={"status": status, "command": "lser study", "metric": "x", "engine": "fleet on a CPU"},
        curve=[line(at) for at in range(points + 1)],
        final=line(20) | {"times": {}, "memory": {}} if end else None,
    )


def offers_cells(*labels, seeds=10):
    return [
        one
        for one in plan("offers", "paper", seeds)
        if one.simulator.number_of_flips == 0 and one.label in labels
    ]


def paid(cell, share):
    """The reward per step at a share of the possible of the cell's own world."""
    [shop] = [shop for shop in SHOPS if shop.world == cell.simulator.random_seed]
    return 50 * (shop.random + share * (shop.oracle - shop.random))


def filling(script, folder, monkeypatch):
    """A script with a file of its own, and a way to fill it."""
    monkeypatch.setattr(script, "FILE", folder / "runs.jsonl.gz")

    def fill(runs):
        pack(runs, script.FILE)
        script.arms.cache_clear()
        return script

    script.arms.cache_clear()
    yield fill
    script.arms.cache_clear()


@pytest.fixture
def offers(scripts, tmp_path, monkeypatch):
    yield from filling(scripts["offers"], tmp_path, monkeypatch)


@pytest.fixture
def watch(scripts, tmp_path, monkeypatch):
    yield from filling(scripts["interest_watch"], tmp_path, monkeypatch)


def watch_cells(*labels, seeds=20):
    return [
        one
        for one in plan("interest", "medium", seeds)
        if one.simulator.reward == "watch time" and one.label in labels
    ]


def test_what_has_not_run_leaves_its_blocks_out(scripts, tmp_path, monkeypatch):
    for name in ("offers", "interest_watch"):
        script = scripts[name]
        monkeypatch.setattr(script, "FILE", tmp_path / "nothing.jsonl.gz")
        script.arms.cache_clear()
        assert not script.there()
        assert script.reading() == script.block() == ""
        script.arms.cache_clear()


def test_a_share_is_that_of_the_runs_own_world(offers):
    shares = {"lser": 0.7, "uniform": 0.6}
    script = offers(
        [
            made(cell, paid(cell, shares[cell.label] + 0.01 * (cell.seed % 3)))
            for cell in offers_cells("lser", "uniform")
        ]
    )
    assert script.pooled("lser")[100] == pytest.approx(0.7 + 0.01 * (100 % 3))
    found = script.versus("lser")
    assert found.seeds == 10
    assert found.mean.estimate == pytest.approx(0.1)
    for one in script.by_world("lser").values():
        assert one.mean.estimate == pytest.approx(0.1)


def test_the_world_is_a_block_so_that_what_worlds_differ_in_widens_nothing(offers):
    def share(cell):
        gain = {42: 0.5, 43: -0.3, 44: 0.0, 45: 0.0, 46: 0.3}[cell.simulator.random_seed]
        return 0.4 + 0.001 * (cell.seed % 2) + (gain if cell.label == "lser" else 0)

    script = offers([made(c, paid(c, share(c))) for c in offers_cells("lser", "uniform")])
    found = script.versus("lser").mean
    assert found.estimate == pytest.approx(0.1)
    assert found.high - found.low < 1e-6
    assert "LSER ends above uniform" in script.reading()
    assert "world 43 −0.300" in script.reading()


def test_a_memory_without_all_worlds_is_not_compared_but_said(offers):
    runs = [
        made(cell, paid(cell, 0.5 + 0.001 * (cell.seed % 4)))
        for cell in offers_cells("lser", "uniform", "per", "ridge")
        if cell.label != "per" or cell.simulator.random_seed != 46
    ]
    script = offers(runs)
    assert script.held() == ["lser", "uniform"]
    assert script.secondary() == {}
    assert "PER" in script.reading().partition("Not run in all worlds: ")[2]
    assert "linear bandit 0.50" in script.reading()


def test_runs_that_time_cut_off_are_read_where_all_stand(watch):
    runs = [made(cell, 2.0 + 0.01 * (cell.seed % 3)) for cell in watch_cells("lser")]
    runs += [
        made(cell, 1.0, points=10 + cell.seed % 2, status="stopped", end=False)
        for cell in watch_cells("uniform")
    ]
    script = watch(runs)
    arms = script.arms()
    assert arms.sessions("lser", "uniform") == 1_500
    assert set(arms.scores("uniform", "reward_per_step", "lser").values()) == {0.9}
    assert max(arms.scores("lser", "reward_per_step", "uniform").values()) == pytest.approx(
        2.02 * 0.9
    )
    assert max(arms.scores("lser", "reward_per_step").values()) == pytest.approx(2.02)
    assert "1,500 sessions of 3,000, where time cut them off" in script.reading()


def test_an_arm_that_was_cut_off_does_not_shorten_the_primary_test(watch):
    runs = [
        made(cell, 2.0 + 0.01 * (cell.seed % 3) + 0.1 * (cell.label == "uniform"))
        for cell in watch_cells("lser", "uniform")
    ]
    runs += [
        made(cell, 2.0 + 0.01 * (cell.seed % 4), points=8, status="stopped", end=False)
        for cell in watch_cells("per", seeds=10)
    ]
    script = watch(runs)
    assert script.primary().mean.estimate == pytest.approx(-0.1)
    assert script.primary().seeds == 20
    text = script.reading()
    assert "LSER ends **below** uniform" in text
    assert "over 10 seeds, at 1,200 sessions" in text
    assert "Not run: reward-top" in text
    assert "10 cut off by time" in script.block()


def test_runs_of_unlike_length_are_compared_where_both_stand(watch):
    runs = [made(cell, 2.0 + 0.01 * (cell.seed % 3)) for cell in watch_cells("uniform")]
    short = [replace(cell, sessions=1_500) for cell in watch_cells("lser")]
    runs += [made(cell, 3.0, points=10) for cell in short]
    script = watch(runs)
    assert script.arms().sessions("lser", "uniform") == 1_500
    assert set(script.arms().scores("lser", "reward_per_step", "uniform").values()) == {2.7}


def test_whether_anything_was_learned_is_said(watch):
    for level, learned in ((2.0, False), (4.0, True)):  # 160 and 320 of watch time per session
        cells = watch_cells("lser", "uniform")
        text = watch([made(c, level + 0.01 * (c.seed % 3)) for c in cells]).reading()
        assert ("agents hardly learn there" in text) is not learned


def test_failed_runs_are_not_read_but_said(watch):
    runs = [made(c, 2.0 + 0.01 * (c.seed % 3)) for c in watch_cells("lser", "uniform")]
    runs[0].meta["status"] = "failed"
    script = watch(runs)
    assert script.primary().seeds == 19
    assert "1 failed" in script.block()


def test_records_are_gathered_once_as_far_as_they_went(scripts, tmp_path):
    cells = watch_cells("lser", seeds=3)
    early = [made(cell, 1.0, points=4, status="died", end=False) for cell in cells]
    pack(early, tmp_path / "early" / "some.jsonl.gz")
    pack([made(cell, 2.0) for cell in cells[:2]], tmp_path / "late" / "some.jsonl.gz")
    file = tmp_path / "all.jsonl.gz"
    places = [tmp_path / "late", tmp_path / "early"]
    scripts["campaign"].gather(places, lambda run: run.seed != 101, file)
    scripts["campaign"].gather(places, lambda run: run.seed != 101, file)
    found = {run.seed: run for run in find(file)}
    assert sorted(found) == [100, 102]
    assert found[100].final is not None
    assert found[102].final is None


def test_only_the_planned_runs_are_wanted(scripts):
    wanted = scripts["offers"].wanted
    [cell, *_] = offers_cells("lser")
    run = made(cell, 1.0)
    assert wanted(run)
    for change in ({"random_seed": 47}, {"number_of_flips": 4}, {"reward": "click"}):
        other = made(cell, 1.0)
        other.experiment["simulator"].update(change)
        assert not wanted(other), change
    run.experiment["seed"] = 900
    assert not wanted(run)
    watched = made(watch_cells("lser")[0], 1.0)
    assert scripts["interest"].wanted(watched, "watch time")
    assert not scripts["interest"].wanted(watched)


def test_the_scales_of_recogyms_worlds_are_what_was_played():
    rows = json.loads((RESULTS / "shops.json").read_text())
    assert [shop._asdict() for shop in SHOPS] == rows
    for shop in SHOPS:
        assert shop.random < shop.constant < shop.own < shop.oracle

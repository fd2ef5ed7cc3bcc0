"""I of the plan on VirtualTaobao, and W: what the script chooses and says, with made-up runs."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from lser.experiments import records
from lser.experiments.experiment import to_json
from lser.experiments.presets import preset

RESULTS = Path(__file__).resolve().parents[1] / "results"


@pytest.fixture(scope="module")
def loaded():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(RESULTS))
        return importlib.import_module("taobao_tuning")


@pytest.fixture
def script(loaded, monkeypatch, tmp_path):
    """The script as if nothing had run: its files lie in an empty folder."""
    cached = (loaded.tuning, loaded.alike, loaded.cured)
    for one in cached:
        one.cache_clear()
    for name in ("FILE", "ALIKE", "CURED"):
        monkeypatch.setattr(loaded, name, tmp_path / f"{name}.jsonl.gz")
    yield loaded
    for one in cached:
        one.cache_clear()


def run(experiment, level, *, until=1.0, peak=0.0):
    """A record that stands at `level` at its end, or where time cut it off, after a `peak`."""
    luck = np.random.default_rng([experiment.seed, len(experiment.label)]).normal(0, 0.001)
    points = np.arange(0, until * experiment.sessions + 1, experiment.evaluate_every)
    curve = [
        {"sessions": int(s), "steps": 8 * int(s), "updates": 8 * int(s), "metric": level + luck}
        for s in points
    ]
    curve[len(curve) // 2]["metric"] = max(level, peak)
    meta = {"status": "done" if until == 1 else "stopped", "metric": "ctr", "command": "made up"}
    return records.Record(Path("runs"), to_json(experiment), meta, curve, dict(curve[-1]))


def fill(script, ends, *, best=None, cut=(), **more):
    """A grid in which every memory is best at its setting of `best`, and a comparison."""
    best = best or dict.fromkeys(script.MEMORIES, script.EXPLORING)
    made = [
        run(one, 0.5 + 0.2 * (one.label == f"{memory}, {best[memory].words}"))
        for one in script.grid()
        for memory in [one.label.split(",")[0]]
    ]
    records.pack(made, script.FILE)
    alike = [
        run(one, ends.get(one.label, 0.5), until=0.6 if one.label in cut else 1.0, **more)
        for one in script.comparison(best)
    ]
    records.pack(alike, script.ALIKE)


def test_every_memory_gets_its_own_best_setting(script):
    best = {memory: script.GRID[at] for at, memory in enumerate(script.MEMORIES)}
    fill(script, {}, best=best)
    assert script.chosen(script.tuning()) == script.settings() == best
    assert script.whole_grid().count("**") == 2 * len(script.MEMORIES)


def test_a_memory_whose_grid_is_not_complete_is_not_compared(script):
    made = [run(one, 0.5) for one in script.grid() if (one.label[:3], one.seed) != ("per", 202)]
    assert set(script.chosen(script.labelled(made))) == set(script.MEMORIES) - {"per"}


def test_settings_are_the_presets_and_those_of_the_grid(script):
    one = preset("virtual-taobao", "uniform")
    assert (one.agent.noise_scale, one.batch_size, one.agent.discount) == script.DEFAULT
    assert {script.DEFAULT, script.EXPLORING} <= set(script.GRID)


@pytest.mark.parametrize(
    ("uniform", "said"),
    [
        (0.4, "LSER wins"),
        (0.7, "LSER does not win: it ends below uniform"),
        (0.5, "it is open: LSER is not separated from uniform"),
    ],
)
def test_who_wins(script, uniform, said):
    fill(script, dict.fromkeys(script.MEMORIES, 0.4) | {"lser": 0.5, "uniform": uniform})
    assert script.outcome() == said
    assert f"**{said}**" in script.reading()


def test_the_front_page_says_it_only_while_the_records_do(script):
    assert not script.below("uniform")  # before it has run
    fill(script, {"lser": 0.4, "uniform": 0.8})
    assert script.below("uniform")
    script.alike.cache_clear()
    fill(script, {"lser": 0.8, "uniform": 0.4})
    assert not script.below("uniform")


def test_an_arm_that_time_cut_off_is_compared_where_it_stood(script):
    fill(script, {"per": 0.3, "lser": 0.5}, cut=("per",))
    told = script.reading()
    assert "PER +0.2" in told
    assert "at 9,000" in told
    assert "PER was cut off by time" in told


def test_runs_that_fall_are_counted(script):
    fill(script, {}, peak=0.9)
    assert "LSER 10 of 10" in script.reading()


def test_w_compares_two_memories_with_the_cure(script):
    fill(script, {"lser": 0.4, "uniform": 0.8})
    runs = script.with_the_cure()
    assert {one.agent.value_bound for one in runs} == {"auto"}
    assert {one.memory.newest for one in runs} == {8}
    assert {one.seed for one in runs} == set(script.NEWER)
    assert {(o.agent.noise_scale, o.batch_size, o.agent.discount) for o in runs} == {
        script.EXPLORING
    }
    assert script.cure_reading() == ""
    records.pack([run(o, 0.9 if o.label == "lser" else 0.7) for o in runs], script.CURED)
    assert "**separated, LSER above**" in script.cure_reading()
    assert "with the cure" in script.in_short()


def test_before_it_has_run_it_says_nothing(script):
    assert script.reading() == script.block() == script.in_short() == script.cure_reading() == ""

"""I of the plan: what its scripts choose and say, with made-up runs."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from lser.experiments import records
from lser.experiments.experiment import to_json
from lser.experiments.presets import earlier_bazaar, preset

RESULTS = Path(__file__).resolve().parents[1] / "results"


@pytest.fixture(scope="module")
def loaded():
    """Both scripts; they import what lies beside them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(RESULTS))
        return [importlib.import_module(name) for name in ("equal_tuning", "tuned_alike")]


@pytest.fixture
def scripts(loaded, monkeypatch, tmp_path):
    """The scripts as if nothing had run: their files lie in an empty folder."""
    grid, alike = loaded
    cached = (grid.held, grid.tuned, grid.chosen, alike.runs)
    for one in cached:
        one.cache_clear()
    for script in loaded:
        monkeypatch.setattr(script, "FILE", tmp_path / f"{script.STUDY}.jsonl.gz")
    yield grid, alike
    for one in cached:
        one.cache_clear()


def run(experiment, level, *, peak=0.0):
    """A record that rises to `level`, or to `peak` and then falls to it."""
    luck = np.random.default_rng([experiment.seed, len(experiment.label)]).normal(0, 0.001)
    at = np.arange(0, experiment.sessions + 1, experiment.evaluate_every)
    scores = [*(max(level, peak) * at[:-1] / at[-1]), level + luck]
    curve = [
        {"sessions": int(s), "steps": 10 * int(s), "updates": 10 * int(s), "metric": float(score)}
        for s, score in zip(at, scores, strict=True)
    ]
    meta = {"status": "done", "metric": "ctr", "command": "made up"}
    return records.Record(Path("runs"), to_json(experiment), meta, curve, dict(curve[-1]))


def fill_grid(grid, level, *, lacking=()):
    made = [
        run(grid.experiment(memory, setting, seed), level(memory, setting))
        for memory in grid.MEMORIES
        for setting in grid.GRID
        for seed in grid.SEEDS
        if (memory, seed) not in lacking
    ]
    records.pack(made, grid.FILE)


def better_at(best):
    """Every memory scores most at its own setting of `best`, or at discount 0."""

    def level(memory, setting):
        return 0.1 + 0.05 * (setting == best.get(memory)) + 0.02 * (setting.discount == 0)

    return level


def fill_alike(alike, level, **more):
    made = [run(one, level(one.label), **more) for stage in alike.stages() for one in stage]
    records.pack(made, alike.FILE)


def test_every_memory_gets_its_own_best_setting(scripts):
    grid, _ = scripts
    best = {memory: grid.GRID[at] for at, memory in enumerate(grid.MEMORIES)}
    fill_grid(grid, better_at(best))
    assert grid.chosen() == best
    for memory, setting in best.items():
        assert f"{setting.words}: {grid.name_of(memory)}" in grid.reading()
    assert grid.whole_grid().count("**") == 2 * len(grid.MEMORIES)


def test_the_choice_is_by_the_area_and_not_by_the_end(scripts):
    grid, _ = scripts
    early, late = grid.GRID[:2]
    made = [
        run(
            grid.experiment(memory, setting, seed),
            0.15 if setting == late else 0.1,
            peak=0.4 if setting == early else 0.0,
        )
        for memory in grid.MEMORIES
        for setting in grid.GRID
        for seed in grid.SEEDS
    ]
    records.pack(made, grid.FILE)
    assert set(grid.chosen().values()) == {early}


def test_a_memory_whose_grid_is_not_complete_is_cut_and_said(scripts):
    grid, alike = scripts
    fill_grid(grid, better_at({}), lacking={("her", 202)})
    assert grid.tuned() == grid.MEMORIES[:-1]
    assert "Cut for time: HER." in grid.reading()
    assert not any(one.label == "her" for stage in alike.stages() for one in stage)


def test_the_presets_setting_is_the_presets(scripts):
    grid, _ = scripts
    one = earlier_bazaar(preset("bazaar", "uniform", "ddpg"))
    assert (one.agent.noise_scale, one.batch_size, one.agent.discount) == grid.DEFAULT
    assert grid.DEFAULT in grid.GRID


def test_memories_are_compared_at_the_settings_that_were_chosen(scripts):
    grid, alike = scripts
    best = {"lser": grid.GRID[3], "uniform": grid.GRID[7]}
    fill_grid(grid, better_at(best))
    fill_alike(alike, lambda arm: 0.2)
    assert {arm: alike.setting_of_arm(arm) for arm in best} == best
    assert alike.setting_of_arm("lser, the preset's setting") == grid.DEFAULT
    assert {run.seed for arm in alike.runs().values() for run in arm.values()} == set(alike.SEEDS)


@pytest.mark.parametrize(
    ("lser", "uniform", "said"),
    [
        (0.25, 0.2, "LSER wins"),
        (0.25, 0.3, "LSER does not win: it ends below uniform"),
        (0.25, 0.25, "it is open: LSER is not separated from uniform"),
    ],
)
def test_who_wins(scripts, lser, uniform, said):
    grid, alike = scripts
    fill_grid(grid, better_at({}))
    fill_alike(alike, lambda arm: {"lser": lser, "uniform": uniform}.get(arm, 0.2))
    assert alike.outcome() == said
    assert f"**{said}**" in alike.reading()
    assert said in alike.in_short()
    assert "(at the preset's setting" in alike.in_short()
    assert alike.below("uniform") == (lser < uniform)
    assert "At the preset's setting" in alike.reading()


def test_runs_that_fall_are_counted(scripts):
    grid, alike = scripts
    fill_grid(grid, better_at({}))
    fill_alike(alike, lambda arm: 0.1, peak=0.4)
    assert "LSER 10" in alike.reading()


def test_arms_that_lack_a_seed_are_not_packed(scripts, monkeypatch):
    grid, alike = scripts
    fill_grid(grid, better_at({}))
    jobs = alike.jobs(Path("runs"))
    late = next(job for job in jobs if job.experiment["label"] == "per")
    monkeypatch.setattr(alike, "finished", lambda job: job != late)
    assert {job.experiment["label"] for job in jobs} - {
        job.experiment["label"] for job in alike.whole(jobs)
    } == {"per"}


def test_what_was_not_compared_is_said(scripts):
    grid, alike = scripts
    fill_grid(grid, better_at({}))
    some = [one for one in alike.stages()[0] if one.label != "per"]
    records.pack([run(one, 0.2) for one in some], alike.FILE)
    told = alike.reading()
    assert "Not run: PER, AER, SER, DER and HER." in told
    assert "At the preset's setting" not in told


def test_before_they_have_run_they_say_nothing(scripts):
    for script in scripts:
        assert script.reading() == script.block() == ""
    assert scripts[1].in_short() == ""

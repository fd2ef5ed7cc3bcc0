"""How runs are sorted into studies, panels and arms."""

import copy
import dataclasses
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic

import lser
from lser.experiments.experiment import to_json
from lser.experiments.presets import preset
from lser.experiments.records import Record, damaged, find
from lser.report.panels import rng_for
from lser.report.sorting import studies


def test_runs_become_studies_panels_and_arms() -> None:
    found = studies(synthetic.comparison(2))
    assert [study.name for study in found] == ["comparison"]
    panels = found[0].panels
    assert panels[0].simulator == "virtual-taobao"
    assert [arm.name for arm in panels[0].arms] == [
        "lser", "per", "der", "aer", "ser", "her", "reward-top", "random-code", "uniform",
    ]  # fmt: skip
    assert panels[0].reference is panels[0].arms[-1]
    assert list(panels[0].arms[0].scores) == [0, 1]


def test_a_record_from_before_a_setting_stands_with_those_that_have_its_default() -> None:
    run = synthetic.comparison(1)[0]
    newer = to_json(replace(preset("virtual-taobao", "uniform"), study="comparison"))
    older = {**copy.deepcopy(newer), "memory": {"name": "lser"}}
    del older["feeders"], older["agent"]["weight_noise"]

    def panels(**changes: Any) -> int:
        runs = [replace(run, experiment=one) for one in (older, {**newer, **changes})]
        return len(studies(runs)[0].panels)

    assert panels() == 1
    assert panels(feeders=2) == 2
    older["batch_size_of_mine"] = older.pop("batch_size")  # somebody else's record
    assert panels() == 2


def test_variants_of_a_memory_that_only_a_name_tells_apart_are_never_pooled(tmp_path: Path) -> None:
    settings = {"batch_size": 128, "sessions": 10}
    for seed, memory in enumerate(("lser", "lser-p", "lser-steady", "mine_not_there:Memory")):
        place = {"simulator": "bazaar", "memory": memory, "agent": "ddpg", "study": "comparison"}
        with lser.record(tmp_path / str(seed), seed=seed, settings=settings, **place) as run:
            run.point(sessions=10, metric=0.5)
    (study,) = studies(find(tmp_path))
    assert [len(arm.runs) for panel in study.panels for arm in panel.arms] == [1] * 4


def test_studies_split_panels_by_what_they_vary() -> None:
    found = {study.name: study for study in studies(synthetic.small_studies(2))}
    settings = {name: [panel.setting for panel in study.panels] for name, study in found.items()}
    assert settings["horizon"] == ["continuing, discount 0.99", "session, discount 0.99"]
    assert settings["agents"] == ["ddpg", "sac", "td3"]
    assert settings["ablation"] == ["capacity 10,000", "capacity 100,000", "capacity 1,000,000"]
    assert settings["bazaar-map"][0] == "sparsity 0.02, state dependence 0"
    assert [arm.name for arm in found["ablation"].panels[0].arms] == ["lser", "lser-p", "lser-s"]
    assert [arm.name for arm in found["hyperplanes"].panels[0].arms][:3] == [
        "2 bits", "4 bits", "6 bits",
    ]  # fmt: skip


def test_each_study_has_its_reference() -> None:
    found = {study.name: study.panels[0] for study in studies(synthetic.small_studies(2))}
    references = {name: panel.reference for name, panel in found.items()}
    names = {name: arm.name for name, arm in references.items() if arm is not None}
    assert names == {
        "epsilon": "greedy 0", "ablation": "lser", "hyperplanes": "10 bits",
        "bazaar-map": "uniform", "horizon": "uniform", "agents": "uniform",
    }  # fmt: skip


def test_unfinished_and_failed_runs_are_left_out_with_the_reason() -> None:
    runs = [
        synthetic.record("s", "lser", 0, level=0.5),
        synthetic.record("s", "lser", 1, level=0.5, status="failed"),
        synthetic.record("s", "lser", 2, level=0.5, status="running"),
        dataclasses.replace(
            synthetic.record("s", "lser", 3, level=0.5), final={"metric": float("nan")}
        ),
    ]
    study = studies(runs)[0]
    assert [len(arm.runs) for arm in study.panels[0].arms] == [1]
    assert [reason for _, reason in study.left_out] == [
        "failed: ValueError: <made up> & broken",
        "not finished",
        "its final score is not a finite number",
    ]


def test_runs_of_unlike_length_are_never_pooled() -> None:
    runs = [synthetic.record("s", "lser", 0, level=0.5, sessions=n) for n in (100, 1000)]
    panels = studies(runs)[0].panels
    assert [panel.setting for panel in panels] == ["100 sessions", "1,000 sessions"]


def with_settings(label: str, seed: int, **settings: Any) -> Record:
    run = synthetic.record("mix", label, seed, level=0.5, memory={"name": label, "bits": 10})
    experiment = copy.deepcopy(run.experiment)
    for path, value in settings.items():
        part, _, key = path.partition("__")
        if key:
            experiment[part][key] = value
        else:
            experiment[part] = value
    return dataclasses.replace(run, experiment=experiment, path=Path(f"runs/{label}-{seed}"))


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"simulator__sparsity": 0.3}, "sparsity 0.3"),
        ({"agent__actor_lr": 0.01}, "actor lr 0.01"),
        ({"horizon": "session"}, "horizon session"),
        ({"updates_per_step": 5.0}, "updates per step 5.0"),
        ({"batch_size": 32}, "batch size 32"),
    ],
)
def test_runs_that_differ_in_anything_but_the_memory_are_never_pooled(
    setting: dict[str, Any], words: str
) -> None:
    runs = [with_settings(name, seed) for name in ("lser", "uniform") for seed in range(3)]
    runs.append(with_settings("lser", 3, **setting))
    (study,) = studies(runs)
    sizes = {panel.setting: [len(arm.runs) for arm in panel.arms] for panel in study.panels}
    assert sorted(sizes.values()) == [[1], [3, 3]]
    assert sizes[words] == [1]
    assert len(study.strays) == 1


def test_every_setting_in_which_runs_differ_is_named() -> None:
    runs = [with_settings("lser", 0), with_settings("lser", 1, batch_size=32, horizon="session")]
    (study,) = studies(runs)
    assert study.strays == ("batch_size", "horizon")


def test_what_follows_from_the_length_is_expected_to_differ() -> None:
    runs = [with_settings("lser", 0, sessions=n, evaluate_every=n // 20) for n in (100, 1000)]
    (study,) = studies(runs)
    assert study.strays == ()
    assert [panel.setting for panel in study.panels] == ["100 sessions", "1,000 sessions"]


def test_a_memory_with_another_setting_is_another_arm() -> None:
    runs = [with_settings("lser", seed) for seed in range(2)]
    runs += [with_settings("lser", seed, memory__bits=2) for seed in range(2)]
    (panel,) = studies(runs)[0].panels
    assert [arm.name for arm in panel.arms] == ["lser (bits 2)", "lser (bits 10)"]
    assert [len(arm.runs) for arm in panel.arms] == [2, 2]
    assert studies(runs)[0].strays == ()


def test_a_label_of_ones_own_tells_arms_apart_too() -> None:
    runs = [
        dataclasses.replace(run, experiment={**run.experiment, "label": label})
        for label in ("before", "after")
        for run in (with_settings("lser", 0), with_settings("lser", 1))
    ]
    (panel,) = studies(runs)[0].panels
    assert [arm.name for arm in panel.arms] == ["after", "before"]


def test_two_records_of_one_seed_are_an_error_that_names_both() -> None:
    first = with_settings("lser", 0)
    second = dataclasses.replace(first, path=Path("elsewhere/copy"))
    with pytest.raises(ValueError, match="two records of one seed") as error:
        studies([first, second])
    assert "runs/lser-0" in str(error.value)
    assert "elsewhere/copy" in str(error.value)


def test_where_a_run_was_made_does_not_set_it_apart() -> None:
    runs = [with_settings("lser", 0), with_settings("lser", 1, agent__device="cuda")]
    (panel,) = studies(runs)[0].panels
    assert [len(arm.runs) for arm in panel.arms] == [2]


def test_a_damaged_record_is_left_out_by_its_name() -> None:
    bad = damaged(Path("runs/torn"), "meta.json is not JSON")
    found = studies([bad, synthetic.record("", "lser", 0, level=0.5)])
    assert [(run.where, why) for run, why in found[0].left_out] == [
        ("runs/torn", "damaged: meta.json is not JSON")
    ]
    assert len(found[0].panels) == 1


def test_curves_are_brought_to_the_sessions_all_runs_cover() -> None:
    lines = [[(0, 0.0), (10, 1.0), (20, 2.0)], [(5, 4.0), (10, 4.0), (15, 6.0)]]
    runs = [
        dataclasses.replace(
            synthetic.record("s", "lser", seed, level=0.5),
            curve=[synthetic.line(at, score) for at, score in points],
        )
        for seed, points in enumerate(lines)
    ]
    sessions, scores = studies(runs)[0].panels[0].arms[0].curves
    np.testing.assert_array_equal(sessions, [5, 10, 15])
    np.testing.assert_array_equal(scores, [[0.5, 1.0, 1.5], [4.0, 4.0, 6.0]])


def test_an_arm_without_curves_still_has_scores() -> None:
    run = dataclasses.replace(synthetic.record("s", "lser", 0, level=0.5), curve=[])
    arm = studies([run])[0].panels[0].arms[0]
    assert arm.values.size == 1
    assert arm.areas == {}
    assert arm.curves[0].size == 0


def test_every_estimate_draws_from_a_generator_of_its_own() -> None:
    assert rng_for(0, "a").random() == rng_for(0, "a").random()
    assert rng_for(0, "a").random() != rng_for(0, "b").random()
    assert rng_for(0, "a").random() != rng_for(1, "a").random()


def worlds(study: str) -> list[Record]:
    return [
        synthetic.record(
            study, "lser", seed, level=0.5, simulator={"name": "bazaar", "world_seed": seed % 3}
        )
        for seed in range(100, 106)
    ]


def test_worlds_that_come_with_the_seed_are_pooled_and_others_are_not() -> None:
    [pooled] = studies(worlds("locality"))
    [apart] = studies(worlds("bazaar-map"))
    assert [len(panel.arms[0].runs) for panel in pooled.panels] == [6]
    assert [len(panel.arms[0].runs) for panel in apart.panels] == [2, 2, 2]

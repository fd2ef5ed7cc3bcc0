"""How runs are sorted into studies, panels and arms."""

import dataclasses

import numpy as np
import synthetic

from lser.report.cells import rng_for, studies


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


def test_unfinished_failed_and_repeated_runs_are_left_out_with_the_reason() -> None:
    good = synthetic.record("s", "lser", 0, level=0.5)
    runs = [
        good,
        dataclasses.replace(good),
        synthetic.record("s", "lser", 1, level=0.5, status="failed"),
        synthetic.record("s", "lser", 2, level=0.5, status="running"),
        dataclasses.replace(
            synthetic.record("s", "lser", 3, level=0.5), final={"metric": float("nan")}
        ),
    ]
    study = studies(runs)[0]
    assert [len(arm.runs) for arm in study.panels[0].arms] == [1]
    assert [reason for _, reason in study.left_out] == [
        "repeats the seed of another run",
        "failed: ValueError: <made up> & broken",
        "not finished",
        "its final score is not a finite number",
    ]


def test_runs_of_unlike_length_are_never_pooled() -> None:
    runs = [synthetic.record("s", "lser", 0, level=0.5, sessions=n) for n in (100, 1000)]
    panels = studies(runs)[0].panels
    assert [panel.setting for panel in panels] == ["100 sessions", "1,000 sessions"]


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

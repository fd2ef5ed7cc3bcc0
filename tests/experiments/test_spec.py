"""Studies as data: how arms and panels are named, and the scale of a platform."""

from dataclasses import replace

import pytest

from lser.experiments.experiment import to_json
from lser.experiments.presets import SCALES, preset, released
from lser.experiments.studies import GROUPS, STUDIES, Axis, StudySpec, plan, scale_of, value_at
from lser.experiments.studies.platforms import PLATFORMS, Platform, Policy, ScoreScale

RUN = {"memory": {"bits": 4, "name": "lser"}, "agent": {"name": "ddpg"}, "sessions": 9}


@pytest.mark.parametrize(
    ("path", "value"),
    [("sessions", 9), ("memory.bits", 4), ("memory.none", None), ("sessions.deep", None)],
)
def test_a_setting_is_found_by_its_path(path, value):
    assert value_at(RUN, path) == value
    assert Axis(path).value(RUN) == value


@pytest.mark.parametrize(
    ("axis", "text"),
    [
        (Axis("memory.bits", "{:g} bits"), "4 bits"),
        (Axis("memory.bits"), "4"),
        (Axis("memory.absent", "{:g} bits"), ""),
        (Axis("memory.name", "{:g} bits"), "memory.name lser"),  # a record may hold anything
    ],
)
def test_a_setting_in_words(axis, text):
    assert axis.text(RUN) == text


def test_an_arm_is_named_by_what_is_compared_or_by_its_label():
    plain = StudySpec("s", "t", "q")
    assert plain.arm_name(RUN, "lser, 4 bits") == "lser with 4 bits"  # commas are between names
    named = replace(plain, arm_by=(Axis("memory.name"), Axis("memory.bits", "{} bits")))
    assert named.arm_name(RUN, "x") == "lser with 4 bits"
    assert named.arm_name({}, "x") == "x"
    panels = replace(plain, panel_by=(Axis("sessions", "{} sessions"), Axis("agent.name")))
    assert panels.setting(RUN) == "9 sessions, ddpg"


def test_worlds_come_with_the_seed_and_are_pooled():
    assert StudySpec("s", "t", "q").drawn == ()
    assert StudySpec("s", "t", "q", worlds=3).drawn == ("simulator.world_seed",)


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_says_what_it_is_about(name):
    spec = STUDIES[name]
    assert spec.name == name
    assert spec.about
    assert spec.question.endswith("?")
    cells = list(spec.experiments("quick"))
    labels = {spec.arm_name(to_json(cell), cell.label) for cell in cells}
    assert len(labels) > 1


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_is_its_studies_one_after_the_other(group):
    whole = plan(group, "quick", 1)
    parts = [run for name in GROUPS[group] for run in plan(name, "quick", 1)]
    assert whole == (list(map(released, parts)) if group == "paper" else parts)


def test_what_is_called_paper_runs_in_the_regime_of_its_release():
    runs = plan("paper", "paper", 1)
    assert {run.study for run in runs} == set(GROUPS["paper"])
    assert {(run.horizon, run.updates_per_step, run.users) for run in runs} == {("session", 5.0, 1)}
    agents = {(run.agent.critic, run.agent.norm_gain, run.agent.noise_reset) for run in runs}
    assert agents == {("late-action", "uniform", False)}


def test_a_longer_scale_is_never_shorter():
    for name in STUDIES:
        longest = [max(run.sessions for run in plan(name, scale, 1)) for scale in SCALES]
        assert longest == sorted(longest), name


def test_an_unknown_study_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match="unknown study 'epsilonn'; did you mean epsilon"):
        plan("epsilonn", "quick", 1)


SCALE = ScoreScale(Policy("random", 0.1), Policy("best", 0.5))


def test_a_share_is_the_way_from_random_to_the_best():
    assert [SCALE.share(score) for score in (0.1, 0.3, 0.5)] == pytest.approx([0.0, 0.5, 1.0])
    assert SCALE.score(SCALE.share(0.37)) == pytest.approx(0.37)


def test_a_platform_is_its_name_and_its_settings():
    shop = Platform("shop", {"items": 10, "rate": 0.3, "kind": "a"}, {"ctr": SCALE})
    assert shop.fits({"name": "shop"})  # what a record does not hold is the default
    assert shop.fits({"name": "shop", "items": 10.0, "rate": 0.1 + 0.2, "kind": "a", "new": 1})
    assert not shop.fits({"name": "mall"})
    assert not shop.fits({"name": "shop", "items": 11})
    assert not shop.fits({"name": "shop", "kind": "b"})


@pytest.mark.parametrize("simulator", [None, "bazaar", {}, {"name": "my shop"}, 3])
def test_an_unknown_place_has_no_scale(simulator):
    assert scale_of({"simulator": simulator}, "ctr") is None


def test_a_metric_that_a_platform_does_not_know_has_no_scale():
    plain = to_json(preset("bazaar"))
    assert scale_of(plain, "ctr") is not None
    assert scale_of(plain, "sales") is None


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform.simulator)
def test_the_ends_of_every_scale_are_in_order(platform):
    for scale in platform.scales.values():
        assert scale.random.score < scale.best.score
        if scale.constant is not None:
            assert scale.constant.score <= scale.best.score  # where tastes differ, below random

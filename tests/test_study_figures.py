"""The figures of single studies: equal seeds, honest tests, and scales that were played."""

import pytest

from lser.experiments.studies.platforms import REWARD, scale_of


@pytest.fixture(scope="module")
def locality(build):
    """The figures of D."""
    import sys

    return sys.modules["locality"]


def test_a_share_of_the_possible_is_that_of_the_runs_own_world(locality):
    run = next(run for run in locality._runs()[locality.PRIMARY[-1], "lser"].values())
    world = run.experiment["simulator"]["world_seed"]
    known = locality.world_of(0.005, 1.0, world)
    assert world == run.seed % 3
    assert locality.share(run, known["random"]) == 0
    assert locality.share(run, known["oracle"]) == pytest.approx(1)


def test_every_cell_of_the_map_has_equal_seeds_in_every_arm(locality):
    for cell, gaps in locality.chart().items():
        assert {found.seeds for found in gaps.values()} == {20 if cell in locality.PRIMARY else 10}


def test_locality_pays_where_all_controls_are_beaten_and_costs_where_one_is_not(
    locality, monkeypatch
):
    from lser.report.stats import Interval

    def gaps(*means):
        made = [
            locality.Gap(Interval(m, m - 0.01, m + 0.01), 1e-9 if m else 0.5, 10) for m in means
        ]
        return dict(zip(locality.CONTROLS, made, strict=True))

    first, second, third, fourth = locality.CELLS[:4]
    found = {
        first: gaps(0.1, 0.1, 0.1),
        second: gaps(0.1, -0.1, 0.1),
        third: gaps(0.1, 0.0, 0.1),
        fourth: gaps(0.0, 0.0, -0.1),
    }
    monkeypatch.setattr(locality, "chart", lambda: found)
    assert list(locality.verdicts().values()) == ["pays", "costs", "open", "costs"]


@pytest.fixture(scope="module")
def delayed(build):
    """The figures of E."""
    return build.delayed


def test_the_primary_test_of_delayed_effects_pairs_equal_seeds(delayed):
    ours, theirs = (
        delayed.new(delayed.trained(arm)) for arm in (delayed.BY_RETURN, delayed.BY_REWARD)
    )
    assert ours.keys() == theirs.keys() == set(range(106, 120))
    gaps = [ours[seed] - theirs[seed] for seed in ours]
    assert delayed.primary().mean.estimate == pytest.approx(sum(gaps) / len(gaps))
    assert delayed.primary().seeds == len(gaps)


def test_reward_and_metric_are_one_on_long_term_satisfaction(delayed):
    for arm in delayed.runs():
        assert delayed.trained(arm) == pytest.approx(delayed.final(arm))


def test_arms_of_delayed_effects_differ_in_their_memory_or_agent_alone(delayed):
    settings = [
        {k: v for k, v in run.experiment.items() if k not in ("memory", "agent", "label", "seed")}
        for runs in delayed.runs().values()
        for run in runs.values()
    ]
    assert all(one == settings[0] for one in settings)
    by_return, by_reward = (
        dict(delayed.runs()[arm][100].experiment["memory"])
        for arm in (delayed.BY_RETURN, delayed.BY_REWARD)
    )
    assert (by_return.pop("order"), by_reward.pop("order")) == ("return", "reward")
    assert by_return == by_reward


def test_a_verdict_needs_its_interval_and_holm(delayed):
    from lser.report.stats import Interval

    assert delayed.verdict(Interval(1.0, 0.1, 2.0)) == "above"
    assert delayed.verdict(Interval(-1.0, -2.0, -0.1)) == "below"
    assert delayed.verdict(Interval(1.0, -0.1, 2.0)) == "not separated"
    assert delayed.verdict(Interval(1.0, 0.1, 2.0), 0.06) == "not separated"


def test_the_lead_is_a_ratio_at_equal_seeds_in_the_worlds_of_the_plan(build):
    lead = build.lead
    dial = lead.GROWN[0]
    ours, theirs = (lead.lead().learning[dial, arm] for arm in (lead.OURS, lead.EARNS[0]))
    assert ours.keys() == theirs.keys() == set(range(610, 610 + lead.SEEDS))
    found = lead.ratio(lead.lead().learning, dial, lead.EARNS[0]).times
    product = 1.0
    for seed in ours:
        product *= ours[seed] / theirs[seed]
    assert found.estimate == pytest.approx(product ** (1 / len(ours)))
    assert lead.ratio(lead.lead().learning, dial, lead.OURS).times.estimate == pytest.approx(1)


def test_the_lead_holds_only_above_one_at_every_dial(build, monkeypatch):
    from lser.report.stats import Interval

    lead = build.lead
    sure = lead.Ratio(Interval(1.3, 1.2, 1.4), 1e-4, 4), 1e-3
    unsure = lead.Ratio(Interval(1.3, 0.9, 1.8), 0.2, 4), 0.2
    monkeypatch.setattr(lead, "primary", lambda: dict.fromkeys(lead.GROWN, sure))
    assert lead.holds()
    monkeypatch.setattr(lead, "primary", lambda: {**dict.fromkeys(lead.GROWN, sure), 0: unsure})
    assert not lead.holds()


def test_the_scales_of_bazaar_are_what_was_played(build):
    import json

    from lser.experiments.studies.worlds import WORLDS

    rows = json.loads((build.RESULTS / "worlds.json").read_text())
    usual = {"patience": 3.0, "drift": 0.05}
    assert [world._asdict() for world in WORLDS] == [{**usual, **row} for row in rows]


def test_what_simple_learners_score_is_what_was_measured(build):
    import json

    from lser.experiments.studies import REWARD, scale_of

    rows = json.loads((build.RESULTS / "references.json").read_text())
    names = {"ridge": "linear bandit", "popular": "popular"}
    for platform, key in (
        *(("virtual-taobao", "metric"), ("long-term-satisfaction", "metric")),
        *(
            ("interest-evolution", "metric"),
            ("interest-evolution", "reward"),
            ("recogym", "metric"),
        ),
    ):
        metric = {"virtual-taobao": "ctr", "recogym": "ctr", "interest-evolution": "quality"}
        name = REWARD if key == "reward" else metric.get(platform, "reward_per_step")
        known = {p.name: p.score for p in scale_of({"simulator": {"name": platform}}, name).others}
        for agent, shown in names.items():
            found = [r[key] for r in rows if (r["platform"], r["agent"]) == (platform, agent)]
            assert known[shown] == pytest.approx(
                sum(found) / len(found), abs=6e-4 + 6e-3 * abs(known[shown])
            )


def test_the_neural_bandit_of_virtual_taobao_is_uniform_replay_without_foresight(build):
    arm = build.panel_of("horizon", "virtual-taobao", "session, discount 0").panel.arm("uniform")
    panel = build.panel_of("comparison", "virtual-taobao", "15,000 sessions").panel
    known = {policy.name: policy.score for policy in panel.scale.others}
    assert known["neural bandit"] == pytest.approx(arm.values.mean(), abs=6e-4)


@pytest.fixture(scope="module")
def recommender(build):
    """The figures of O."""
    return build.recommender


def test_the_demo_s_arms_have_the_seeds_of_the_plan_in_each_world(recommender):
    wanted = {
        (world, 700 + at) for world, seeds in recommender.SEEDS.items() for at in range(seeds)
    }
    found = recommender.found()
    assert len(found.final) == 6
    for scores in (*found.final.values(), *found.learning.values()):
        assert scores.keys() == wanted


def test_the_primary_test_of_the_demo_needs_its_ratio_and_every_world(recommender, monkeypatch):
    from lser.report.stats import Interval

    above, open_ = Interval(0.03, 0.01, 0.05), Interval(0.03, -0.01, 0.07)
    monkeypatch.setattr(recommender, "TARGET", 0.0)
    monkeypatch.setattr(recommender, "gap", lambda arm, world: above)
    assert recommender.holds()
    monkeypatch.setattr(recommender, "gap", lambda arm, world: open_ if world == 2 else above)
    assert not recommender.holds()
    monkeypatch.setattr(recommender, "gap", lambda arm, world: above)
    monkeypatch.setattr(recommender, "TARGET", 9.0)
    assert not recommender.holds()


@pytest.fixture(scope="module")
def regime(build):
    """A of the plan."""
    return build.paper_regime


def test_every_arm_of_the_papers_regime_has_its_ten_seeds(regime):
    for half, first in ((regime.masked(), 140), (regime.continuing(), 100)):
        for curves in half.curves.values():
            assert sorted(curves) == list(range(first, first + 10))
            assert {curve[-1]["sessions"] for curve in curves.values()} == {half.until}
    assert regime.masked().until == 70_000


def test_runs_that_never_get_there_count_as_that_long(regime):
    half = regime.masked()
    there, never = regime.needed(half, "lser")
    assert (there, never) == ([], [half.until] * 10)
    low = {arm: {140: [{"sessions": 9.0, "metric": 0.0}]} for arm in regime.ARMS}
    assert regime.sooner(regime.Half(low, low, 9)) is None
    there, never = regime.needed(regime.continuing(), "lser")
    assert len(there) + len(never) == 10
    assert all(sessions <= 12_000 for sessions in there)


@pytest.mark.parametrize(
    ("sessions", "seen"), [((14_000,) * 3, False), ((16_000,) * 3, True), ((30_000, 0, 0), False)]
)
def test_the_papers_time_scale_is_seen_where_the_median_run_is_near_it(regime, sessions, seen):
    def curve(at):
        return [{"sessions": float(at), "metric": 1.0}] if at else [{"sessions": 9, "metric": 0.0}]

    lser = {seed: curve(at) for seed, at in enumerate(sessions)}
    never = {seed: curve(0) for seed in range(3)}
    half = regime.Half({"lser": lser, "uniform": never, "reward-top": never}, {}, 90_000)
    assert regime.seen(half) == seen


def test_bounded_runs_differ_from_those_as_printed_in_bound_and_length_alone(build, regime):
    for arm in build.regime_bounded.MEMORIES:
        for run in build.regime_bounded.runs(arm):
            mine, its = dict(run.experiment), dict(regime.runs()[arm][run.seed].experiment)
            assert mine["agent"] == {**its["agent"], "value_bound": "auto"}
            for name in ("agent", "sessions", "label"):
                del mine[name], its[name]
            assert mine == its


def test_interests_that_drift_are_compared_over_equal_seeds(build):
    drifting = build.interest
    ours, theirs = drifting.trained(drifting.OURS), drifting.trained(drifting.REFERENCE)
    assert sorted(ours) == sorted(theirs) == list(range(100, 120))
    mean = sum(ours[seed] - theirs[seed] for seed in ours) / len(ours)
    assert drifting.primary().mean.estimate == pytest.approx(mean)


@pytest.mark.parametrize(("metric", "key"), [("quality", "metric"), (REWARD, "reward_per_step")])
def test_the_bandits_of_the_quality_scale_are_those_that_ran(build, metric, key):
    drifting = build.interest
    run = drifting.runs()[drifting.REFERENCE][100]
    known = {policy.name: policy.score for policy in scale_of(run.experiment, metric).others}
    for arm, name in (("ridge", "linear bandit"), ("ridge-thompson", "linear bandit, Thompson")):
        scores = drifting._final(arm, key).values()
        assert known[name] == pytest.approx(sum(scores) / len(scores), abs=0.006)

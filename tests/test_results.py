"""The numbers that the READMEs quote are those of the committed results."""

import importlib.util
import re
from pathlib import Path

import pytest

from lser.experiments import records
from lser.experiments.studies.platforms import REWARD, scale_of

BUILD = Path(__file__).resolve().parents[1] / "results" / "build.py"


@pytest.fixture(scope="module")
def build():
    """The script that writes the blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BUILD.parent))  # it imports what lies beside it
        spec = importlib.util.spec_from_file_location("results_build", BUILD)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


@pytest.fixture(scope="module")
def readmes(build):
    """The READMEs as they should be, written once: it takes seconds."""
    return build.readmes()


def test_the_readmes_quote_the_results_files(readmes):
    for path, text in readmes.items():
        assert path.read_text() == text, f"{path.name} is stale: run python results/build.py"


def test_a_changed_number_would_be_noticed(build, readmes):
    front = next(iter(readmes.values()))
    changed = build.with_block(front, "results", "LSER is always best.")
    assert changed != front


def test_every_picture_of_the_readme_exists(readmes):
    for path, text in readmes.items():
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text):
            assert (path.parent / target).is_file(), target


def test_the_site_shows_the_results_with_the_first_screen_first():
    page = (BUILD.parents[1] / "docs" / "results.md").read_text()
    assert 0 < page.index("\n@block first\n") < page.index("\n@block studies\n")


def test_every_study_is_told_once_behind_a_line_of_its_own(build, readmes):
    page = build.with_block(readmes[build.RESULTS / "README.md"], "studies", "")
    told = {**build.OUTCOMES, **build.of_sections()}
    del told["outcome_i"]  # the grid and the comparison, which the page has the other way round
    studies = build.by_study.page()
    for name, reading in told.items():
        assert studies.count(reading()) == 1, name
        assert reading() not in page, name
    assert studies.count("<details") == studies.count("</details>") > len(told)


def test_a_line_says_what_came_of_a_study(build):
    summary = build.by_study.summary
    assert summary("**A** (x). The test **holds**: LSER is better. **B**.") == (
        "<b>A</b>: holds: LSER is better"
    )
    assert summary("**A** (x). It **is open**, 1.2.\n\n**B**") == "<b>A</b>: open"
    assert summary("**A.** And `lser`.") == "<b>A</b>"
    assert summary("**A**. *Near* it **pays**; *Far* away (x) it **costs**.") == (
        "<b>A</b>: near pays; far costs"
    )
    assert summary("**`a` wins** **b**") == "<b><code>a</code> wins</b>: b"


def test_what_pages_of_the_site_show_of_a_study_is_marked(build):
    for name in ("locality", "delayed", "lead"):
        text = build.by_study.page()
        inside = text.partition(f"<!-- {name}:begin -->")[2].partition(f"<!-- {name}:end -->")[0]
        assert inside.strip().startswith("**"), name


def test_every_experiment_is_planned_on_seeds_that_no_result_has_used(build):
    plan = (BUILD.parent / "plan.md").read_text()
    rows = re.findall(r"^\| \*\*([A-J])\*\* \|.*\| (\d+) to \d+[^|]*\|[^|]*\|[^|]*\|$", plan, re.M)
    assert [name for name, _ in rows] == list("ABCDEFGHIJ")
    planned = {
        "confirmation",
        "length",
        "cure",
        "delayed",
        "demo",
        "fall",
        "interest",
        "lead",
        "lead-bounded",
        "locality",
        "options",
        "offers",
        "paper-regime",
        "recommender",
    }  # themselves planned
    used = {run.seed for run in build.found() if run.study not in planned}
    assert all(int(first) > max(used) for _, first in rows)


def test_what_was_seen_before_is_listed(build, readmes):
    text = readmes[build.RESULTS / "README.md"]
    for commit in ("7e60a29", "aacbab0", "4a9aa45", "a133c47"):
        assert commit in text


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


def test_what_was_lost_is_said(build, readmes):
    text = readmes[build.RESULTS / "README.md"]
    assert "paper regime (A), masked, seeds 100 to 109" in text


def test_no_table_of_the_readmes_has_a_number_that_is_none(readmes):
    for path, text in readmes.items():
        assert not re.search(r"\bnan\b", text), path


FOUND = re.compile(r"([+-]?\d*\.\d+) \[([+-]?\d*\.\d+), ([+-]?\d*\.\d+)\]")


def intervals(text):
    """Every estimate with its interval, as numbers."""
    plain = text.replace("\u2212", "-")
    return [tuple(float(number) for number in found) for found in FOUND.findall(plain)]


def decimals(text):
    """Every number with a point, with how many digits it has behind it."""
    plain = text.replace("\u2212", "-")
    found = re.findall(r"(?<![\w.])[+-]?(\d*\.(\d+))(?!\w)", plain)
    return [(float(number), len(digits)) for number, digits in found]


@pytest.mark.parametrize(("letter", "script"), [("D", "locality"), ("K", "cure"), ("L", "demo")])
def test_the_numbers_of_the_plan_are_those_that_the_scripts_print(build, letter, script, capsys):
    plan = (BUILD.parent / "plan.md").read_text()
    outcome = re.search(rf"^\*\*Outcome of {letter}\*\*.*?\n\n", plan, re.M | re.S)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BUILD.parent))
        importlib.import_module(script).main()
    printed = capsys.readouterr().out
    known = [number for number, _ in decimals(printed)]
    for number, digits in decimals(outcome.replace("mean .95 or more", "")):  # a target
        near = 0.5 * 10**-digits + 1e-9
        assert any(abs(number - other) <= near for other in known), number
    quoted, whole = intervals(outcome), intervals(printed)
    assert quoted
    for one in quoted:
        assert any(one == pytest.approx(other, abs=6e-4) for other in whole), one


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


def test_the_scales_of_bazaar_are_what_was_played():
    import json

    from lser.experiments.studies.worlds import WORLDS

    rows = json.loads((BUILD.parent / "worlds.json").read_text())
    usual = {"patience": 3.0, "drift": 0.05}
    assert [world._asdict() for world in WORLDS] == [{**usual, **row} for row in rows]


def test_what_simple_learners_score_is_what_was_measured():
    import json

    from lser.experiments.studies import REWARD, scale_of

    rows = json.loads((BUILD.parent / "references.json").read_text())
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


def test_no_page_reads_what_the_plan_keeps_unread(build, monkeypatch, tmp_path):
    committed = importlib.import_module("committed")
    some = sorted(BUILD.parent.glob(records.PACKED))[0]
    for folder in (tmp_path, tmp_path / "unread"):
        folder.mkdir(exist_ok=True)
        (folder / f"{folder.name}.jsonl.gz").write_bytes(some.read_bytes())
    monkeypatch.setattr(committed, "RESULTS", tmp_path)
    assert len(committed.packed()) == len(records.find(some))

"""What the scripts of C, S, T, H, J and B say of made-up runs, before and after there are any."""

import importlib
from dataclasses import replace

import numpy as np
import pytest

from lser.experiments import records
from lser.report.claims import claims_table
from lser.report.findings import find_out
from lser.report.overview import overview
from lser.report.sorting import studies
from made_up import READ, RESULTS, pack, run


def confirmation(scripts, levels, noise=None, **more):
    chosen = scripts["cells"].chosen("c", scripts["cells"].Choice(noise=noise))
    pack(scripts["confirmation"], [run(one, levels[one.label], **more) for one in chosen])


LEVELS = {"lser": 0.86, "uniform": 0.71, "reward-top": 0.9, "shuffled-code": 0.86}


def test_what_has_not_run_says_nothing(fresh, monkeypatch):
    for kind in (fresh["control"].Control, fresh["slow"].Left):
        monkeypatch.setattr(kind, "known", lambda _: False)
    for name in READ:
        assert (fresh[name].reading(), fresh[name].block()) == ("", "")
    section = fresh["sections"].section
    assert [letter for letter in fresh["sections"].SECTIONS if section(letter)] == ["k"]
    told = fresh["sections"].outcomes()
    assert {name for name, said in told.items() if said()} == {"outcome_k"}  # packed from the start


def test_c_holds_where_lser_is_above_uniform_after_holm(fresh):
    confirmation(fresh, LEVELS)
    script = fresh["confirmation"]
    assert script.outcome() == "above"
    told = script.reading()
    assert "**holds**" in told
    assert told.count("all 80 runs complete") == 2
    assert "20 paired seeds" in told
    found = script.runs(0.1).against("lser", script.CONTROLS)
    assert [script.verdict(one.mean, p) for one, p in found.values()][:2] == ["above", "below"]
    assert found["uniform"][0].mean.estimate == pytest.approx(0.15, abs=0.02)
    assert "LSER minus each" in script.in_short()


def test_c_is_read_without_its_second_level_of_noise(fresh):
    confirmation(fresh, LEVELS, noise=0.1)
    assert "Noise .3 was not run." in fresh["confirmation"].block()
    assert fresh["confirmation"].outcome() == "above"


@pytest.mark.parametrize(("level", "said"), [(0.5, "does not hold"), (0.71, "is open")])
def test_c_may_not_hold_or_stay_open(fresh, level, said):
    confirmation(fresh, {**LEVELS, "lser": level, "uniform": 0.71 if level < 0.7 else 0.7105})
    assert f"**{said}**" in fresh["confirmation"].reading()


def test_runs_that_were_cut_off_are_scored_where_they_stood(fresh):
    confirmation(fresh, LEVELS, status="stopped", share=0.9)
    told = fresh["confirmation"].reading()
    assert "0 of 80 runs complete" in told
    assert "scored at 13,500 to 13,500 sessions" in told


def test_runs_without_a_score_at_the_end_are_read_where_all_of_them_stand(fresh):
    chosen = fresh["cells"].chosen("b", fresh["cells"].Choice())
    made = [replace(run(one, 0.8, status="stopped"), final=None) for one in chosen]
    made[0] = replace(made[0], curve=made[0].curve[:15])
    pack(fresh["fall"], made)
    found = fresh["fall"].runs()
    assert found.points == 15
    assert {len(found.curve(one)) for one in found.everything} == {15}


def test_failed_runs_have_no_score_and_are_said(fresh):
    chosen = fresh["cells"].chosen("h", fresh["cells"].Choice())
    made = [run(one, 0.8) for one in chosen if one.study == "options"]
    made[0] = run(chosen[0], 0.8, status="failed")
    pack(fresh["options"], made)
    assert "all 129 runs complete, 1 more failed" in fresh["options"].reading()


def test_s_compares_what_was_cut_off_where_it_stood(fresh):
    chosen = fresh["cells"].chosen("s", fresh["cells"].Choice())
    levels = {"lser": 0.8, "uniform": 0.9, "reward-top": 0.7}
    made = [
        run(one, levels.get(one.label, 0.5), status="stopped", share=0.5)
        if one.label in ("per", "der")
        else run(one, levels.get(one.label, 0.5), peak=0.95 * (one.label == "lser"))
        for one in chosen
    ]
    pack(fresh["length"], made)
    script = fresh["length"]
    told = script.reading()
    assert script.outcome() == "below"
    assert "**does not hold**: LSER ends below uniform" in told
    assert "80 of 100 runs complete" in told
    assert "PER and DER were cut off by time" in told
    assert "at 45,000" in told
    assert "LSER 20 of 20" in told  # fell
    for arm in ("lser", "uniform"):  # values are .9 of the bound, rewards ten times the metric
        curves = [made.curve[-script.LAST :] for made in script.runs().runs[arm].values()]
        earned = [np.mean([p["metric"] for p in curve]) for curve in curves]
        assert script.runs().belief(arm).excess == pytest.approx(0.9 - np.median(earned))
    assert script.secondary()["reward-top"][0].seeds == 10
    assert script.primary().seeds == 20
    assert script.in_short()
    assert script.table().count("\n") == script.critics().count("\n") == 9


def test_t_compares_with_k_and_with_what_s_has_as_printed(fresh):
    cells = fresh["cells"]
    printed = [run(one, 0.5, peak=0.9) for one in cells.chosen("s", cells.Choice())]
    pack(fresh["length"], printed)
    levels = {"aer with the cure": 0.965, "per with the cure": 0.6, "her with the cure": 0.3}
    chosen = cells.chosen("k", cells.Choice(arms=list(levels), seeds=17))
    made = [
        run(one, level, status="stopped", share=0.5) if "per" in one.label else run(one, level)
        for one in chosen
        for level in (levels[one.label],)
    ]
    for one in made:
        for line in (*one.curve, one.final):
            line["learning_metric"] = 0.5
    pack(fresh["like_with_like"], made)
    script = fresh["like_with_like"]
    assert list(script.primary()) == ["per with the cure", "aer with the cure", "her with the cure"]
    assert {one.seeds for one, _ in script.primary().values()} == {17}
    told = script.reading()
    assert "34 of 51 runs complete" in told
    assert "PER was cut off by time and is compared where it stood" in told
    assert "HER 0 of 17 (as printed 10 of 10)" in told  # fell
    assert "Not run in T: DER, SER and shuffled-code. " in told
    assert "HER 0.500 and 0.3" in told  # without the cure and with it
    assert (script.beaten(), script.level()) == (["PER (at 45,000)", "HER"], ["AER"])
    assert script.table().count("\n") == 1 + 3 + 3  # K's arms are there


def test_the_way_of_a_run_that_leaves_a_plateau(scripts):
    heights = [0.5, 0.9, 0.85, 0.6, 0.4, 0.5, 0.6, 0.7, 0.8, 0.95, 1.0]
    curve = [{"sessions": 1_500 * n, "metric": height} for n, height in enumerate(heights)]
    found = scripts["cure"].way(curve)
    assert found == (0.9, 3_000, 0.4, 6_000, 13_500)
    assert scripts["cure"].longest_fall(curve) == 6_000  # from the first point below to the last
    assert scripts["cure"].way(curve[:8]).back is None


def test_options_are_told_by_their_side_of_lser(fresh):
    levels = {"store reward of 10k": 0.2, "newest 8": 0.95}
    chosen = fresh["cells"].chosen("h", fresh["cells"].Choice())
    made = [run(one, levels.get(one.label, 0.8)) for one in chosen if one.study == "options"]
    pack(fresh["options"], made)
    told = fresh["options"].reading()
    assert "above it end `newest 8` +0.1" in told
    assert "below it end `store reward of 10k`" in told
    assert "not separated from it: " in told
    assert "After Holm over the 12" in told


def test_the_spread_is_split_into_what_seeds_share_and_what_they_do_not(fresh):
    script = fresh["reruns"]
    own = np.arange(10) / 10
    places = {
        place: dict(enumerate(own + apart))
        for place, apart in zip(script.PLACES, (-0.1, 0.0, 0.1), strict=True)
    }
    found = script.spread(places)
    assert found.within == pytest.approx(0.1)  # the standard deviation of -.1, 0 and .1
    assert found.between**2 == pytest.approx(own.var(ddof=1) - 0.01 / 3)
    assert found.share == pytest.approx(0.01 / (0.01 + found.between**2))
    alike = {place: dict.fromkeys(range(10), at) for at, place in enumerate(script.PLACES)}
    assert script.spread(alike)[1] == 0  # never below


def test_reruns_are_read_over_the_seeds_that_every_place_has(fresh):
    confirmation(fresh, LEVELS)
    cells = fresh["cells"]
    again = [run(one, 0.8) for one in cells.rerun(cells.FLEET)]
    again += [run(one, 0.8) for one in cells.rerun(cells.CPU) if one.seed < 107]
    pack(fresh["reruns"], again)
    told = fresh["reruns"].reading()
    assert "7 seeds of 10" in told
    assert "run 3 times" in told
    assert "34 runs complete" in told


def test_runs_fall_where_they_end_below_their_best(fresh):
    chosen = fresh["cells"].chosen("b", fresh["cells"].Choice(sessions=25_000))
    made = [run(one, 0.9 if one.label == "uniform" else 0.5, peak=0.9) for one in chosen]
    pack(fresh["fall"], made)
    script = fresh["fall"]
    assert sum(script.runs().fallen("lser").values()) == 10
    assert sum(script.runs().fallen("uniform").values()) == 0
    assert script.primary()["uniform"] == pytest.approx(8 * 2 / 2**10)
    told = script.reading()
    assert "**decides for uniform (p = 0.016)**" in told
    assert "below it: uniform −0." in told
    assert list(script.runs().runs)[:2] == ["lser", "a coin per item"]
    assert "25,000 sessions of the 60,000 planned, 10 seeds of 20" in told
    depth, p = script.secondary()["uniform"]
    assert depth.mean.high < 0
    assert p < 0.05


def test_the_exact_test_over_pairs():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(RESULTS))
        mcnemar = importlib.import_module("fall").mcnemar
    falls, stays = dict.fromkeys(range(10), True), dict.fromkeys(range(10), False)
    assert mcnemar(falls, stays) == pytest.approx(2 / 2**10)
    assert mcnemar(falls, falls) == 1
    assert mcnemar({**falls, 0: False}, {**stays, 99: True}) == pytest.approx(2 / 2**9)


def test_what_is_packed_has_ended_and_is_of_the_study(fresh, tmp_path):
    scored = fresh["scored"]
    with pytest.raises(ValueError, match="no run of fall has ended"):
        scored.gather("fall", tmp_path / "fall.jsonl.gz", tmp_path)
    made = [run(one, 0.8) for one in fresh["cells"].chosen("h", fresh["cells"].Choice())]
    records.pack([*made, replace(made[0], meta={"status": "died"})], tmp_path / "all.jsonl.gz")
    scored.gather("options", tmp_path / "options.jsonl.gz", tmp_path / "all.jsonl.gz")
    assert len(records.find(tmp_path / "options.jsonl.gz")) == 130


def test_new_seeds_are_a_row_of_the_table_and_words_of_the_claims(fresh):
    confirmation(fresh, LEVELS)
    chosen = fresh["cells"].chosen("b", fresh["cells"].Choice())
    fall = [run(one, 0.8 - 0.1 * ("T_r" in one.label)) for one in chosen]
    plain = [
        run(replace(one, study="comparison", seed=one.seed - 100), LEVELS[one.label])
        for one in fresh["cells"].chosen("c", fresh["cells"].Choice())
        if one.agent.noise_scale == 0.1
    ]
    found = find_out(studies([*plain, *records.find(fresh["confirmation"].FILE), *fall]))
    rows = overview(found).table.rows
    assert [row[0] for row in rows if "new seeds, noise 0.1" in row[0]]
    words = {row[0]: row[2] for row in claims_table(found).rows}
    ends = next(text for claim, text in words.items() if claim.startswith("LSER ends above"))
    assert "; LSER minus uniform: new seeds, noise 0.1 +0.1" in ends
    falls = next(text for claim, text in words.items() if claim.startswith("After its peak"))
    assert "; new seeds, 60,000: LSER 0 of 10, uniform 0 of 10" in falls

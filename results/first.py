"""What a reader meets first: one sentence, one table, the paper's claims, one figure."""

import json
from collections.abc import Mapping
from typing import NamedTuple

import at_length
import confirmation as new_seeds
import control
import cure
import interest_watch
import length
import like_with_like
import more_seeds
import offers
import parts
import regions
import regions_large
import rows
import taobao_tuning
import tuned_alike
from committed import RESULTS, findings, panel_of
from delayed import (
    BANDITS,
    BY_RETURN,
    BY_REWARD,
    REFERENCE,
    new,
    primary,
    scale,
    secondary,
    trained,
    verdict,
)
from demo import added
from lead import DIALS, holds, lead, ratio, times
from locality import LONG, PRIMARY, gap, shares
from paper_regime import in_short
from recommender import found as recommender_runs
from words import confirmation, confirmed

from lser.cli.demo import EARNS, ENDS
from lser.report.claims import claims_table
from lser.report.overview import in_one_sentence, overview
from lser.report.stats import Interval
from lser.report.style import interval, listing, name_of, number

COMPARED = (
    ("virtual-taobao", "15,000 sessions"),
    *(("interest-evolution", ""), ("recogym", ""), ("long-term-satisfaction", "")),
)
ANSWER = (
    "As printed, LSER leads early on VirtualTaobao and falls later; with a cure (lser-steady), of "
    "which the newest transitions in every batch are enough to keep it from falling, it ends above "
    "uniform replay at the paper's length. With every memory tuned alike it does not "
    "win, in two settings it does harm, and what locality itself adds is seen on our own simulator "
    "alone, where it beats one bucket for everybody with small batches only."
)


def answer() -> str:
    """The results in two sentences; an error where the records no longer carry them."""
    evidence()
    fell = length.runs().fallen("lser")
    carried = {
        "leads early": new_seeds.outcome() == "above",
        "falls later": length.outcome() != "above" and sum(fell.values()) > len(fell) / 2,
        "with a cure": cure.primary().low > 0.5,
        "the newest are enough": parts.answer("the newest alone").startswith("keeps"),
        "tuned alike": taobao_tuning.below("uniform") and tuned_alike.below("uniform"),
        "locality": regions.holds(),
        "on our own simulator alone": not control.found(),
        "small batches": regions_large.HELD.rule(regions_large.by_discount()[0]) == "costs",
    }
    if missing := [part for part, there in carried.items() if not there]:
        raise ValueError(f"the records no longer carry the answer: {listing(missing)}")
    return ANSWER


def evidence() -> str:
    """The numbers behind the answer; an error where they no longer carry it."""
    taobao, longest = (
        panel_of("comparison", "virtual-taobao", f"{sessions} sessions")
        for sessions in ("15,000", "90,000")
    )
    sure, top = confirmed(taobao), taobao.against("lser", "reward-top")
    last = longest.against("lser", "uniform")
    interest = panel_of("comparison", "interest-evolution").measured("lser")
    assert top is not None
    assert last is not None
    assert interest is not None
    assert interest.reward_versus is not None
    harm = interest.reward_versus
    cured = panel_of("cure", "virtual-taobao")
    held = cured.against("lser with the cure", "uniform with the cure")
    hashed = cured.against("lser with the cure", "reward-top with the cure")
    assert held is not None
    assert hashed is not None
    users, nobody = (
        gap(shares(cell, "lser", LONG), shares(cell, "shuffled-code", LONG)).mean
        for cell in (PRIMARY[-1], PRIMARY[0])
    )
    said = [p.verdict for p in (sure, top, last, harm, held, hashed)]
    delay, p = secondary()[BY_REWARD]
    said.append(verdict(delay.mean, p))
    little = users.low > 0 and users.high < 0.1 and nobody.low > 0
    if said != ["above", "open", "open", "below", "above", "open", "below"] or not little:
        raise ValueError("the records no longer say what the answer says")
    return (
        f"At 15,000 sessions {confirmation(taobao)}; reward order without any hash does at least "
        f"as well (LSER minus reward-top {signed(top.difference)}); at the paper's 90,000 "
        f"sessions, five seeds, the lead is not there ({signed(last.difference)}). With values "
        "bounded by what rewards allow and the 8 newest transitions in every batch, for LSER and "
        "uniform alike, and with LSER's coin tossed for every item and its random draws from the "
        "whole memory, it is: "
        f"LSER minus uniform {signed(held.difference)} at 90,000 sessions, on seeds 100 to 119, "
        "planned before they ran; LSER minus reward-top with the same cure "
        f"{signed(hashed.difference)}. On Bazaar with rare clicks LSER ends above the same "
        f"buckets filled at random by {signed(users)} of the possible where the right page "
        f"depends on the user alone, and by {signed(nobody)} where it does not. "
        "On interest evolution "
        f"LSER minus uniform is {signed(harm.difference)} in the reward per step that it is "
        "trained for; where effects are delayed (long-term satisfaction with a trade-off, "
        f"{delay.seeds} new seeds) {signed(delay.mean)}."
    )


def simple() -> str:
    """What a linear bandit, which needs no memory, scores beside the best memory."""
    parts = []
    for name, setting in COMPARED:
        panel = panel_of("comparison", name, setting)
        trained = name == "interest-evolution"
        scale = panel.panel.reward_scale if trained else panel.panel.scale
        assert scale is not None
        bandit = next(policy.score for policy in scale.others if policy.name == "linear bandit")
        means = {
            arm.name: _mean(arm.rewards if trained else arm.scores) for arm in panel.panel.arms
        }
        best = max(means, key=means.__getitem__)
        ours = "" if best == "lser" else f"; LSER {_short(means['lser'])}"
        parts.append(
            f"{panel.panel.place.partition(',')[0]} {_short(bandit)} (best memory: "
            f"{name_of(best)} {_short(means[best])}{ours})"
        )
    return (
        "**A linear bandit needs no memory, and is hard to beat**: after 300 to 1,000 sessions "
        f"(two seeds) it has a CTR or a reward per step of {'; '.join(parts)}. The memories' "
        "scores are DDPG's after 1,000 sessions, on VirtualTaobao after 15,000."
    )


def _short(value: float) -> str:
    return number(value, digits=4 if value < 0.1 else None)


def _mean(scores: Mapping[int, float]) -> float:
    return sum(scores.values()) / len(scores)


def later() -> str:
    """What E and N say, in two sentences; the words in full stand further down."""
    found = primary()
    ends = [_mean(new(trained(arm))) for arm in (BY_RETURN, BY_REWARD, REFERENCE, BANDITS[0])]
    known = scale()
    assert known.constant is not None
    delay = (
        "**Where effects are delayed** (long-term satisfaction with a trade-off, E of the plan, "
        f"{found.seeds} seeds) LSER in order of return has a reward per step of {ends[0]:.2f}, in "
        f"order of reward {ends[1]:.2f}, {signed(found.mean)}; uniform replay {ends[2]:.2f}, "
        f"linear bandits {ends[3]:.2f}, random documents {known.random.score:.2f}, the best "
        f"constant {known.constant.score:.2f}, the optimum {known.best.score:.2f}."
    )
    return "\n\n".join(filter(None, [f"{delay} {_grown()}", _where_they_learn()]))


def _grown() -> str:
    """What P says."""
    leads = [ratio(lead().learning, dial, EARNS[0]) for dial in DIALS]
    least, most = (pick(leads, key=lambda one: one.times.estimate) for pick in (min, max))
    kept = "keeps" if holds() else "does not surely keep"
    return (
        f"**As patience and drift grow** (P, {least.seeds} seeds) the recommender {kept} its lead "
        f"over the linear bandit tuned to earn: {times(least.times)} to {times(most.times)} times "
        "its CTR while learning, over five dials."
    )


def _where_they_learn() -> str:
    """What F by watch time and G say, each once it has run."""
    parts = []
    if interest_watch.there():
        step, session = interest_watch.primary(), interest_watch.primary("reward")
        parts.append(
            "**On interest evolution paid by watch time, with sessions as terminal** (F, "
            f"{step.seeds} seeds) LSER minus uniform is {signed(step.mean)} in reward per step "
            f"and {signed(session.mean)} in watch time per session."
        )
    if offers.there():
        gain, bandits = (
            offers.versus(offers.OURS),
            [a for a in offers.BANDITS if a in offers.arms()],
        )
        best = max((_mean(offers.pooled(arm)) for arm in bandits), default=None)
        beside = "" if best is None else f"; the best linear bandit has {best:.2f}"
        levels = [_mean(offers.pooled(arm)) for arm in (offers.OURS, offers.REFERENCE)]
        parts.append(
            f"**On RecoGym paid by expected clicks** (G, {gain.seeds} seeds in five worlds) LSER "
            f"has {levels[0]:.2f} and uniform {levels[1]:.2f} of the way from random products to "
            f"the oracle, {signed(gain.mean)}{beside}."
        )
    return " ".join(parts)


class OfTheDemo(NamedTuple):
    """The recommender's CTR over that of bandits, and what its memory adds."""

    earns: list[float]
    """Times that of bandits tuned to earn, while learning."""
    ends: list[float]
    """Times that of bandits tuned for the end, there."""
    late: Interval
    """LSER minus uniform replay at the end."""
    early: Interval
    """The same while learning."""


def of_the_demo() -> OfTheDemo:
    """What O shows of the recommender and its memory; an error where it no longer does."""
    found = recommender_runs()
    late, early = added(found.final)[0], added(found.learning)[0]
    ends = [found.times(arm) for arm in ENDS]
    earns = [found.times(arm, learning=True) for arm in EARNS]
    if max(late.low, early.low) > 0:
        raise ValueError("the memory of the demo's recommender is no longer without use")
    if not (min(earns) > 1.1 and min(ends) > 1):
        raise ValueError("the demo's recommender no longer stands as the text says")
    return OfTheDemo(earns, ends, late, early)


def recommender() -> str:
    """The same in words."""
    earns, ends, late, early = of_the_demo()
    return (
        "**The recommender to use is a click model, and it needs no LSER**: on Bazaar, "
        f"1,000 sessions, three worlds, it earns {earns[0]:.2f} and {earns[1]:.2f} times the CTR "
        "of linear bandits tuned to earn while learning (the second knows the items of a page) "
        f"and ends at {ends[0]:.2f} and {ends[1]:.2f} times the CTR of bandits tuned for the end, "
        "which explore at random all the while. LSER minus uniform replay with the same model and "
        f"cure: {signed(late)} at the end, {signed(early)} while learning (`lser demo`, O of the "
        "plan)."
    )


def signed(value: Interval) -> str:
    """A difference with its interval."""
    return interval(value, sign=True)


def first_screen() -> str:
    """The first screen: the sentence, a table, the claims, one figure; what is behind is folded."""
    table, claims = overview(findings()), claims_table(findings())
    assert table is not None
    assert claims is not None
    few = rows.short(table.table, without=["random-code"])
    return "\n".join(
        [
            f"**{answer()}**",
            "",
            few.markdown(),
            few.caption,
            "",
            f'<details markdown="1"><summary>All {len(table.table.rows)} rows</summary>',
            "",
            in_one_sentence(table),
            "",
            table.table.markdown(),
            *table.table.notes,
            *filter(None, [offers.left_out()]),
            "",
            "</details>",
            "",
            "**The paper's claims, one by one**",
            "",
            claims.markdown(),
            claims.caption,
            "",
            at_length.shown("figures"),
            "",
            '<details markdown="1"><summary>The numbers behind the sentence</summary>',
            "",
            _behind(),
            "",
            later(),
            "",
            "</details>",
        ]
    )


def _behind() -> str:
    """The numbers behind the sentence, a paragraph each."""
    said = [
        *(evidence(), new_seeds.in_short(), length.in_short(), taobao_tuning.in_short()),
        *(tuned_alike.in_short(), like_with_like.in_short(), control.in_short()),
        *(more_seeds.in_short(), parts.in_short()),
        *(recommender(), simple(), in_short()),
    ]
    return "\n\n".join(part for part in said if part)


def history() -> str:
    """What was looked at before, and what was replaced."""
    lines = ["| what | commit | what was seen | what was done then |", "|---|---|---|---|"]
    lines += [f"| {e['what']} | {e['when']} | {e['seen']} | {e['then']} |" for e in _entries()]
    return "\n".join(lines)


def notes() -> list[str]:
    """The same for the report's page."""
    first = "How these results came about: what was looked at before, or replaced."
    return [first, *(f"{e['what']} ({e['when']}): {e['seen']}; {e['then']}." for e in _entries())]


def _entries() -> list[dict[str, str]]:
    entries: list[dict[str, str]] = json.loads((RESULTS / "history.json").read_text())
    return entries

"""The paper's claims one by one, with what the records say of each: holds, does not, or open.

A claim holds or does not only where an interval decides it; where records cannot tell, it is open.
A claim whose study was not run is not listed.
"""

from collections.abc import Callable, Sequence
from math import exp, log
from typing import NamedTuple

import numpy as np

from lser.experiments.records import Record
from lser.report import again
from lser.report.findings import LEVEL, Finding, StudyFindings, Versus, between
from lser.report.overview import pooled
from lser.report.panels import Arm, columns
from lser.report.sentences import compare, nothing_learned
from lser.report.stats import Interval, exact_p, holm, mean_t, paired_p
from lser.report.style import count, interval, listing, name_of, number, percent
from lser.report.table import Table

HOLDS, FAILS, OPEN = "holds", "does not hold", "open"
_MARKS = {HOLDS: "above", FAILS: "below", OPEN: "open"}
_LEARNABLE = ("delayed", "interest", "offers")  # the same platforms, set so that agents learn
_OTHERS = ("per", "der", "aer", "ser", "her", "uniform")  # what the paper compares LSER with


class Answer(NamedTuple):
    """What the records say of a claim."""

    verdict: str
    words: str


class Claim(NamedTuple):
    """What the paper says, where, and how the records answer."""

    says: str
    where: str
    answer: Callable[[Sequence[StudyFindings]], Answer | None]


def claims_table(found: Sequence[StudyFindings]) -> Table | None:
    """Every claim that the records can speak to, or None where there is none."""
    answered = [(claim, answer) for claim in CLAIMS if (answer := claim.answer(found)) is not None]
    if not answered:
        return None
    return Table(
        "claims",
        "The paper's claims, and what these records say; intervals are 95 %, and Holm's correction "
        "is made over the comparisons of each claim. One about a platform does not hold where LSER "
        "is clearly below uniform in any of the settings named beside it, some of which are not "
        "the paper's.",
        ("the paper", "here", "in numbers"),
        tuple((f"{c.says} ({c.where})", a.verdict, a.words) for c, a in answered),
        marks=tuple(("", _MARKS[answer.verdict], "") for _, answer in answered),
    )


def _best_on_virtual_taobao(found: Sequence[StudyFindings]) -> Answer | None:
    panels = _on_virtual_taobao(found)
    pairs = [(one, pair) for one in panels for pair in _pairs(one)]
    if not pairs:
        return None
    readings = _readings([pair for _, pair in pairs])
    words = [
        _counted(one, [(pair, r) for (o, pair), r in zip(pairs, readings, strict=True) if o is one])
        for one in panels
    ]
    return Answer(_settle(readings), "; ".join(words) + again.ends_above(found))


def _pairs(one: Finding) -> list[Versus]:
    found = [one.against("lser", other) for other in _OTHERS]
    return [pair for pair in found if pair is not None]


def _counted(one: Finding, pairs: Sequence[tuple[Versus, str]]) -> str:
    above = sum(reading == "above" for _, reading in pairs)
    level = [name_of(pair.reference) for pair, reading in pairs if reading == "open"]
    rest = f", not separated from {listing(level)}" if level else ""
    return f"{_length(one)}: above {above} of {len(pairs)}{rest}"


def _sooner(found: Sequence[StudyFindings]) -> Answer | None:
    panels = _on_virtual_taobao(found)
    pairs = [
        (one, measured.area_versus)
        for one in panels
        if (measured := one.measured("lser")) is not None and measured.area_versus is not None
    ]
    if not pairs:
        return None
    words = "; ".join(
        f"{_length(one)}: average over training "
        f"{interval(pair.difference, sign=True)} against {name_of(pair.reference)}"
        for one, pair in pairs
    )
    return Answer(
        _settle(_readings([pair for _, pair in pairs])), words + again.learns_sooner(found)
    )


def _on(simulator: str) -> Callable[[Sequence[StudyFindings]], Answer | None]:
    """Whether LSER is above uniform on a platform, by its metric and by what agents train on."""

    def answer(found: Sequence[StudyFindings]) -> Answer | None:
        panels = [one for one in _panels(found, "comparison") if _is(one, simulator)]
        if not panels:
            return None
        one = panels[-1]
        pair, measured = one.against("lser", "uniform"), one.measured("lser")
        if pair is None:
            return None
        words = [f"{name_of(one.panel.metric)} {interval(pair.difference, sign=True)}"]
        pairs = [pair]
        reward = measured.reward_versus if measured else None
        if reward is not None and reward.verdict != pair.verdict:
            words.append(f"reward per step {interval(reward.difference, sign=True)}")
            pairs.append(reward)
        text = f"against uniform: {', '.join(words)}"
        if nothing_learned(one.learned):
            text += f"; no memory learned anything in {name_of(one.panel.metric)}"
        for words_there, pair_there in _elsewhere(found, simulator):
            text += words_there
            pairs.append(pair_there)
        return Answer(_settle(_readings(pairs)), text)

    return answer


def _elsewhere(found: Sequence[StudyFindings], simulator: str) -> list[tuple[str, Versus]]:
    """What planned studies say at settings under which agents learn, each in words."""
    told = []
    for study in (study for study in found if study.study.name in _LEARNABLE):
        panels = [one for one in study.panels if _is(one, simulator)]
        if study.study.spec.pooled:
            told += _over_worlds([one for one in panels if one.panel.scale is not None])
            continue
        told += [
            (f"; {one.panel.title}: {interval(pair.difference, sign=True)}", pair)
            for one in panels
            if (pair := one.against("lser", "uniform")) is not None
        ]
    return told


def _over_worlds(panels: Sequence[Finding]) -> list[tuple[str, Versus]]:
    """The mean over worlds, in shares of the possible and of what agents are trained on."""
    scores = pooled(panels, reward=True) if panels else {}
    if not {"lser", "uniform"} <= scores.keys():
        return []
    pair = between(("lser", scores["lser"]), ("uniform", scores["uniform"]))
    first = panels[0].panel
    where = f"{name_of(first.simulator)}, {first.sessions:,} sessions, mean of {len(panels)} worlds"
    difference = interval(pair.difference, sign=True)
    return [(f"; {where}, reward per step as a share of the possible: {difference}", pair)]


def _cheap(found: Sequence[StudyFindings]) -> Answer | None:
    panels = [
        one
        for study in found
        if not study.study.spec.scored and "times" in study.study.spec.figures
        for one in study.panels
        if "lser" in one.times and len(one.times) > 2
    ]
    costs = [cost for one in panels if "lser" in (cost := _costs(one)) and len(cost) > 1]
    if not costs:
        return None
    others = [name for name in _OTHERS if any(name in cost for cost in costs)]
    gaps = [[cost["lser"] - cost[name] for cost in costs if name in cost] for name in others]
    ratios = {name: mean_t(gap) for name, gap in zip(others, gaps, strict=True)}
    closest = max(ratios, key=lambda name: ratios[name].estimate)
    least = sum(min(cost, key=cost.__getitem__) == "lser" for cost in costs)
    corrected = holm([paired_p(gap) for gap in gaps])
    sides = ["below" if ratios[name].estimate > 0 else "above" for name in others]
    readings = [side if p <= LEVEL else "open" for side, p in zip(sides, corrected, strict=True)]
    runs = max(len(arm.runs) for one in panels for arm in one.panel.arms)
    learning = float(np.mean([m["learn"] / m["wall"] for p in panels for m in p.times.values()]))
    words = (
        f"least time per update in replay on {least} of {count(len(costs), 'platform')}, "
        f"{count(runs, 'run')} each; over platforms "
        f"{interval(Interval(*map(exp, ratios[closest])))} times that of {name_of(closest)}, the "
        f"next; learning is {percent(learning)} of a run's wall time"
    )
    return Answer(_settle(readings), words)


def _costs(one: Finding) -> dict[str, float]:
    """The logarithm of replay's seconds per update, of LSER and the paper's other memories."""
    seconds = {n: m["replay"] / m["updates"] for n, m in one.times.items() if m["updates"]}
    return {n: log(s) for n, s in seconds.items() if n in ("lser", *_OTHERS) and s > 0}


def _sampling_matters(found: Sequence[StudyFindings]) -> Answer | None:
    return _ablated(found, "lser-s", expected="below")


def _store_helps(found: Sequence[StudyFindings]) -> Answer | None:
    return _ablated(found, "lser-p", expected="below")


def _ablated(found: Sequence[StudyFindings], name: str, *, expected: str) -> Answer | None:
    pairs = [
        (one, pair)
        for one in _panels(found, "ablation")
        if (pair := one.against(name, "lser")) is not None
    ]
    if not pairs:
        return None
    readings = [one.reading(pair) for one, pair in pairs]
    words = "; ".join(
        f"{one.panel.setting}: {interval(pair.difference, sign=True)}" for one, pair in pairs
    )
    against = "above" if expected == "below" else "below"
    if against in readings:
        return Answer(FAILS, f"{name_of(name)} minus LSER: {words}")
    kept = all(reading == expected for reading in readings)
    return Answer(HOLDS if kept else OPEN, f"{name_of(name)} minus LSER: {words}")


def _more_bits(found: Sequence[StudyFindings]) -> Answer | None:
    for one in _panels(found, "hyperplanes"):
        axis = one.panel.spec.arm_by[0]
        steps = [(axis.value(arm.runs[0].experiment), arm) for arm in one.panel.arms]
        slope = _slope([(float(at), arm) for at, arm in steps if at is not None and at <= 20])
        if slope is None:
            continue
        words = f"CTR per doubling of bits, 2 to 20: {interval(slope, sign=True)}"
        verdict = HOLDS if slope.low > 0 else FAILS if slope.high < 0 else OPEN
        return Answer(verdict, words)
    return None


def _slope(steps: Sequence[tuple[float, Arm]]) -> Interval | None:
    """The score per doubling of a setting, per seed, then over seeds."""
    if len(steps) < 3:
        return None
    seeds = set.intersection(*(set(arm.scores) for _, arm in steps))
    at = np.log2([value for value, _ in steps])
    slopes = [np.polyfit(at, [arm.scores[s] for _, arm in steps], 1)[0] for s in sorted(seeds)]
    return mean_t(slopes) if len(slopes) > 1 else None


def _mostly_greedy(found: Sequence[StudyFindings]) -> Answer | None:
    for one in _panels(found, "epsilon"):
        pairs = [one.against("greedy 0.9", other) for other in ("greedy 0", "greedy 1")]
        known = [pair for pair in pairs if pair is not None]
        if known:
            words = "; ".join(compare(pair) for pair in known)
            return Answer(_settle(_readings(known)), words)
    return None


def _intervention(found: Sequence[StudyFindings]) -> Answer | None:
    """Only runs that reached T_r are touched by it; the others are the same run twice."""
    for one in _panels(found, "epsilon"):
        stopped = [arm for arm in one.panel.arms if _threshold(arm) is not None]
        plain = one.panel.arm("greedy 0.9")
        if not stopped or plain is None:
            continue
        level = _threshold(stopped[0]) or 0.0
        ours = {r.seed: stopped[0].scores[r.seed] for r in stopped[0].runs if _ever(r, level)}
        theirs = {seed: plain.scores[seed] for seed in ours if seed in plain.scores}
        if len(theirs) < 2:
            continue
        pair = between(("T_r", ours), ("no T_r", theirs))
        words = (
            f"it touched {len(ours)} of {count(len(stopped[0].runs), 'run')}; in those "
            f"{interval(pair.difference, sign=True)}"
        )
        return Answer(_settle([pair.verdict]), words + again.stops(found))
    return None


def _fluctuates(found: Sequence[StudyFindings]) -> Answer | None:
    panels = _on_virtual_taobao(found)
    if not panels:
        return None
    longest = max(one.panel.sessions for one in panels)
    told, counts = [], np.zeros((2, 2), np.int64)  # of LSER and uniform: fell, stayed
    for one in (one for one in panels if one.panel.sessions == longest):
        fell = again.fell(one)
        if {"lser", "uniform"} <= fell.keys():
            counts += [[few, runs - few] for few, runs in (fell["lser"], fell["uniform"])]
            told.append(f"{_length(one)}: {', '.join(again.fallen(one))}")
    if not told:
        return None
    p = exact_p(counts.tolist())
    more = counts[0, 0] * counts[1].sum() > counts[1, 0] * counts[0].sum()
    text = f"runs that end more than a tenth below their best, {'; '.join(told)}"
    text += f" (together Fisher's exact p {'< 0.001' if p < 0.001 else f'= {number(p)}'})"
    verdict = OPEN if p > LEVEL else HOLDS if more else FAILS
    return Answer(verdict, text + again.falls(found))


def _on_virtual_taobao(found: Sequence[StudyFindings]) -> list[Finding]:
    """The paper's comparison there, and the same on newer seeds."""
    panels = [*_panels(found, "comparison"), *_panels(found, "length")]
    return [one for one in panels if _is(one, "virtual-taobao")]


def _length(one: Finding) -> str:
    return one.panel.setting or f"{one.panel.sessions:,} sessions"


def _threshold(arm: Arm) -> float | None:
    value = arm.runs[0].experiment.get("intervention")
    return float(value) if isinstance(value, int | float) else None


def _ever(run: Record, level: float) -> bool:
    return bool(run.curve) and bool((columns(run)[1] >= level).any())


def _readings(pairs: Sequence[Versus]) -> list[str]:
    """Verdicts that Holm's correction over the claim's own comparisons leaves."""
    corrected = holm([pair.p for pair in pairs])
    return [
        pair.verdict if p <= LEVEL else "open" for pair, p in zip(pairs, corrected, strict=True)
    ]


def _settle(readings: Sequence[str]) -> str:
    if "below" in readings:
        return FAILS
    return HOLDS if readings and all(reading == "above" for reading in readings) else OPEN


def _panels(found: Sequence[StudyFindings], study: str) -> list[Finding]:
    return [one for s in found if s.study.name == study for one in s.panels]


def _is(one: Finding, simulator: str) -> bool:
    return one.panel.simulator == simulator


CLAIMS: tuple[Claim, ...] = (
    Claim("LSER ends above every other memory on VirtualTaobao", "Fig. a", _best_on_virtual_taobao),
    Claim("LSER learns sooner there", "Fig. a: 30,000 against 50,000 sessions", _sooner),
    Claim("After its peak LSER fluctuates", "Fig. a", _fluctuates),
    Claim("LSER is better on long-term satisfaction", "Fig. b", _on("long-term-satisfaction")),
    Claim("LSER is better on interest evolution", "Fig. c", _on("interest-evolution")),
    Claim("LSER is better on RecoGym", "Fig. d", _on("recogym")),
    Claim("LSER costs less time than the other memories", "table of running times", _cheap),
    Claim("A share of .9 of greedy draws is best", "Fig. e", _mostly_greedy),
    Claim("Stopping exploration at T_r = .95 helps", "Fig. e", _intervention),
    Claim("Sampling by similarity matters most: LSER-S falls", "Fig. f", _sampling_matters),
    Claim("Storing by reward helps: LSER-P falls", "Fig. f", _store_helps),
    Claim("More hyperplanes are better, up to about 20", "figure of hyperplanes", _more_bits),
)

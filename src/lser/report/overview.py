"""The first screen: every headline panel in one table of shares of the possible, with verdicts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lser.catalogue import AGENTS
from lser.experiments.studies import ScoreScale
from lser.report.findings import LEVEL, Finding, StudyFindings, Versus, between
from lser.report.panels import Panel
from lser.report.sentences import nothing_learned
from lser.report.stats import holm, mean_t
from lser.report.style import MEMORIES, count, listing, name_of, number
from lser.report.table import Table

Scores = Mapping[str, Mapping[int, float]]  # by arm, by seed

_LEARNERS = tuple(AGENTS[name].title for name in AGENTS)
WIDEST = 9  # columns of memories that a page has room for
CONSTANT, BANDIT = "best constant", "best bandit"
SIGNS = {"above": "▲", "below": "▼", "above?": "△", "below?": "▽"}


class Row(NamedTuple):
    """One line of the table: where, and what every arm scored there."""

    title: str
    scores: Scores
    scaled: bool
    """Whether the scores are shares of the possible."""
    learned: bool
    known: Mapping[str, float] = {}
    """What policies that need no memory score there, by their kind."""


class Overview(NamedTuple):
    """The table, and how LSER stands in its rows before and after Holm's correction."""

    table: Table
    readings: Mapping[str, Sequence[str]]
    """By arm, its reading in every row it has."""
    tests: int


def overview(found: Sequence[StudyFindings]) -> Overview | None:
    """The table over all headline studies, or None where nothing is compared with uniform."""
    rows = [row for study in found if study.study.spec.headline for row in _rows(study)]
    rows = [row for row in rows if "uniform" in row.scores and len(row.scores) > 1]
    if not rows:
        return None
    platforms = list(dict.fromkeys(_platform(row) for row in rows))
    rows.sort(key=lambda row: platforms.index(_platform(row)))
    arms = _arms(rows)
    pairs = {
        (at, arm): between((arm, row.scores[arm]), ("uniform", row.scores["uniform"]))
        for at, row in enumerate(rows)
        for arm in arms
        if arm in row.scores and arm != "uniform"
    }
    adjusted = dict(zip(pairs, holm([pair.p for pair in pairs.values()]), strict=True))
    readings = {key: _reading(pair, adjusted[key]) for key, pair in pairs.items()}
    cells = [[_cell(row, arm, readings.get((at, arm), "")) for arm in arms]
             for at, row in enumerate(rows)]  # fmt: skip
    kinds = _kinds(rows)
    for row, line in zip(rows, cells, strict=True):
        line += [number(row.known[k], digits=2) if k in row.known else "" for k in kinds]
    tests = sum(pair.p == pair.p for pair in pairs.values())
    table = Table(
        "overview",
        _caption(tests),
        ("where", *(name_of(arm) for arm in arms), *kinds),
        tuple(
            (f"{row.title}{'' if row.learned else ' †'}", *line)
            for row, line in zip(rows, cells, strict=True)
        ),
        marks=tuple(
            ("", *(readings.get((at, arm), "reference" if arm in row.scores else "")
                   for arm in arms), *("" for _ in kinds))
            for at, row in enumerate(rows)
        ),
        notes=_notes(rows, arms),
    )  # fmt: skip
    by_arm = {arm: [readings[key] for key in readings if key[1] == arm] for arm in arms}
    return Overview(table, by_arm, tests)


def in_one_sentence(found: Overview) -> str:
    """How LSER stands in the rows of the table."""
    readings = found.readings.get("lser", ())
    if not readings:
        return ""
    above, below = (sum(r.startswith(way) for r in readings) for way in ("above", "below"))
    sure_above, sure_below = readings.count("above"), readings.count("below")
    return (
        f"LSER ends above uniform replay in {above} of {count(len(readings), 'row')} of the table "
        f"and below it in {below}; after Holm's correction over its "
        f"{count(found.tests, 'comparison')}, in {sure_above} and in {sure_below}."
    )


def _rows(study: StudyFindings) -> list[Row]:
    spec = study.study.spec
    if spec.pooled or spec.reads == "map":
        return _pooled_rows(study)
    shared = spec.reference.removeprefix("uniform") if spec.reference != "lser" else ""
    return [row for found in study.panels for row in _panel_rows(found, shared)]


def _platform(row: Row) -> str:
    return row.title.partition(",")[0]


def _panel_rows(found: Finding, shared: str) -> list[Row]:
    """A panel on its metric, and on the trained objective where that is another.

    Of arms named like the reference, "uniform with the cure", those that have `shared`, " with the
    cure", are compared.
    """
    panel = found.panel
    arms = {a.name.removesuffix(shared): a for a in panel.arms if a.name.endswith(shared)}
    where = f"{panel.title},{shared}" if shared else panel.title
    title = f"{where}, {name_of(panel.metric)}"
    learned = not nothing_learned(found.learned)
    rows = [_row(title, {name: a.scores for name, a in arms.items()}, panel.scale, learned)]
    rewards = {name: a.rewards for name, a in arms.items() if a.rewards}
    if rewards and not _proportional(panel):
        title = f"{where}, reward per step (trained on)"
        learned = not nothing_learned(found.learned_reward)
        rows.append(_row(title, rewards, panel.reward_scale, learned))
    return rows


def _row(title: str, scores: Scores, scale: ScoreScale | None, learned: bool) -> Row:
    return _split(title, _shares(scores, scale), _known(scale), scale is not None, learned)


def _split(
    title: str, shares: Scores, known: Mapping[str, float], scaled: bool, learned: bool
) -> Row:
    """Memories are compared; agents that need none stand beside them."""
    beside = {
        name_of(arm): mean_t(list(by.values())).estimate
        for arm, by in shares.items()
        if arm in AGENTS
    }
    memories = {arm: by for arm, by in shares.items() if arm not in AGENTS}
    return Row(title, memories, scaled, learned, _best({**known, **beside}))


def _kinds(rows: Sequence[Row]) -> list[str]:
    """The policies beside the memories, in the order in which they are met."""
    return list(dict.fromkeys(kind for row in rows for kind in row.known))


def _best(known: Mapping[str, float]) -> dict[str, float]:
    """The best constant, and of the learners without a memory the best: two columns, not six."""
    kept = {CONSTANT: known[CONSTANT]} if CONSTANT in known else {}
    learners = [share for kind, share in known.items() if kind != CONSTANT]
    return {**kept, BANDIT: max(learners)} if learners else kept


def _known(scale: ScoreScale | None) -> dict[str, float]:
    """The shares of policies that are known: the best constant and the simplest learners."""
    if scale is None:
        return {}
    constant = {CONSTANT: scale.constant} if scale.constant else {}
    learners = {policy.name: policy for policy in scale.others if policy.name in _LEARNERS}
    named = {**constant, **learners}
    return {name: scale.share(policy.score) for name, policy in named.items()}


def _proportional(panel: Panel) -> bool:
    """Whether reward per step and metric are one and the same but for a factor."""
    runs = [(a.scores[s], a.rewards[s]) for a in panel.arms for s in a.rewards]
    ratios = np.array([reward / score if score else np.nan for score, reward in runs])
    return bool(np.nanmax(ratios) - np.nanmin(ratios) < 1e-3 * abs(np.nanmean(ratios)))


def _pooled_rows(study: StudyFindings) -> list[Row]:
    """All panels together, on their metric and on the trained objective where that is another."""
    found = [one for one in study.panels if one.panel.scale is not None]
    if not found:
        return []
    spec, first = study.study.spec, found[0].panel
    where = f"{spec.title}, mean of {len(found)} cells"
    if spec.pooled:
        length = f"{first.sessions:,} sessions"
        where = f"{name_of(first.simulator)}, {length}, mean of {count(len(found), 'world')}"
    learned = not all(nothing_learned(one.learned) for one in found) or spec.reads == "map"
    rows = [_pooled_row(f"{where}, {name_of(first.metric)}", found, learned, reward=False)]
    if spec.pooled and not all(_proportional(one.panel) for one in found):
        learned = not all(nothing_learned(one.learned_reward) for one in found)
        title = f"{where}, reward per step (trained on)"
        rows.append(_pooled_row(title, found, learned, reward=True))
    return rows


def _pooled_row(title: str, found: Sequence[Finding], learned: bool, *, reward: bool) -> Row:
    scales = [one.panel.reward_scale if reward else one.panel.scale for one in found]
    known = [_known(scale) for scale in scales]
    everywhere = [kind for kind in known[0] if all(kind in one for one in known)]
    means = {kind: float(np.mean([one[kind] for one in known])) for kind in everywhere}
    return _split(title, pooled(found, reward=reward), means, True, learned)


def pooled(found: Sequence[Finding], *, reward: bool = False) -> Scores:
    """By arm and seed the mean share of the possible over panels that have a scale."""
    shares: list[Scores] = []
    for panel in (one.panel for one in found):
        scores = {arm.name: arm.rewards if reward else arm.scores for arm in panel.arms}
        shares.append(_shares(scores, panel.reward_scale if reward else panel.scale))
    means: dict[str, dict[int, float]] = {}
    for arm in (name for name in shares[0] if all(name in one for one in shares)):
        seeds = set.intersection(*(set(one[arm]) for one in shares))
        if seeds:
            means[arm] = {s: float(np.mean([one[arm][s] for one in shares])) for s in sorted(seeds)}
    return means


def _shares(scores: Scores, scale: ScoreScale | None) -> Scores:
    if scale is None:
        return scores
    return {a: {seed: scale.share(v) for seed, v in by.items()} for a, by in scores.items()}


def _arms(rows: Sequence[Row]) -> list[str]:
    """LSER and uniform first, then the others as everywhere; no column for what few rows have.

    Where more are there than a page is wide, those that most rows have.
    """
    held = Counter(arm for row in rows for arm in row.scores)
    known = [name for name in dict.fromkeys(("lser", "uniform", *MEMORIES)) if name in held]
    others = [name for name in held if name not in known]
    found = [
        *known,
        *(name for name in others if len(rows) == 1 or held[name] > 1),
    ]
    if len(rows) == 1:
        return found
    ranked = sorted(found, key=lambda name: (name not in ("lser", "uniform"), -held[name]))
    return [name for name in found if name in ranked[:WIDEST]]


def _reading(pair: Versus, adjusted: float) -> str:
    kept = adjusted <= LEVEL or pair.verdict in ("open", "unknown")
    return pair.verdict if kept else f"{pair.verdict}?"


def _cell(row: Row, arm: str, reading: str) -> str:
    if arm not in row.scores:
        return ""
    mean = mean_t(list(row.scores[arm].values())).estimate
    shown = number(mean, digits=2) if row.scaled else number(mean)
    return f"{shown} {SIGNS.get(reading, '')}".strip()


def _caption(tests: int) -> str:
    return (
        "Share of the possible at the end: 0 is random actions, 1 the best policy known; means "
        "over seeds. ▲ above and ▼ below uniform, by paired t-tests with Holm's correction over "
        f"the {count(tests, 'comparison')} of this table; △ and ▽ only before it; no sign: not "
        "separated."
    )


def _notes(rows: Sequence[Row], arms: Sequence[str]) -> tuple[str, ...]:
    notes = []
    kinds = _kinds(rows)
    left = [name_of(m) for m in MEMORIES if m not in arms and any(m in r.scores for r in rows)]
    if left:
        notes.append(f"Without a column, as few rows have it: {listing(left)}.")
    if kinds:
        notes.append(
            f"For comparison, without signs and with few seeds or none: {listing(kinds)} (of the "
            "linear and neural bandits and the most popular, the best); empty where nobody has "
            "measured it."
        )
    if not all(row.learned for row in rows):
        notes.append("† No arm ends clearly above its own untrained policy: nothing was learned.")
    if not all(row.scaled for row in rows):
        notes.append("Rows without a known scale hold plain scores.")
    return tuple(notes)

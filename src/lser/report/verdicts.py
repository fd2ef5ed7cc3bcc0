"""What each study found, and the whole report in short."""

from collections.abc import Sequence

from lser.report.findings import LEVEL, Finding, StudyFindings, Versus
from lser.report.sentences import (
    best_against_reference,
    compare,
    forest,
    map_rivals,
    no_control,
    on_the_map,
    running_time,
    standing,
    trained,
    trend,
)
from lser.report.stats import holm
from lser.report.style import count, interval, listing, name_of

Groups = list[tuple[str, list[str]]]


def sentences(study: StudyFindings) -> list[str]:
    """What a study found, one sentence per panel."""
    match study.study.spec.reads:
        case "map":
            return [on_the_map(study, name) for name in map_rivals(study)]
        case "trend":
            return [f"{f.panel.place}: {trend(f)} {forest(f)}" for f in study.panels]
        case "forest":
            return [f"{f.panel.place}: {forest(f)}" for f in study.panels]
        case "none":
            return []
    found = [
        f"{one.panel.title}: {best_against_reference(one)}{_rivals(one)}.{trained(one)}"
        for one in study.panels
    ]
    overall = study.overall_improvement("lser")
    if "improvement" in study.study.spec.figures and len(study.panels) > 1 and overall:
        found.append(
            f"Over {len(study.panels)} settings together, a run with LSER beats one with uniform "
            f"with probability {interval(overall)}."
        )
    return found


def in_short(found: Sequence[StudyFindings]) -> Groups:
    """The report in a few groups of sentences: where LSER wins, where not, and what carries it."""
    wins, others = standings(found)
    settled = _settled(wins, others)
    groups = [
        ("", [settled] if wins or others else []),
        ("Where LSER wins", [standing(one) for one in wins]),
        ("Where it does not", [standing(one) for one in others]),
        ("On the Bazaar map", _of_reading(found, "map")),
        ("What carries the gain", [_carries(one) for one in wins if one.panel.arm("reward-top")]),
        ("How it should be set", [_named(study, line) for study, line in _settings(found)]),
        ("What it costs", _costs(found)),
    ]
    return [(heading, lines) for heading, lines in groups if lines]


def _settled(wins: list[Finding], others: list[Finding]) -> str:
    """In how many settings LSER is above uniform, and how far that number carries."""
    panels = [*wins, *others]
    kept = sum(p <= LEVEL for p in holm([_lser(one).p for one in panels]))
    below = sum(_lser(one).verdict == "below" for one in panels)
    places = {one.panel.simulator for one in panels}
    text = (
        f"LSER ends clearly above uniform in {len(wins)} of "
        f"{count(len(panels), 'setting')} outside the Bazaar map, below in {below}; after Holm's "
        f"correction over them {kept} {'is' if kept == 1 else 'are'} left."
    )
    if len(places) < len(panels):
        text += (
            f" They are not {len(panels)} independent tests: they lie on "
            f"{count(len(places), 'platform')} and share seeds, and some share runs."
        )
    return text


def _lser(found: Finding) -> Versus:
    arm, reference = found.panel.arm("lser"), found.panel.reference
    assert arm is not None
    assert reference is not None
    return found.versus(arm, reference)


def standings(found: Sequence[StudyFindings]) -> tuple[list[Finding], list[Finding]]:
    """The panels with LSER and uniform outside of maps: where LSER is clearly above, and others."""
    wins: list[Finding] = []
    others: list[Finding] = []
    for study in found:
        spec = study.study.spec
        if not spec.scored or spec.reads in ("map", "none"):
            continue
        for one in study.panels:
            arm, reference = one.panel.arm("lser"), one.panel.reference
            if arm is None or reference is None or reference.memory != "uniform":
                continue
            (wins if one.versus(arm, reference).verdict == "above" else others).append(one)
    return wins, others


def timed(found: Sequence[StudyFindings]) -> StudyFindings | None:
    """The study whose running times are shown: its own where there is one, or another's."""
    drawn = [study for study in found if "times" in study.study.spec.figures and study.panels]
    own = [study for study in drawn if not study.study.spec.scored]
    return next(iter([*own, *drawn]), None)


def _settings(found: Sequence[StudyFindings]) -> list[tuple[StudyFindings, str]]:
    asked = [study for study in found if study.study.spec.reads in ("forest", "trend")]
    return [(study, line) for study in asked for line in sentences(study)]


def _named(study: StudyFindings, line: str) -> str:
    return f"{study.study.spec.title}, {line}"


def _of_reading(found: Sequence[StudyFindings], reading: str) -> list[str]:
    asked = [study for study in found if study.study.spec.reads == reading]
    return [line for study in asked for line in sentences(study)]


def _costs(found: Sequence[StudyFindings]) -> list[str]:
    study = timed(found)
    panels = study.panels if study else ()
    return [f"{f.panel.place}: {running_time(f)}" for f in panels if len(f.times) > 1]


def _carries(found: Finding) -> str:
    """LSER against the controls that keep only reward order, or only buckets of chance."""
    first = found.against("lser", "reward-top")
    assert first is not None
    reading = {
        "above": "so locality adds to reward order",
        "below": "so reward order alone does better",
    }.get(first.verdict, "so reward order alone may explain what LSER does here")
    second = found.against("lser", "random-code")
    rest = f"; {no_control(found) or compare(second)}" if second else ""
    return f"{found.panel.place}: {compare(first)}, {reading}{rest}."


def _rivals(found: Finding) -> str:
    """How the other memories stand against LSER itself."""
    lser = found.panel.arm("lser")
    others = [arm for arm in found.panel.arms if arm.name not in ("lser", "uniform")]
    if lser is None or not others:
        return ""
    pairs = [found.versus(arm, lser) for arm in others]
    above = [name_of(v.arm) for v in pairs if v.verdict == "above"]
    level = [name_of(v.arm) for v in pairs if v.verdict in ("open", "unknown")]
    parts = [f"clearly above LSER: {listing(above)}" if above else "nothing is clearly above LSER"]
    if level:
        parts.append(f"not separated from it: {listing(level)}")
    return "; " + "; ".join(parts)

"""What each study asks and found, and the whole report in short."""

from lser.report.cells import Panel, Study
from lser.report.estimates import overall_improvement, versus
from lser.report.style import count, interval, listing, name_of, number, percent
from lser.report.tables import place, title
from lser.report.tables import times as times_table
from lser.report.wording import (
    bazaar_map,
    best_against_reference,
    compare,
    forest,
    map_rivals,
    running_time,
    trend,
)

TITLES = {
    "comparison": ("Memories compared", "Which memory makes the better recommender?"),
    "running-time": ("Running time", "What does each memory cost, and where does a run spend it?"),
    "epsilon": ("Greedy share", "How often should LSER replay by similarity instead of at random?"),
    "ablation": ("Ablation", "What is lost when reward order or similarity is taken away?"),
    "hyperplanes": ("Hyperplanes", "How many bits should a code have?"),
    "bazaar-map": ("Bazaar map", "Where does LSER gain over uniform replay, and where not?"),
    "horizon": ("Horizon", "Does it matter whether the end of a session ends the future?"),
    "agents": ("Agents", "Does the gain carry over to other learners?"),
    "demo": ("Demo", "Does replaying by similarity pay on this traffic?"),
}


def about(study: Study) -> tuple[str, str]:
    """The title of a study and the question it asks."""
    name = study.name or "runs"
    return TITLES.get(name, (name.capitalize(), "How do these runs compare?"))


def findings(study: Study, *, seed: int) -> list[str]:
    """What a study found, one sentence per panel."""
    if study.name == "bazaar-map":
        return [bazaar_map(study, name, seed=seed) for name in map_rivals(study)]
    if study.name in ("epsilon", "hyperplanes"):
        found = [f"{place(p)}: {trend(p, seed=seed)} {forest(p, seed=seed)}" for p in study.panels]
    elif study.name == "ablation":
        found = [f"{place(p)}: {forest(p, seed=seed)}" for p in study.panels]
    else:
        found = [
            f"{title(p)}: {best_against_reference(p, seed=seed)}{_rivals(p, seed=seed)}."
            for p in study.panels
        ]
    overall = overall_improvement(list(study.panels), "lser", seed=seed)
    if study.name == "comparison" and len(study.panels) > 1 and overall:
        found.append(
            f"Over {len(study.panels)} settings together, a run with LSER beats one with uniform "
            f"with probability {interval(overall)}."
        )
    return found


def in_short(found: list[Study], *, seed: int) -> list[tuple[str, list[str]]]:
    """The report in a few groups of sentences: where LSER wins, where not, and what carries it."""
    wins: list[str] = []
    others: list[str] = []
    carries: list[str] = []
    scored = [study for study in found if study.name not in ("bazaar-map", "running-time")]
    for panel in (panel for study in scored for panel in study.panels):
        arm, reference = panel.arm("lser"), panel.reference
        if arm is None or reference is None or reference.memory != "uniform":
            continue
        verdict = versus(arm, reference, seed=seed, key=panel.name).verdict
        (wins if verdict == "above" else others).append(standing(panel, seed=seed))
        if verdict == "above" and panel.arm("reward-top") is not None:
            carries.append(_carries(panel, seed=seed))
    settings = [
        f"{about(study)[0]}, {sentence}"
        for study in found
        if study.name in ("ablation", "epsilon", "hyperplanes")
        for sentence in findings(study, seed=seed)
    ]
    maps = [
        sentence
        for study in found
        if study.name == "bazaar-map"
        for sentence in findings(study, seed=seed)
    ]
    times = [
        f"{place(panel)}: {running_time(panel)}"
        for study in found
        if study.name == timing_study(found)
        for panel in study.panels
        if len(times_table(panel).rows) > 1
    ]
    settled = (
        f"LSER ends clearly above uniform in {len(wins)} of "
        f"{count(len(wins) + len(others), 'setting')} outside the Bazaar map."
    )
    groups = [
        ("", [settled] if wins or others else []),
        ("Where LSER wins", wins),
        ("Where it does not", others),
        ("On the Bazaar map", maps),
        ("What carries the gain", carries),
        ("How it should be set", settings),
        ("What it costs", times),
    ]
    return [(heading, lines) for heading, lines in groups if lines]


def timing_study(found: list[Study]) -> str:
    """The study whose running times are shown: its own where there is one, or the comparison."""
    names = {study.name for study in found}
    return "running-time" if "running-time" in names else "comparison"


def standing(panel: Panel, *, seed: int) -> str:
    """LSER against the reference of a panel: both levels, the difference, and how sure it is."""
    arm, reference = panel.arm("lser"), panel.reference
    if arm is None or reference is None or arm is reference:
        return f"{title(panel)}: {best_against_reference(panel, seed=seed)}."
    found = versus(arm, reference, seed=seed, key=panel.name)
    levels = f"{number(float(arm.values.mean()))} against {number(float(reference.values.mean()))}"
    return (
        f"{title(panel)}: {compare(found)}; mean {name_of(panel.metric)} {levels}, LSER the higher "
        f"in {percent(found.improvement.estimate)} of all pairs of runs."
    )


def _carries(panel: Panel, *, seed: int) -> str:
    """LSER against the controls that keep only reward order, or only buckets of chance."""
    lser, controls = panel.arm("lser"), (panel.arm("reward-top"), panel.arm("random-code"))
    found = [versus(lser, c, seed=seed, key=panel.name) for c in controls if lser and c]
    reading = {
        "above": "so locality adds to reward order",
        "below": "so reward order alone does better",
    }.get(found[0].verdict, "so reward order alone may explain what LSER does here")
    rest = "".join(f"; {compare(v)}" for v in found[1:])
    return f"{place(panel)}: {compare(found[0])}, {reading}{rest}."


def _rivals(panel: Panel, *, seed: int) -> str:
    """How the other memories stand against LSER itself."""
    lser = panel.arm("lser")
    others = [arm for arm in panel.arms if arm.name not in ("lser", "uniform")]
    if lser is None or not others:
        return ""
    found = [versus(arm, lser, seed=seed, key=panel.name) for arm in others]
    above = [name_of(v.arm) for v in found if v.verdict == "above"]
    level = [name_of(v.arm) for v in found if v.verdict in ("open", "unknown")]
    parts = [f"clearly above LSER: {listing(above)}" if above else "nothing is clearly above LSER"]
    if level:
        parts.append(f"not separated from it: {listing(level)}")
    return "; " + "; ".join(parts)

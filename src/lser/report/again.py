"""What planned studies on new seeds add to the paper's claims: words, which settle nothing."""

from collections.abc import Callable, Sequence

from lser.report.findings import Finding, StudyFindings
from lser.report.stats import Interval
from lser.report.style import interval, name_of

_READINGS = ("noise", "noise and greedy", "learning")  # of what T_r stops


def ends_above(found: Sequence[StudyFindings]) -> str:
    """LSER minus uniform at the end."""

    def of(one: Finding) -> Interval | None:
        pair = one.against("lser", "uniform")
        return None if pair is None else pair.difference

    return _confirmed(found, "LSER minus uniform", of)


def learns_sooner(found: Sequence[StudyFindings]) -> str:
    """LSER minus uniform over training."""

    def of(one: Finding) -> Interval | None:
        measured = one.measured("lser")
        pair = None if measured is None else measured.area_versus
        return None if pair is None else pair.difference

    return _confirmed(found, "average over training", of)


def falls(found: Sequence[StudyFindings]) -> str:
    """How many runs of LSER and uniform fell."""
    told = [(one.panel.sessions, fallen(one)) for one in _panels(found, "fall")]
    return "".join(f"; new seeds, {n:,}: {', '.join(counts)}" for n, counts in told if counts)


def fell(one: Finding) -> dict[str, tuple[int, int]]:
    """How many runs of LSER and of uniform fell in a panel, of how many."""
    return {
        m.arm.name: (round(m.fallen.estimate * len(m.arm.runs)), len(m.arm.runs))
        for m in one.measures
        if m.fallen and m.arm.name in ("lser", "uniform")
    }


def fallen(one: Finding) -> list[str]:
    """The same in words."""
    return [f"{name_of(arm)} {few} of {runs}" for arm, (few, runs) in fell(one).items()]


def stops(found: Sequence[StudyFindings]) -> str:
    """T_r in its readings minus LSER without it, over all runs."""
    text = ""
    for one in _panels(found, "fall"):
        pairs = [(what, one.against(f"T_r stops {what}", "lser")) for what in _READINGS]
        told = [f"{what} {interval(pair.difference, sign=True)}" for what, pair in pairs if pair]
        text += f"; all runs on new seeds, by what it stops: {', '.join(told)}" if told else ""
    return text


def _confirmed(
    found: Sequence[StudyFindings], what: str, of: Callable[[Finding], Interval | None]
) -> str:
    told = [
        f"{one.panel.setting} {interval(value, sign=True)}"
        for one in _panels(found, "confirmation")
        if (value := of(one)) is not None
    ]
    return f"; {what}: {'; '.join(told)}" if told else ""


def _panels(found: Sequence[StudyFindings], study: str) -> list[Finding]:
    return [one for s in found if s.study.name == study for one in s.panels]

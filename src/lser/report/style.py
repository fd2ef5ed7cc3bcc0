"""Names, numbers, colours and markers: the same thing looks the same everywhere."""

import math
from typing import NamedTuple

from lser import catalogue
from lser.experiments.studies import PAPER_PLATFORMS
from lser.report.stats import Interval

# The order of pages and tables: as in the catalogue, with the reference last and, of platforms, the
# paper's first.
MEMORIES = (*(name for name in catalogue.MEMORIES if name != "uniform"), "uniform")
SIMULATORS = tuple(dict.fromkeys((*PAPER_PLATFORMS, *catalogue.SIMULATORS)))
INK = "#1b1f24"  # becomes the page's own text colour where a figure is inlined


class Look(NamedTuple):
    """How an arm is drawn; the marker tells arms apart where colours do not."""

    colour: str
    marker: str
    width: float


_WIDTHS = {"lser": 2.4, "uniform": 2.0}
# A ramp for arms that are settings of one memory; none of its steps is a memory's colour.
_RAMP = ("#14917d", "#4d8fcc", "#7b7fdb", "#a768cf", "#c7519f", "#d9476f", "#c4604a", "#a3763f")
_MARKERS = ("o", "^", "D", "v", "P", "X", "s", "p")

_NAMES = {
    "ctr": "CTR",
    "reward_per_step": "reward per step",
    "continuing": "continuing traffic",
    "session": "sessions as terminal",
}


def name_of(name: str) -> str:
    """The name as a reader knows it."""
    for known in (catalogue.MEMORIES, catalogue.SIMULATORS, catalogue.AGENTS):
        if name in known:
            return known[name].title
    return _NAMES.get(name, name)


def look(name: str, memory: str, position: int) -> Look:
    """The look of an arm: its memory's own, or a step of the ramp for a setting of a memory."""
    if name in catalogue.AGENTS and (own := catalogue.AGENTS[name].look) is not None:
        return Look(*own, 1.4)
    known = name if name in catalogue.MEMORIES else "uniform" if memory == "uniform" else ""
    shown = catalogue.MEMORIES[known].look if known else None
    if shown is not None:
        return Look(*shown, _WIDTHS.get(known, 1.4))
    step = position % len(_RAMP)
    return Look(_RAMP[step], _MARKERS[step], 1.7)


def number(value: float, *, sign: bool = False, digits: int | None = None) -> str:
    """A number at the precision a handful of runs deserves, or with ``digits`` behind the point."""
    if math.isnan(value):
        return "–"
    size = abs(value)
    if digits is None:
        digits = 3 if size < 2 else 2 if size < 100 else 0
    text = f"{value:{'+' if sign else ''},.{digits}f}"
    return text.replace("-", "−")


def interval(value: Interval, *, sign: bool = False, digits: int | None = None) -> str:
    """An estimate with its interval in brackets; the estimate alone where there is none."""
    estimate, low, high = (number(end, sign=sign, digits=digits) for end in value)
    return estimate if math.isnan(value.low) else f"{estimate} [{low}, {high}]"


def percent(share: float) -> str:
    """A share in per cent, with a space that does not break."""
    return f"{100 * share:.0f}\u00a0%"


def count(amount: int, noun: str) -> str:
    """A count with its noun: 1 seed, 5 seeds."""
    return f"{amount:,} {noun}" if amount == 1 else f"{amount:,} {noun}s"


def listing(names: list[str]) -> str:
    """Names in a sentence: a, b and c."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"

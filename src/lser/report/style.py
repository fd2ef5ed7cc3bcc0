"""Names, numbers, colours and markers: the same thing looks the same everywhere."""

import math
from typing import NamedTuple

from lser.report.stats import Interval

MEMORIES = (
    *("lser", "lser-p", "lser-s", "per", "der", "der-uniform", "aer", "ser"),
    *("her", "her-balanced", "reward-top", "random-code", "uniform"),
)
SIMULATORS = (
    *("virtual-taobao", "long-term-satisfaction", "interest-evolution", "recogym", "bazaar"),
)
INK = "#1b1f24"  # becomes the page's own text colour where a figure is inlined


class Look(NamedTuple):
    """How an arm is drawn; the marker tells arms apart where colours do not."""

    colour: str
    marker: str
    width: float


# Okabe and Ito's colours, the two lightest darkened until they hold on white as well as on black.
_LOOKS = {
    "lser": Look("#d55e00", "o", 2.4),
    "uniform": Look("#7d7d7d", "s", 2.0),
    "per": Look("#0072b2", "^", 1.4),
    "der": Look("#3a9bd9", "v", 1.4),
    "aer": Look("#009e73", "D", 1.4),
    "ser": Look("#cc79a7", "P", 1.4),
    "her": Look("#c88a00", "X", 1.4),
    "reward-top": Look("#8465cf", "<", 1.4),
    "random-code": Look("#95743a", ">", 1.4),
    "lser-p": Look("#b5467c", "p", 1.6),
    "lser-s": Look("#2e86ab", "h", 1.6),
    "der-uniform": Look("#5f8aa8", "1", 1.4),
    "her-balanced": Look("#a8842e", "2", 1.4),
}
# A ramp for arms that are settings of one memory; none of its steps is a memory's colour.
_RAMP = ("#14917d", "#4d8fcc", "#7b7fdb", "#a768cf", "#c7519f", "#d9476f", "#c4604a", "#a3763f")
_MARKERS = ("o", "^", "D", "v", "P", "X", "s", "p")

_NAMES = {
    **{name: name.upper() for name in ("lser", "lser-p", "lser-s")},
    **{name: name.upper() for name in ("per", "der", "aer", "ser", "her")},
    **{name: name.upper() for name in ("ddpg", "td3", "sac")},
    "der-uniform": "DER, drawn uniformly",
    "her-balanced": "HER, balanced",
    "virtual-taobao": "VirtualTaobao",
    "long-term-satisfaction": "RecSim long-term satisfaction",
    "interest-evolution": "RecSim interest evolution",
    "recogym": "RecoGym",
    "bazaar": "Bazaar",
    "ctr": "CTR",
    "reward_per_step": "reward per step",
    "continuing": "continuing traffic",
    "session": "sessions as terminal",
}


def name_of(name: str) -> str:
    """The name as a reader knows it."""
    return _NAMES.get(name, name)


def look(name: str, memory: str, position: int) -> Look:
    """The look of an arm: its memory's own, or a step of the ramp for a setting of a memory."""
    if name in _LOOKS:
        return _LOOKS[name]
    if memory == "uniform":
        return _LOOKS["uniform"]
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

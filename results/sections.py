"""Planned studies on VirtualTaobao for the page of results; nothing of what was not run."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import confirmation
import control
import cure
import fall
import length
import like_with_like
import more_seeds
import options
import parts
import plateaus
import reruns
import slow

from lser.report.style import listing


class Figures(Protocol):
    """A script that prints the figures of a study."""

    def reading(self) -> str:
        """What it says in words."""

    def block(self) -> str:
        """The words and the table."""


class Section(NamedTuple):
    """A study of the plan: where its figures are and how its runs were made."""

    script: str
    figures: Figures
    command: str


_HASH = "python results/planned.py FOLDER y z --arms ..."
_CURE = "lser study cure --scale paper --seeds 20 --engine fleet --device cuda --only ..."
_OTHERS = "python results/planned.py FOLDER k --arms ... --seeds 17"
_RERUNS = "python results/planned.py FOLDER h` and `python results/reruns.py run FOLDER"
SECTIONS = {  # by letter
    "c": Section("confirmation", confirmation, "python results/planned.py FOLDER c"),
    "s": Section("length", length, "python results/planned.py FOLDER s"),
    "z": Section("control", control.Z, _HASH),
    "z_others": Section("more_seeds", more_seeds, "python results/planned.py FOLDER z --arms ..."),
    "ab": Section("slow", slow.PRINTED, "lser study length --scale paper --seeds 20 --only der"),
    "ac": Section("slow", slow.CURED, 'lser study cure --scale paper --seeds 10 --only "der with"'),
    "k": Section("cure", cure, _CURE),
    "t": Section("like_with_like", like_with_like, _OTHERS),
    "y": Section("control", control.Y, _HASH),
    "h": Section("options", options, "python results/planned.py FOLDER h"),
    "j": Section("reruns", reruns, _RERUNS),
    "aa": Section("parts", parts, "python results/planned.py FOLDER aa"),
    "bb": Section("plateaus", plateaus, "python results/planned.py FOLDER bb --arms ..."),
    "b": Section("fall", fall, "python results/planned.py FOLDER b --sessions N"),
}


def section(letter: str) -> str:
    """The words and tables of a study, and how it was made; nothing of one that was not run."""
    one = SECTIONS[letter]
    block = one.figures.block()
    if not block:
        return ""
    return (
        f"{block}\n\n{beside()}\n\n`{one.command}` made the runs, `python "
        f"results/{one.script}.py` prints every figure here."
    )


def beside() -> str:
    """What reference policies score on VirtualTaobao, where all of these ran."""
    known = cure.runs().scale.policies
    told = listing([f"{one.name} {one.score:.3f}" for one in known])
    return f"Beside them, CTR: {told}; the bandits after 1,000 sessions (neural: 10,000)."


def outcomes() -> dict[str, Callable[[], str]]:
    """What gives the words of each study, by the name of their block in the plan."""
    return {f"outcome_{letter}": one.figures.reading for letter, one in SECTIONS.items()}

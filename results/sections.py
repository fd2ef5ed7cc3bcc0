"""C, S, Z, K, T, Y, H, J and B of plan.md on the page of results; nothing of what was not run."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import confirmation
import control
import cure
import fall
import length
import like_with_like
import options
import reruns


class Figures(Protocol):
    """A script that prints the figures of a study."""

    def reading(self) -> str:
        """What it says in words."""

    def block(self) -> str:
        """The words and the table."""


class Section(NamedTuple):
    """A study of the plan, where its figures are and how its runs were made."""

    letter: str
    title: str
    script: str
    figures: Figures
    command: str


_HASH = "python results/planned.py FOLDER yz --arms ..."
_CURE = "lser study cure --scale paper --seeds 20 --engine fleet --device cuda --only ..."
SECTIONS = (
    Section(
        "c",
        "The lead on new seeds",
        "confirmation",
        confirmation,
        "python results/planned.py FOLDER c",
    ),
    Section("s", "At the paper's length", "length", length, "python results/planned.py FOLDER s"),
    Section("z", "What the hash adds as printed", "control", control.Z, _HASH),
    Section("k", "The cure at the paper's length", "cure", cure, _CURE),
    Section(
        "t",
        "The other memories with the cure",
        "like_with_like",
        like_with_like,
        "python results/planned.py FOLDER k --arms ... --seeds 17",
    ),
    Section("y", "What the hash adds with the cure", "control", control.Y, _HASH),
    Section("h", "LSER's options", "options", options, "python results/planned.py FOLDER h"),
    Section(
        "j",
        "How much of the spread is the machine's",
        "reruns",
        reruns,
        "python results/planned.py FOLDER h` and `python results/reruns.py run FOLDER",
    ),
    Section("b", "Why runs fall", "fall", fall, "python results/planned.py FOLDER b --sessions N"),
)


def sections() -> str:
    """A section for each study that has been run."""
    parts = []
    for one in SECTIONS:
        if block := one.figures.block():
            parts += [
                f"## {one.title}",
                f"{one.letter.upper()} of the [plan](plan.md). `{one.command}` made "
                f"the runs, `python results/{one.script}.py` prints every figure here.",
                block,
            ]
    return "\n\n".join(parts)


def outcomes() -> dict[str, Callable[[], str]]:
    """What gives the words of each study, by the name of their block in the plan."""
    return {f"outcome_{one.letter}": one.figures.reading for one in SECTIONS}

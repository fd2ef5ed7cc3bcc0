"""C, S, H, J and B of plan.md on the page of results; what was not run leaves nothing there."""

from typing import NamedTuple, Protocol

import confirmation
import fall
import length
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


SECTIONS = (
    Section("c", "The lead on new seeds", "confirmation", confirmation, "planned.py FOLDER c"),
    Section("s", "At the paper's length", "length", length, "planned.py FOLDER s"),
    Section("h", "LSER's options", "options", options, "planned.py FOLDER h"),
    Section(
        "j",
        "How much of the spread is the machine's",
        "reruns",
        reruns,
        "planned.py FOLDER h` and `python results/reruns.py run FOLDER",
    ),
    Section("b", "Why runs fall", "fall", fall, "planned.py FOLDER b --sessions N"),
)


def sections() -> str:
    """A section for each study that has been run."""
    parts = []
    for one in SECTIONS:
        if block := one.figures.block():
            parts += [
                f"## {one.title}",
                f"{one.letter.upper()} of the [plan](plan.md). `python results/{one.command}` made "
                f"the runs, `python results/{one.script}.py` prints every figure here.",
                block,
            ]
    return "\n\n".join(parts)


def outcomes() -> dict[str, str]:
    """The words of each study, by the name of their block in the plan."""
    return {f"outcome_{one.letter}": one.figures.reading() for one in SECTIONS}

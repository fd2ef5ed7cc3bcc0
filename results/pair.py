"""LSER beside one other memory on the same seeds, LSER's runs from a letter that was known."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from committed import by_arm
from delayed import Gap
from scored import Runs, Scored, scored
from standing import Arms

OURS, KEY = "lser", "metric"


@dataclass(frozen=True)
class Pair:
    """Both arms have the same ending to their names."""

    letters: str
    where: str
    study: str
    memory: str
    """The one beside LSER."""
    file: Path
    beside: Callable[[], Runs]
    """The runs of LSER that were known."""
    ending: str = ""

    def known(self) -> bool:
        """Whether it has been run."""
        return self.file.is_file()

    def theirs(self) -> Runs:
        """The other memory's runs that count, by its arm."""
        return scored(by_arm(self.file)).runs

    @cached_property
    def standing(self) -> Arms:
        """The runs of both, on the seeds of the other."""
        theirs, ours = self.theirs().get(self.memory + self.ending, {}), self.beside()
        same = {seed: ours[OURS + self.ending][seed] for seed in theirs}
        return Arms({OURS: same, self.memory: theirs})

    @cached_property
    def gap(self) -> Gap:
        """LSER minus the other memory, paired over seeds."""
        return self.standing.gap(OURS, self.memory, KEY)

    def alone(self, arm: str) -> Scored:
        """The study of one of the two alone, read at its own end."""
        return Scored({arm: self.standing.runs[arm]})

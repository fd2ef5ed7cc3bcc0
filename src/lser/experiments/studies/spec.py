"""What a study is, as data: what it compares, over which settings, and how it is drawn and read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from lser.experiments.experiment import Experiment
    from lser.experiments.presets import Scale

WORLD = "simulator.world_seed"
Picture = Literal["curves", "runs", "values", "trend", "improvement", "map", "times"]
Reading = Literal["standing", "trend", "forest", "map", "none"]


@dataclass(frozen=True)
class Axis:
    """One setting of an experiment, found by its path, with the words that show its value."""

    path: str
    """Keys from the top of the experiment, with dots between: ``memory.bits``."""
    words: str = "{}"
    """A format for the value: ``{:g} bits``."""
    name: str = ""
    """What the axis of a figure is called."""

    def value(self, experiment: Mapping[str, Any]) -> Any:
        """The setting in ``experiment``, or None where it has none."""
        return value_at(experiment, self.path)

    def text(self, experiment: Mapping[str, Any]) -> str:
        """The setting in words; nothing where the experiment has none."""
        value = self.value(experiment)
        if value is None:
            return ""
        try:
            return self.words.format(value)
        except (TypeError, ValueError):  # a record may hold anything
            return f"{self.path} {value}"


@dataclass(frozen=True)
class StudySpec:
    """A study: its question, its cells, and how the report tells arms and panels apart."""

    name: str
    title: str
    question: str
    about: str = ""
    """One line for the command line."""
    cells: str = ""
    """``module:function`` that yields the experiments; loaded only when a study is planned."""
    compared: tuple[str, ...] = ("memory",)
    """Branches of the experiment in which the arms of one panel may differ."""
    arm_by: tuple[Axis, ...] = ()
    """What names an arm; the run's label where nothing is said."""
    panel_by: tuple[Axis, ...] = ()
    """What names a panel, beside its simulator."""
    reference: str = "uniform"
    """The arm that the others are measured against."""
    figures: tuple[Picture, ...] = ("curves", "runs", "values")
    reads: Reading = "standing"
    """What its sentences are about."""
    headline: bool = True
    """Whether its panels are rows of the table that a page begins with."""
    pooled: bool = False
    """Whether its panels are worlds of one platform, which are one row there, seed by seed."""
    first_seed: int = 0
    """Where its seeds start: planned experiments have new ones, tuning its own."""
    worlds: int = 1
    """In how many worlds its seeds live, in turns: the world comes with the seed."""
    scored: bool = True
    """Whether its final scores are results; those of one-seed studies of time or tuning are not."""

    def experiments(self, scale: "Scale") -> "Iterator[Experiment]":
        """Every cell of the study, one experiment each."""
        module, _, function = self.cells.partition(":")
        found: Iterator[Experiment] = getattr(import_module(module), function)(scale)
        return found

    @property
    def drawn(self) -> tuple[str, ...]:
        """Paths of the settings that come with the seed, so that runs that differ in them pool."""
        return (WORLD,) if self.worlds > 1 else ()

    def arm_name(self, experiment: Mapping[str, Any], label: str) -> str:
        """The name of the arm that a run belongs to."""
        # No comma inside a name: sentences list names with commas between them.
        return " with ".join(_texts(self.arm_by, experiment)) or label.replace(", ", " with ")

    def setting(self, experiment: Mapping[str, Any]) -> str:
        """The name of the panel that a run belongs to, beside its simulator."""
        return ", ".join(_texts(self.panel_by, experiment))


def value_at(experiment: Mapping[str, Any], path: str) -> Any:
    """What stands at ``path`` (keys with dots between), or None."""
    found: Any = experiment
    for key in path.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    return found


def _texts(axes: tuple[Axis, ...], experiment: Mapping[str, Any]) -> list[str]:
    return [text for axis in axes if (text := axis.text(experiment))]

"""What there is: memories, simulators and agents as data; nothing is imported until it is used.

A memory, simulator or agent is one file, one entry here and one page of docs. Others' are named
`module:Class` wherever a name is taken, or announced by entry points in the groups `lser.memories`,
`lser.simulators` and `lser.agents`; a simulator may also be any Gymnasium id.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any


def nearest(kind: str, name: str, known: Iterable[str], *, more: str = "") -> None:
    """Refuse a name that is not known, with a ValueError that says what is near."""
    names = list(known)
    if name not in names:
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
        listed = f"known: {', '.join(names)}{more}"
        hint = f"did you mean {' or '.join(near)}?" if near else listed
        raise ValueError(f"unknown {kind} {name!r}; {hint}")


@dataclass(frozen=True)
class Entry:
    """One thing of the catalogue: how it is named, found, cited and drawn."""

    name: str
    """What the command line, records and files say."""
    where: str
    """module:Class, imported at first use."""
    title: str
    """What a reader sees."""
    about: str = ""
    """What it does, in one line."""
    source: str = ""
    """Whom to cite."""
    needs: frozenset[str] = frozenset()
    """Of query, td_errors, sessions, goals, files, items, clicks, sight: what it makes use of."""
    knobs: Mapping[str, Any] = field(default_factory=dict)
    """Settings that make this variant of the class."""
    look: tuple[str, str] | None = None
    """Its colour and its marker in figures; others get some of a ramp."""
    settings: str = ""
    """module:Class of its `Params`, where that is lighter to import than `where`."""
    test_knobs: Mapping[str, Any] = field(default_factory=dict)
    """Settings for the contract test, where the defaults suit only large memories."""

    def load(self) -> Any:
        """The class."""
        return _imported(self.where)

    def params_type(self) -> Any:
        """The class of its settings."""
        if self.settings:
            return _imported(self.settings)
        kind = self.load()
        if not hasattr(kind, "Params"):
            raise ValueError(f"{self.where} has no Params, a dataclass of its settings")
        if isinstance(kind, type) and "Params" not in vars(
            kind
        ):  # a record could not tell them apart
            raise ValueError(f"{self.where} inherits its Params; it needs a dataclass of its own")
        return kind.Params

    def params(self, **changes: Any) -> Any:
        """The variant's settings: the defaults of `Params`, the entry's knobs, and `changes`."""
        return self.params_type()(**{**self.knobs, **changes})


class Catalogue(Mapping[str, Entry]):
    """Entries by name; an unknown name is an error that says what is near."""

    def __init__(self, kind: str, plural: str, *entries: Entry) -> None:
        self.kind = kind
        self.group = f"lser.{plural}"
        self.own = {entry.name: entry for entry in entries}

    @cached_property
    def _known(self) -> dict[str, Entry]:
        """Own entries, then those that installed packages announce."""
        found = {
            point.name: plugin(point.name, point.value) for point in entry_points(group=self.group)
        }
        return {**found, **self.own}

    def __getitem__(self, name: str) -> Entry:
        if name in self._known:
            return self._known[name]
        if ":" in name:
            return plugin(name, name)
        nearest(self.kind, name, self._known, more=", or module:Class")
        raise AssertionError("nearest found what is not there")

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def name_of(self, params: Any) -> str:
        """The entry that settings belong to: of their class's variants the closest.

        Knobs that make no variant do not change the name.
        """
        fitting = [entry for entry in self.own.values() if _fits(entry, params)]
        if not fitting:  # others' are only loaded where none of ours fits
            others = [entry for name, entry in self._known.items() if name not in self.own]
            fitting = [entry for entry in others if _loads(entry) and _fits(entry, params)]
        if fitting:
            return max(fitting, key=lambda entry: len(entry.knobs)).name
        return f"{type(params).__module__}:{_owner(params)}"


class Simulators(Catalogue):
    """Also every Gymnasium id: a name that ends in a version."""

    def __getitem__(self, name: str) -> Entry:
        if name in self or not re.fullmatch(r"[\w:./-]+-v\d+", name):
            return super().__getitem__(name)
        where, settings = "lser.simulators.foreign:make", "lser.simulators.foreign:Params"
        return Entry(name, where, name, knobs={"env_id": name}, settings=settings)

    def name_of(self, params: Any) -> str:
        """The entry that settings belong to, or the Gymnasium id."""
        return getattr(params, "env_id", "") or super().name_of(params)


def entry(name: str, where: str, title: str, about: str, source: str, **more: Any) -> Entry:
    """An entry whose needs are written as words."""
    needs = frozenset(str(more.pop("needs", "")).split())
    return Entry(name, where, title, about, source, needs, **more)


def plugin(name: str, where: str) -> Entry:
    """An entry for somebody else's class."""
    return Entry(name, where, name.rpartition(":")[2])


def _imported(where: str) -> Any:
    module, _, name = where.partition(":")
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise ValueError(f"{where}: there is no module {error.name!r}") from None
    if not hasattr(found, name):
        raise ValueError(f"{where}: {module} has no {name!r}")
    return getattr(found, name)


def _fits(entry: Entry, params: Any) -> bool:
    """Whether settings are those of an entry's class and variant."""
    return entry.params_type() is type(params) and all(
        getattr(params, knob) == value for knob, value in entry.knobs.items()
    )


def _loads(entry: Entry) -> bool:
    """Whether somebody else's class can be had; what is installed may be broken."""
    try:
        entry.params_type()
    except Exception:
        return False
    return True


def _owner(params: Any) -> str:
    """The class whose `Params` these are, by the module that defines it."""
    module = import_module(type(params).__module__)
    for name, value in vars(module).items():
        if isinstance(value, type) and getattr(value, "Params", None) is type(params):
            return name
    raise ValueError(f"no class of {module.__name__} has the Params {type(params).__name__}")


def _memory(
    name: str, module: str, prefix: str, title: str, about: str, source: str, **more: Any
) -> Entry:
    where = f"lser.replay.memories.{module}:{prefix}Replay"
    settings = f"lser.replay.memories.params:{prefix}Params"
    return entry(name, where, title, about, source, settings=settings, **more)


_LSER, _DER, _HER = ("locality", "Locality"), ("dynamic", "Dynamic"), ("hindsight", "Hindsight")
_PAPER, _OURS = "the LSER paper", "this project"

# Okabe and Ito's colours, the two lightest darkened until they hold on white as well as on black.
# fmt: off
MEMORIES = Catalogue(
    "memory", "memories",
    _memory("lser", *_LSER, "LSER", "the best of the query's bucket of similar observations",
            _PAPER, needs="query", look=("#d55e00", "o"), test_knobs={"bits": 2}),
    _memory("lser-steady", *_LSER, "LSER, steady",
            "LSER with the newest in every batch, and contrast; its presets bound values", _OURS,
            needs="query", knobs={"greedy_per": "item", "random_from": "memory", "newest": 8},
            look=("#a63d00", "8"), test_knobs={"bits": 2}),
    _memory("uniform", "uniform", "Uniform", "uniform",
            "the newest transitions, drawn uniformly", "Lin 1992", look=("#7d7d7d", "s")),
    _memory("per", "prioritized", "Prioritized", "PER",
            "large TD errors come back more often, with importance weights", "Schaul et al. 2015",
            needs="td_errors", look=("#0072b2", "^")),
    _memory("der", *_DER, "DER", "prioritized shards with zones for whole successful sessions",
            "Luo & Li 2020", needs="td_errors sessions", look=("#3a9bd9", "v"),
            test_knobs={"period": 2}),
    _memory("der-uniform", *_DER, "DER, drawn uniformly",
            "the same zones, uniform draws in a shard",
            "the LSER paper's reading", needs="sessions", knobs={"prioritized": False},
            look=("#5f8aa8", "1"), test_knobs={"period": 2}),
    _memory("aer", "attentive", "Attentive", "AER",
            "of some random candidates, those most like the query", "Sun, Zhou & Li 2020",
            needs="query", look=("#009e73", "D"), test_knobs={"anneal": 20}),
    _memory("ser", "selective", "Selective", "SER",
            "half the newest, half chosen from all of the past", "Isele & Cosgun 2018",
            look=("#cc79a7", "P")),
    _memory("her", *_HER, "HER", "missed goals replayed as goals the session reached",
            "Andrychowicz et al. 2017", needs="sessions goals", look=("#c88a00", "X")),
    _memory("her-balanced", *_HER, "HER, balanced", "half of a batch rewarded, half not",
            "the LSER paper's reading", knobs={"balanced": True}, look=("#a8842e", "2")),
    _memory("lser-p", *_LSER, "LSER-P", "ablation: LSER that forgets by age", _PAPER,
            needs="query", knobs={"store": "fifo"}, look=("#b5467c", "p"), test_knobs={"bits": 2}),
    _memory("lser-s", *_LSER, "LSER-S", "ablation: LSER's store, uniform draws", _PAPER,
            knobs={"sampling": "uniform"}, look=("#2e86ab", "h"), test_knobs={"bits": 2}),
    _memory("reward-top", *_LSER, "reward-top", "control: reward order without locality", _OURS,
            knobs={"codes": "constant"}, look=("#8465cf", "<")),
    _memory("random-code", *_LSER, "random-code", "control: equal buckets without locality", _OURS,
            knobs={"codes": "random"}, look=("#95743a", ">"), test_knobs={"bits": 2}),
    _memory("shuffled-code", *_LSER, "shuffled-code", "control: LSER's buckets without locality",
            _OURS, needs="query", knobs={"codes": "shuffled"}, look=("#6b5a2e", "4"),
            test_knobs={"bits": 2}),
)
# fmt: on


def _simulator(name: str, package: str, prefix: str, title: str, about: str, **more: Any) -> Entry:
    where = f"lser.simulators.{package}.simulator:{prefix}VectorEnv"
    settings = f"lser.simulators.{package}:Params"
    return entry(name, where, title, about, settings=settings, **more)


# fmt: off
SIMULATORS = Simulators(
    "simulator", "simulators",
    _simulator("bazaar", "bazaar", "Bazaar", "Bazaar",
               "a marketplace with dials; the embedded default", source=_OURS),
    _simulator("virtual-taobao", "virtual_taobao", "VirtualTaobao", "VirtualTaobao",
               "Taobao's customers, learned from their logs", source="Shi et al. 2019",
               needs="files"),
    _simulator("interest-evolution", "recsim.interest_evolution", "InterestEvolution",
               "RecSim interest evolution", "interests that drift with what is watched",
               source="Ie et al. 2019"),
    _simulator("long-term-satisfaction", "recsim.long_term_satisfaction", "LongTermSatisfaction",
               "RecSim long-term satisfaction", "clickbait now, boredom later",
               source="Ie et al. 2019"),
    _simulator("recogym", "recogym", "RecoGym", "RecoGym",
               "organic visits, and offers that are rarely clicked", source="Rohde et al. 2018"),
)

_RIDGE = "lser.agents.ridge:Ridge"
AGENTS = Catalogue(
    "agent", "agents",
    entry("ddpg", "lser.agents.ddpg:DDPG", "DDPG", "deterministic actor-critic, the paper's",
          "Lillicrap et al. 2016", settings="lser.agents.params:DDPGParams"),
    entry("td3", "lser.agents.td3:TD3", "TD3", "twin critics, delayed and smoothed",
          "Fujimoto et al. 2018", settings="lser.agents.params:TD3Params"),
    entry("sac", "lser.agents.sac:SAC", "SAC", "a stochastic actor that keeps its entropy up",
          "Haarnoja et al. 2018", settings="lser.agents.params:SACParams"),
    entry("neural-bandit", "lser.agents.ddpg:DDPG", "neural bandit",
          "DDPG that sees no further than the next page", _OURS, knobs={"discount": 0.0},
          settings="lser.agents.params:DDPGParams"),
    entry("ddpg-release", "lser.agents.ddpg:DDPG", "DDPG, the release's",
          "action at the critic's second layer, noise never reset", "Shi et al. 2019",
          knobs={"critic": "late-action", "norm_gain": "uniform", "noise_reset": False},
          settings="lser.agents.params:DDPGParams"),
    entry("click-model", "lser.agents.click_model:ClickModel", "click model",
          "model of each item's click by cosine, Thompson sampling", _OURS, needs="items clicks"),
    entry("ridge", _RIDGE, "linear bandit", "ridge regression on observation x action, noise",
          "Li et al. 2010", knobs={"pages": False}, look=("#0072b2", "^")),
    entry("ridge-thompson", _RIDGE, "linear bandit, Thompson", "the same, drawn from its posterior",
          "Agrawal & Goyal 2013", knobs={"noise": 0.0, "thompson": 1.0, "pages": False},
          look=("#009e73", "D")),
    entry("ridge-pages", _RIDGE, "bandit on pages",
          "the same as ridge on the mean vector of the page's items", _OURS, needs="items",
          knobs={"pages": True}, look=("#3a9bd9", "v")),
    entry("constant", _RIDGE, "best constant", "the one direction that earns most, for everybody",
          _OURS, knobs={"contextual": False, "pages": False}, look=("#c88a00", "X")),
    entry("popular", "lser.agents.simple:Popular", "popular",
          "the mean rewarded direction, for everybody", _OURS, look=("#cc79a7", "P")),
    entry("random", "lser.agents.simple:RandomAgent", "random", "uniformly random actions", _OURS,
          look=("#95743a", ">")),
    entry("oracle", "lser.agents.oracle:Oracle", "oracle",
          "sees the hidden user: the best page known", _OURS, needs="sight", look=("#1a1a1a", "*")),
)
# fmt: on

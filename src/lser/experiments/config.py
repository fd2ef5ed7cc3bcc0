"""An experiment as plain data: frozen dataclasses, one per simulator, memory and agent.

Agents and simulators bring theirs along; the defaults of a memory are its constructor's, and a test
holds the two together.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from tyro.conf import subcommand

from lser.agents.params import DDPGParams as Ddpg
from lser.agents.params import SACParams as Sac
from lser.agents.params import TD3Params as Td3
from lser.simulators.bazaar import Params as Bazaar
from lser.simulators.recogym import Params as RecoGym
from lser.simulators.recsim.interest_evolution import Params as InterestEvolution
from lser.simulators.recsim.long_term_satisfaction import Params as LongTermSatisfaction
from lser.simulators.virtual_taobao import Params as VirtualTaobao

__all__ = [
    "Aer",
    "Agent",
    "Bazaar",
    "Ddpg",
    "Der",
    "Experiment",
    "Her",
    "InterestEvolution",
    "LongTermSatisfaction",
    "Lser",
    "Memory",
    "Per",
    "RecoGym",
    "Sac",
    "Ser",
    "Simulator",
    "Td3",
    "Uniform",
    "VirtualTaobao",
]

# all are called Params in their modules; the command line needs names that differ
Simulator = (
    Annotated[Bazaar, subcommand("bazaar")]
    | Annotated[VirtualTaobao, subcommand("virtual-taobao")]
    | Annotated[InterestEvolution, subcommand("interest-evolution")]
    | Annotated[LongTermSatisfaction, subcommand("long-term-satisfaction")]
    | Annotated[RecoGym, subcommand("recogym")]
)


@dataclass(frozen=True)
class Uniform:
    """First in, first out; every transition equally likely."""


@dataclass(frozen=True)
class Lser:
    """Locality-sensitive replay and, by its knobs, the ablations and controls."""

    bits: int = 10
    """Hyperplanes, hence bits of a code (1 to 32)."""
    greedy: float = 0.9
    """Share of draws that take the best rewards; the rest are random."""
    greedy_per: Literal["batch", "item"] = "batch"
    """Whether one draw decides for a whole batch or for each item."""
    random_from: Literal["bucket", "memory"] = "bucket"
    """Where random draws come from."""
    fill: Literal["repeat", "uniform"] = "repeat"
    """How a pool smaller than the batch is topped up."""
    unseen: Literal["drop", "evict"] = "drop"
    """What a full memory does with a transition of a code it does not hold."""
    order: Literal["reward", "return"] = "reward"
    """What a bucket is ordered by."""
    features: Literal["raw", "centred", "standardised"] = "raw"
    """What enters the hash."""
    store: Literal["reward", "fifo"] = "reward"
    """What makes room when full: the lowest reward (paper), or age (LSER-P)."""
    sampling: Literal["locality", "uniform"] = "locality"
    """How batches are drawn: from the query's bucket (paper), or uniformly (LSER-S)."""
    codes: Literal["simhash", "constant", "random"] = "simhash"
    """simhash (paper); constant is the reward-top control, random the random-code control."""


@dataclass(frozen=True)
class Per:
    """Prioritized replay: proportional to the TD error."""

    alpha: float = 0.6
    beta: float = 0.4


@dataclass(frozen=True)
class Der:
    """Dynamic replay: shards with protected zones of successful sessions."""

    prioritized: bool = True
    """Draw by priority (the original), or uniformly (the paper's reading, `der-uniform`)."""


@dataclass(frozen=True)
class Aer:
    """Attentive replay: of a larger uniform draw, the most similar to the query."""

    features: Literal["raw", "standardised"] = "standardised"


@dataclass(frozen=True)
class Ser:
    """Selective replay: a short-term ring and a ranked long-term memory."""

    strategy: Literal["distribution", "surprise", "reward", "coverage"] = "distribution"


@dataclass(frozen=True)
class Her:
    """Hindsight replay: goals of clicks, relabelled with what the session later reached."""

    balanced: bool = False
    """Half of each batch with reward, half without, and no goals (the paper's reading)."""


Memory = Lser | Uniform | Per | Der | Aer | Ser | Her


Agent = (
    Annotated[Ddpg, subcommand("ddpg")]
    | Annotated[Td3, subcommand("td3")]
    | Annotated[Sac, subcommand("sac")]
)


@dataclass(frozen=True)
class Experiment:
    """One run: who is served, what remembers, what learns, for how long."""

    simulator: Simulator = field(default_factory=Bazaar)
    memory: Memory = field(default_factory=Lser)
    agent: Agent = field(default_factory=Ddpg)
    seed: int = 0
    """Drives users, networks, noise and memory; equal seeds are paired across memories."""
    sessions: int = 2_000
    """Length of the run: finished user sessions."""
    users: int = 8
    """Users served side by side."""
    capacity: int = 1_000_000
    """Transitions the memory holds at most."""
    batch_size: int = 128
    updates_per_step: float = 1.0
    """Gradient updates per environment step; may be a fraction."""
    learning_starts: int = 128
    """Transitions stored before learning starts."""
    horizon: Literal["continuing", "session"] = "continuing"
    """Whether the critic bootstraps through a change of user, or a session is terminal."""
    intervention: float | None = None
    """Stop exploring for good at the first evaluation at or above this score (the paper's T_r)."""
    evaluate_every: int = 200
    """Sessions between evaluations."""
    evaluate_sessions: int = 100
    """Sessions of one evaluation."""
    final_sessions: int = 1_000
    """Sessions of the evaluation at the end."""
    session_length: float = 10.0
    """Expected pages per session; only the memories' annealing schedules use it."""
    study: str = ""
    """The study this run belongs to."""
    label: str = ""
    """The run's cell within its study; by default the memory's name."""

    def __post_init__(self) -> None:
        for name in ("sessions", "users", "capacity", "batch_size"):
            _at_least_one(name, getattr(self, name))
        for name in ("evaluate_every", "evaluate_sessions", "final_sessions"):
            _at_least_one(name, getattr(self, name))
        if not self.updates_per_step > 0:
            raise ValueError(f"updates_per_step must be positive, got {self.updates_per_step}")

    @property
    def expected_updates(self) -> int:
        """About how many updates the run will make."""
        return max(1, round(self.sessions * self.session_length * self.updates_per_step))


def _at_least_one(name: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")

"""Agents that can be stacked, and what a stack of their learners does."""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

from lser.agents.acting import Answer
from lser.agents.actor_critic import ActorCritic
from lser.agents.learner import Learner, Member
from lser.agents.minibatch import BatchShape, HostBatches
from lser.types import Bool, Float32, Float64


class Team(NamedTuple):
    """Agents to be stacked: what they have in common, and each as its learner sees it."""

    learner_type: type[Learner]
    observation_dim: int
    members: list[Member]

    @classmethod
    def of(cls, agents: Sequence[ActorCritic]) -> "Team":
        """The `agents`, if they can be stacked; ValueError if not."""
        kinds = {kind(agent) for agent in agents}
        if len(kinds) != 1:
            raise ValueError(f"agents must have equal architectures, got {sorted(map(str, kinds))}")
        members = [agent.member for agent in agents]
        return cls(agents[0].learner_type, agents[0].observation_dim, members)

    def batch_shape(self, rows: int, *, packed: bool = False) -> BatchShape:
        """The sizes of the batches of one update of all."""
        sizes = self.observation_dim, len(self.members[0].low), self.learner_type.normals
        return BatchShape(len(self.members), rows, *sizes, len(self.learner_type.numbers), packed)


def kind(agent: object) -> tuple[object, ...]:
    """What agents must have in common to be stacked; ValueError if this one cannot be."""
    if not isinstance(agent, ActorCritic):
        raise ValueError(f"only DDPG, TD3 and SAC can be stacked, got {type(agent).__name__}")
    if agent.device.type != "cpu":
        raise ValueError(f"agents to be stacked must be on the CPU, got {agent.device}")
    params = agent.params
    smoothing = getattr(params, "smoothing", 0.0), getattr(params, "smoothing_clip", 0.0)
    shape = agent.observation_dim, agent.action_dim, params.hidden, params.critic
    return (type(agent).__name__, *shape, params.preactivation_penalty, *smoothing)


class Found(NamedTuple):
    """What the last update of every agent found, on the host."""

    errors: Float32  # (G, b)
    critic_loss: Float32  # (G,)


class Stack(Protocol):
    """The learners of a team, with the batches of their updates in buffers on the host."""

    batches: list[HostBatches]
    beside: ClassVar[bool]
    """Whether updates go on beside whoever launches them."""

    def launch(self, active: Sequence[Bool], first: int, *, errors: bool = True) -> None:
        """Start updates of the agents in each of `active` (G,), one after another.

        Their batches lie in the buffers from `first` on. Without `errors` nobody will ask what
        the last of them found.
        """
        ...

    def ready(self) -> bool:
        """Whether the last update has ended."""
        ...

    def found(self) -> Found:
        """Wait for the last update; its result is valid until the next call."""
        ...

    @property
    def looked(self) -> bool:
        """Whether critics' values were looked at, and can be taken once updates have ended."""
        ...

    def take_values(self) -> Float64:
        """The numbers of `Values` (G, 8) looked at since the last call, NaN where none.

        Call it when no update is under way.
        """
        ...

    def ask(self, observations: Float32, normals: Float32 | None = None) -> Answer:
        """Start on actions (G, N, A), before noise, for observations (G, N, O).

        They are those of the actors after all updates that were launched before. `normals` (G, A,
        N) are the draws of stochastic policies.
        """
        ...

    def actor(self, slot: int) -> Float32:
        """One agent's actor, (P,): all that acting needs."""
        ...

    def state(self, slot: int) -> dict[str, Any]:
        """One agent's learner, as its `state_dict`."""
        ...

    def load(self, slot: int, state: dict[str, Any]) -> None:
        """Continue one agent's learner from its `state_dict`."""
        ...

    def close(self) -> None:
        """Let go of the buffers, before their memory goes."""
        ...

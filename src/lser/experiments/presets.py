"""Starting points: each simulator at the paper's lengths and sizes, and smaller ones."""

from dataclasses import fields, replace
from typing import Any, Literal

from lser.agents.params import ActorCriticParams, DDPGParams, NoisyParams
from lser.catalogue import AGENTS, MEMORIES, SIMULATORS
from lser.experiments.experiment import Experiment
from lser.simulators.base import facts_of

Scale = Literal["quick", "medium", "paper"]
SCALES: tuple[Scale, ...] = ("quick", "medium", "paper")

POINTS = 20  # evaluations along a curve
NEWEST = 8  # places of a batch for the newest transitions, in the cure
AGENT = "ddpg"  # the paper's, and what learns where no other agent is known to do better
BETTER = {"bazaar": "click-model"}  # rewards are clicks on items of a catalogue that is known


def preset(
    simulator: str = "bazaar",
    memory: str = "lser-steady",
    agent: str = "",
    *,
    scale: Scale = "paper",
    cure: bool = False,
) -> Experiment:
    """The experiment for these names at `scale`; unknown names are errors that say what is near.

    What is not named is what works: the memory `lser-steady`, and the agent that learns most on
    the simulator, the click model on Bazaar and DDPG elsewhere. `cure` gives any memory what
    `lser-steady` has (`steady`), so that like is compared with like; `ddpg-release` brings the
    release's regime (`released`), and agents without networks learn from batches of 32.
    """
    agent = agent or best_agent(simulator)
    entry = SIMULATORS[simulator]
    facts = facts_of(entry.load())
    sessions: int = getattr(facts.lengths, scale)
    experiment = Experiment(
        simulator=entry.params(),
        memory=MEMORIES[memory].params(),
        agent=AGENTS[agent].params(),
        sessions=sessions,
        capacity=facts.capacity,
        session_length=facts.session_length,
        updates_per_step=1.0 if scale == "paper" else facts.medium_updates,
        evaluate_every=max(1, sessions // POINTS),
    )
    if not hasattr(entry.load(), "simulator_type"):  # one user at a time: short evaluations
        experiment = replace(experiment, evaluate_sessions=20, final_sessions=100)
    if cure or memory == "lser-steady":
        experiment = steady(experiment)
    if simulator == "bazaar":
        experiment = _for_bazaar(experiment)
    if not isinstance(experiment.agent, ActorCriticParams):
        experiment = replace(experiment, batch_size=32)
    return released(experiment) if agent == "ddpg-release" else experiment


def best_agent(simulator: str) -> str:
    """The agent that learns most on a simulator, as far as is known."""
    return BETTER.get(simulator, AGENT)


def _for_bazaar(experiment: Experiment) -> Experiment:
    """Bazaar's runs are short: more noise and smaller batches for every memory.

    In the grid of I (results/plan.md) noise 1 suited all memories best in 53 cases of 54, and
    batches of 32 eight of nine at the paper's discount. A discount of 0, which is worth more than
    any of these, makes DDPG another agent, `neural-bandit`.
    """
    agent, memory = experiment.agent, experiment.memory
    if isinstance(agent, NoisyParams):
        agent = replace(agent, noise_scale=1.0)
    if isinstance(memory, MEMORIES["lser"].params_type()):
        memory = replace(memory, fill="uniform")
        if memory.random_from == "memory":
            memory = replace(memory, greedy=0.5)
    return replace(experiment, agent=agent, memory=memory, batch_size=32)


def earlier_bazaar(experiment: Experiment) -> Experiment:
    """Bazaar as its preset was when most studies ran: batches of 128, six bits for LSER."""
    memory = experiment.memory
    if isinstance(memory, MEMORIES["lser"].params_type()) and memory.random_from != "memory":
        memory = replace(memory, bits=6)
    return replace(experiment, memory=memory, batch_size=128)


def steady(experiment: Experiment) -> Experiment:
    """The cure for runs that fall, for any memory and agent.

    The newest 8 in every batch, a coin per item and random draws from the whole memory where the
    memory has a coin, and targets within what rewards allow where the agent has targets. A memory
    that will be full forgets by age.
    """
    wanted = {"newest": NEWEST, "greedy_per": "item", "random_from": "memory"}
    agent = experiment.agent
    if isinstance(agent, ActorCriticParams):
        agent = replace(agent, value_bound="auto")
    cured = replace(experiment, memory=_with(experiment.memory, wanted), agent=agent)
    return _forgetting(cured)


def released(experiment: Experiment) -> Experiment:
    """The regime of the VirtualTaobao release's example, very probably the paper's.

    Its DDPG (the action at the critic's second layer, LayerNorm gains from U(0, 1), noise never
    reset), five updates per step, sessions as terminal, one user. Other agents keep their networks.
    """
    agent = experiment.agent
    if isinstance(agent, DDPGParams):
        agent = replace(agent, **AGENTS["ddpg-release"].knobs)
    return replace(experiment, agent=agent, updates_per_step=5.0, horizon="session", users=1)


LEARNABLE = ("interest-evolution", "long-term-satisfaction", "recogym")


def learnable(
    simulator: str,
    memory: str = "lser-steady",
    agent: str = "",
    *,
    objective: str = "",
    cure: bool = False,
) -> Experiment:
    """A platform of the paper at settings under which DDPG learns it, in minutes.

    Interest evolution by `objective` "quality" (the default) or "watch time", at which it hardly
    learns; RecoGym by "expected click" (the default) or "click", which takes longer. LSER forgets
    by age, as these memories fill. Other agents get what they share with DDPG, and `cure` is that
    of `preset`.
    """
    if simulator not in LEARNABLE:
        raise ValueError(f"simulator must be one of {', '.join(LEARNABLE)}, got {simulator!r}")
    experiment = preset(simulator, memory, agent or AGENT, scale="medium", cure=cure)
    simulator_params = experiment.simulator
    knobs: dict[str, Any] = {"noise_scale": 1.0}
    changes: dict[str, Any] = {"updates_per_step": 1.0, "capacity": 100_000}
    match simulator:
        case "interest-evolution":
            goal = objective or "quality"
            simulator_params = replace(simulator_params, reward=goal)
            knobs |= {"tau": 0.02}
            changes |= {"horizon": "session", "sessions": 3_000 if goal == "watch time" else 500}
        case "long-term-satisfaction":
            simulator_params = type(simulator_params).informative()
            knobs |= {"tau": 0.02}
            changes |= {"horizon": "session", "sessions": 500}
        case "recogym":
            goal = objective or "expected click"
            simulator_params = replace(
                simulator_params, observation="log_counts", reward=goal, reward_scale=50.0
            )
            knobs |= {"discount": 0.0}
            changes["sessions"] = 20_000 if goal == "click" else 300
    experiment = replace(
        experiment,
        simulator=simulator_params,
        agent=_with(experiment.agent, knobs),
        memory=_with(experiment.memory, {"store": "fifo"}),
    )
    return lasting(replace(experiment, **changes), changes["sessions"])


def lasting(experiment: Experiment, sessions: int) -> Experiment:
    """`experiment` cut or stretched to `sessions`, its curve keeping its number of points."""
    longer = replace(experiment, sessions=sessions, evaluate_every=max(1, sessions // POINTS))
    return _forgetting(longer) if getattr(longer.memory, "newest", 0) == NEWEST else longer


def _forgetting(experiment: Experiment) -> Experiment:
    """`experiment` with a store that forgets by age, if its memory will be full before the end.

    A full store that keeps the best rewards turns away what the present policy does.
    """
    if experiment.sessions * experiment.session_length <= experiment.capacity:
        return experiment
    return replace(experiment, memory=_with(experiment.memory, {"store": "fifo"}))


def _with(params: Any, wanted: dict[str, Any]) -> Any:
    """`params` with those of the `wanted` settings that it has."""
    known = {field.name for field in fields(params)}
    return replace(params, **{name: value for name, value in wanted.items() if name in known})

"""Starting points: each simulator at the paper's settings, and smaller ones."""

from dataclasses import replace
from typing import Literal

from lser.agents.params import NoisyParams
from lser.catalogue import AGENTS, MEMORIES, SIMULATORS
from lser.experiments.experiment import Experiment
from lser.simulators.base import facts_of

Scale = Literal["quick", "medium", "paper"]
SCALES: tuple[Scale, ...] = ("quick", "medium", "paper")

POINTS = 20  # evaluations along a curve


def preset(
    simulator: str = "bazaar",
    memory: str = "lser",
    agent: str = "ddpg",
    *,
    scale: Scale = "paper",
) -> Experiment:
    """The experiment for these names at `scale`; unknown names are errors that say what is near."""
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
    return _for_bazaar(experiment) if simulator == "bazaar" else experiment


def _for_bazaar(experiment: Experiment) -> Experiment:
    """Bazaar's runs are short: more noise for every memory, and codes that fill in that time.

    Chosen on seeds apart from the reported ones, with uniform, LSER and reward-top: of the noise
    scales .3, .6 and 1 the largest was best for all three; of 5, 6 and 10 bits, ten leave most
    buckets nearly empty after ten thousand transitions.
    """
    agent, memory = experiment.agent, experiment.memory
    if isinstance(agent, NoisyParams):
        agent = replace(agent, noise_scale=1.0)
    if isinstance(memory, MEMORIES["lser"].params_type()):
        memory = replace(memory, bits=6, fill="uniform")
    return replace(experiment, agent=agent, memory=memory)


def lasting(experiment: Experiment, sessions: int) -> Experiment:
    """`experiment` cut or stretched to `sessions`, its curve keeping its number of points."""
    return replace(experiment, sessions=sessions, evaluate_every=max(1, sessions // POINTS))

"""From an experiment to objects: the one place where config becomes environment, agent, memory."""

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv

from lser.agents import DDPG, SAC, TD3
from lser.agents.actor_critic import ActorCritic
from lser.agents.protocol import Agent
from lser.experiments.config import (
    Aer,
    Bazaar,
    Ddpg,
    Der,
    Experiment,
    Her,
    InterestEvolution,
    LongTermSatisfaction,
    Lser,
    Per,
    RecoGym,
    Sac,
    Ser,
    Simulator,
    Td3,
    Uniform,
    VirtualTaobao,
)
from lser.experiments.preflight import check_memory
from lser.replay import (
    AttentiveReplay,
    ConstantCode,
    DynamicReplay,
    Encoder,
    HindsightReplay,
    LocalityReplay,
    PrioritizedReplay,
    RandomCode,
    SelectiveReplay,
    UniformReplay,
)
from lser.replay.base import Replay
from lser.simulators.base import UserVectorEnv
from lser.simulators.bazaar.simulator import BazaarVectorEnv
from lser.simulators.recogym.simulator import RecoGymVectorEnv
from lser.simulators.recsim.interest_evolution.simulator import InterestEvolutionVectorEnv
from lser.simulators.recsim.long_term_satisfaction.simulator import LongTermSatisfactionVectorEnv
from lser.simulators.virtual_taobao.simulator import VirtualTaobaoVectorEnv
from lser.training import GoalEnv


class Seeds(NamedTuple):
    """One seed for each source of chance, all from the experiment's; equal across memories."""

    users: int
    agent: int
    replay: int
    evaluation: int
    final: int

    @classmethod
    def of(cls, seed: int) -> "Seeds":
        """Independent seeds for the parts of a run."""
        return cls(*(int(word) for word in np.random.SeedSequence(seed).generate_state(5)))


class Built(NamedTuple):
    """The parts of a run."""

    env: VectorEnv[Any, Any, Any]
    evaluation_env: VectorEnv[Any, Any, Any]
    agent: Agent
    replay: Replay
    seeds: Seeds


def build(experiment: Experiment) -> Built:
    """Make everything that `experiment` describes."""
    seeds = Seeds.of(experiment.seed)
    rows = min(experiment.evaluate_sessions, 256)
    env = make_env(experiment, experiment.users)
    evaluation_env = make_env(experiment, rows, evaluation=True)
    return Built(
        env,
        evaluation_env,
        build_agent(experiment, env, seeds.agent),
        build_replay(experiment, env, seeds.replay),
        seeds,
    )


AGENTS: dict[type, type[ActorCritic]] = {Ddpg: DDPG, Td3: TD3, Sac: SAC}
ENVIRONMENTS: dict[type, type[UserVectorEnv]] = {
    Bazaar: BazaarVectorEnv,
    VirtualTaobao: VirtualTaobaoVectorEnv,
    InterestEvolution: InterestEvolutionVectorEnv,
    LongTermSatisfaction: LongTermSatisfactionVectorEnv,
    RecoGym: RecoGymVectorEnv,
}


def build_simulator(params: Simulator, users: int) -> UserVectorEnv:
    """The native vector environment for `params`."""
    return ENVIRONMENTS[type(params)](users, params=params)


def make_env(
    experiment: Experiment, users: int, *, evaluation: bool = False
) -> VectorEnv[Any, Any, Any]:
    """The experiment's environment, with goals in the observation where the memory needs them."""
    env = build_simulator(experiment.simulator, users)
    match experiment.memory:
        case Her(balanced=False):
            return GoalEnv(env, goals(experiment.simulator), highest=evaluation)
        case _:
            return env


def goals(params: Simulator) -> tuple[float, ...]:
    """Hindsight's goals: clicks on a page, or matching thresholds of the reward."""
    return ENVIRONMENTS[type(params)].simulator_type.goals


def build_agent(experiment: Experiment, env: VectorEnv[Any, Any, Any], seed: int) -> Agent:
    """The learner, sized for `env`."""
    observation_dim, action = _sizes(env)
    params = experiment.agent
    return AGENTS[type(params)](observation_dim, action, params=params, seed=seed)


def build_replay(experiment: Experiment, env: VectorEnv[Any, Any, Any], seed: int) -> Replay:
    """The memory, sized for `env`."""
    observation_dim, action = _sizes(env)
    assert action.shape is not None
    sizes = (experiment.capacity, observation_dim, action.shape[0])
    check_memory(*sizes)
    updates = experiment.expected_updates
    match experiment.memory:
        case Uniform():
            return UniformReplay(*sizes, seed=seed)
        case Lser() as knobs:
            return _locality(experiment, knobs, sizes, seed)
        case Per(alpha=alpha, beta=beta):
            return PrioritizedReplay(*sizes, alpha=alpha, beta=beta, anneal=updates, seed=seed)
        case Der(prioritized=prioritized):
            return DynamicReplay(*sizes, prioritized=prioritized, seed=seed)
        case Aer(features=features):
            anneal = max(1, updates // 2)
            return AttentiveReplay(*sizes, features=features, anneal=anneal, seed=seed)
        case Ser(strategy=strategy):
            return SelectiveReplay(*sizes, strategy=strategy, seed=seed)
        case Her(balanced=balanced):
            aims = goals(experiment.simulator)
            return HindsightReplay(*sizes, goals=aims, balanced=balanced, seed=seed)


def _locality(
    experiment: Experiment, knobs: Lser, sizes: tuple[int, int, int], seed: int
) -> LocalityReplay:
    match knobs.codes:
        case "simhash":
            encoder: Encoder | None = None  # the memory's own
        case "constant":
            encoder = ConstantCode()
        case "random":
            encoder = RandomCode(bits=knobs.bits, seed=seed)
    return LocalityReplay(
        *sizes,
        bits=knobs.bits,
        greedy=knobs.greedy,
        greedy_per=knobs.greedy_per,
        random_from=knobs.random_from,
        fill=knobs.fill,
        unseen=knobs.unseen,
        order=knobs.order,
        discount=experiment.agent.discount,
        features=knobs.features,
        store=knobs.store,
        sampling=knobs.sampling,
        encoder=encoder,
        seed=seed,
    )


def _sizes(env: VectorEnv[Any, Any, Any]) -> tuple[int, gym.spaces.Box]:
    observation, action = env.single_observation_space, env.single_action_space
    if not isinstance(action, gym.spaces.Box):
        raise ValueError(f"agents act in a Box; actions='continuous' gives one, got {action}")
    assert observation.shape is not None
    return observation.shape[0], action

"""From an experiment to what runs: environment, agent, memory and their seeds."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv

from lser.agents.protocol import Agent
from lser.catalogue import AGENTS, MEMORIES, SIMULATORS
from lser.experiments.experiment import Experiment
from lser.experiments.preflight import check_memory
from lser.replay import Replay
from lser.simulators.base import Anchor, facts_of
from lser.training import Evaluation, Step, evaluate, train
from lser.training.goals import GoalEnv
from lser.training.sight import SightedEnv
from lser.types import Items


class Seeds(NamedTuple):
    """One seed at the top, a child for every part that draws."""

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
    experiment: Experiment

    def train(self) -> Iterator[Step]:
        """`lser.train` on these parts, at the experiment's batch, updates, horizon and seed."""
        wanted = self.experiment
        return train(
            self.env,
            self.agent,
            self.replay,
            batch_size=wanted.batch_size,
            updates_per_step=wanted.updates_per_step,
            learning_starts=wanted.learning_starts,
            horizon=wanted.horizon,
            seed=self.seeds.users,
        )

    def evaluate(self, sessions: int | None = None) -> Evaluation:
        """`lser.evaluate` on fresh users, by default as many as at the experiment's end."""
        count = self.experiment.final_sessions if sessions is None else sessions
        return evaluate(self.agent, self.evaluation_env, sessions=count, seed=self.seeds.final)


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
        experiment,
    )


def make_env(
    experiment: Experiment, users: int, *, evaluation: bool = False
) -> VectorEnv[Any, Any, Any]:
    """The experiment's environment; its observations end in what memory and agent need to see.

    For hindsight that is a goal, for the oracle the best action.
    """
    simulator, memory, agent = experiment.names
    kind = SIMULATORS[simulator].load()
    env: VectorEnv[Any, Any, Any] = kind(users, params=experiment.simulator)
    sighted = "sight" in AGENTS[agent].needs
    if "goals" not in MEMORIES[memory].needs:
        return SightedEnv(env) if sighted else env
    if sighted:
        raise ValueError(
            f"{agent} and {memory} both need the end of the observation; {agent} learns nothing "
            "from a memory, so give it another, such as uniform"
        )
    return GoalEnv(env, facts_of(kind).goals, highest=evaluation)


def build_agent(experiment: Experiment, env: VectorEnv[Any, Any, Any], seed: int) -> Agent:
    """The learner, sized for `env`."""
    observation_dim, action = sizes_of(env)
    entry = AGENTS[experiment.names[2]]
    told = {"items": items_of(env)} if "items" in entry.needs else {}
    agent: Agent = entry.load()(observation_dim, action, params=experiment.agent, seed=seed, **told)
    return agent


def build_replay(experiment: Experiment, env: VectorEnv[Any, Any, Any], seed: int) -> Replay:
    """The memory, sized for `env`, with its settings for a run like this."""
    observation_dim, action = sizes_of(env)
    assert action.shape is not None
    sizes = (experiment.capacity, observation_dim, action.shape[0])
    check_memory(*sizes, experiment.memory)
    simulator, memory, _ = experiment.names
    params = experiment.memory
    if hasattr(params, "for_run"):
        discount = getattr(experiment.agent, "discount", 0.0)
        goals = facts_of(SIMULATORS[simulator].load()).goals
        params = params.for_run(experiment.expected_updates, discount, goals)
    replay: Replay = MEMORIES[memory].load()(*sizes, params=params, seed=seed)
    return replay


def anchors(experiment: Experiment) -> tuple[Anchor, Anchor] | None:
    """The scores of random actions and of the best known policy, where the simulator knows them."""
    kind = getattr(SIMULATORS[experiment.names[0]].load(), "simulator_type", None)
    if kind is None:
        return None
    known: tuple[Anchor, Anchor] = kind(experiment.simulator).anchors()
    return known


def items_of(env: VectorEnv[Any, Any, Any]) -> Items | None:
    """The catalogue that the environment's actions score, where it has one."""
    found: Items | None = getattr(env.unwrapped, "items", None)
    return found


def sizes_of(env: VectorEnv[Any, Any, Any]) -> tuple[int, gym.spaces.Box]:
    """The width of an observation, and the Box of actions; ValueError for other spaces."""
    observation, action = env.single_observation_space, env.single_action_space
    if not isinstance(action, gym.spaces.Box):
        raise ValueError(f"agents act in a Box; actions='continuous' gives one, got {action}")
    if not isinstance(observation, gym.spaces.Box) or len(observation.shape) != 1:
        raise ValueError(
            f"observations must be vectors in a Box, got {observation}; "
            "gymnasium.wrappers.FlattenObservation makes them so"
        )
    return observation.shape[0], action

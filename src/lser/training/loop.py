"""The training loop: a generator that yields one record per vector step."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from time import perf_counter
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv

from lser.agents.protocol import Agent, Learned
from lser.checks import check_count, check_number
from lser.replay.protocol import Replay
from lser.training.traffic import Arrival, Traffic
from lser.types import Batch, Bool, Float32, Horizon

LOOK_EVERY = 16  # updates between two looks at whether a batch has one reward


class Step(NamedTuple):
    """One vector step: totals so far and what just happened."""

    steps: int  # environment steps so far, every user's counted
    sessions: int  # finished sessions so far
    updates: int  # gradient updates so far
    reward: Float32  # (N,) of this step
    done: Bool  # (N,) sessions that ended in this step
    learned: Learned | None  # the last update of this step
    info: dict[str, Any]  # the environment's


@dataclass
class Progress:
    """Where a run stands; with agent, replay and traffic it is all that a checkpoint needs."""

    steps: int = 0
    sessions: int = 0
    updates: int = 0
    owed: float = 0.0  # updates due and not yet done
    observation: Float32 | None = None  # (N, O) what the agent acts on next
    recent: list[Float32] = field(default_factory=list)  # latest observation blocks, newest first
    frozen: bool = False  # no more updates
    batches: int = 0  # looked at for whether all their rewards are one
    one_reward: int = 0  # of those, how many had
    values: list[float] = field(default_factory=list)  # `Values` of the last look at the critic
    times: dict[str, float] = field(
        default_factory=lambda: {"env": 0.0, "replay": 0.0, "learn": 0.0, "evaluate": 0.0}
    )

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Count the time of a `with` block towards `part`."""
        start = perf_counter()
        try:
            yield
        finally:
            self.times[part] += perf_counter() - start


def train(
    env: VectorEnv[Any, Any, Any] | gym.Env[Any, Any] | Traffic,
    agent: Agent,
    replay: Replay,
    *,
    batch_size: int = 128,
    updates_per_step: float = 1.0,
    learning_starts: int = 128,
    horizon: Horizon = "continuing",
    seed: int = 0,
    progress: Progress | None = None,
) -> Iterator[Step]:
    """Act on every user, learn, store; forever: the caller decides when to stop.

    `env` is a vector environment, or a single one, which counts as a vector of one.
    `updates_per_step` counts per environment step and may be a fraction. Each update queries the
    memory with a different user's observation, before that user's transition is stored. Pass the
    `progress` of an earlier call to continue it.
    """
    check_count("batch_size", batch_size)
    check_number("updates_per_step", updates_per_step, low=0.0, above=True)
    check_count("learning_starts", learning_starts, low=0)
    traffic = env if isinstance(env, Traffic) else Traffic(env, horizon)
    now = progress if progress is not None else Progress()
    if now.observation is None:
        now.observation = traffic.reset(seed)
    return _loop(traffic, agent, replay, now, batch_size, updates_per_step, learning_starts)


def _loop(
    traffic: Traffic,
    agent: Agent,
    replay: Replay,
    now: Progress,
    batch_size: int,
    updates_per_step: float,
    learning_starts: int,
) -> Iterator[Step]:
    while True:
        observation = look(now, updates_per_step)
        began = perf_counter()
        action = agent.act(observation, explore=True)
        now.times["learn"] += perf_counter() - began
        arrival = advance(traffic, now, action)
        rows = len(arrival.block.reward)
        updates = due(replay, now, rows, updates_per_step, learning_starts)
        learned = learn(agent, replay, now, updates, batch_size)
        yield store(agent, replay, now, arrival, learned)


def learn(
    agent: Agent, replay: Replay, now: Progress, updates: int, batch_size: int
) -> Learned | None:
    """Draw so many batches, learn from each and tell the memory; returns what the last taught."""
    learned = None
    for turn in range(updates):
        batch = draw(replay, now, turn, batch_size)
        began = perf_counter()
        learned = agent.learn(batch)
        learnt = perf_counter()
        if learned.values is not None:
            now.values = list(learned.values)
        replay.update(batch.ids, learned.td_errors)
        now.times["learn"] += learnt - began
        now.times["replay"] += perf_counter() - learnt
    return learned


def look(now: Progress, updates_per_step: float) -> Float32:
    """The observation (N, O) to act on, noted as the newest that updates may query with."""
    observation = now.observation
    assert observation is not None
    now.recent.insert(0, observation)
    del now.recent[max(1, ceil(updates_per_step)) :]
    return observation


def advance(traffic: Traffic, now: Progress, action: Float32) -> Arrival:
    """Let the actions (N, A) happen; what they lead to is not yet stored."""
    assert now.observation is not None
    began = perf_counter()
    arrival = traffic.step(now.observation, action)
    now.times["env"] += perf_counter() - began
    return arrival


def due(
    replay: Replay, now: Progress, rows: int, updates_per_step: float, learning_starts: int
) -> int:
    """How many updates to do before `rows` new transitions are stored; a fraction is kept."""
    if now.frozen or len(replay) <= learning_starts:
        return 0
    now.owed += rows * updates_per_step
    whole = int(now.owed)
    now.owed -= whole
    return whole


def draw(replay: Replay, now: Progress, turn: int, batch_size: int) -> Batch:
    """The batch of the next update, each for another user's observation, newest first."""
    users = len(now.recent[0])
    block = now.recent[min(turn // users, len(now.recent) - 1)]
    began = perf_counter()
    batch = replay.sample(batch_size, query=block[now.updates % users])
    now.times["replay"] += perf_counter() - began
    if now.updates % LOOK_EVERY == 0:
        now.batches += 1
        now.one_reward += bool((batch.reward == batch.reward[0]).all())
    now.updates += 1
    return batch


def store(
    agent: Agent, replay: Replay, now: Progress, arrival: Arrival, learned: Learned | None
) -> Step:
    """File what arrived, and count it."""
    began = perf_counter()
    if arrival.streams is None:
        replay.extend(*arrival.block)
    elif arrival.streams.size:
        replay.extend(*arrival.block, streams=arrival.streams)
    now.times["replay"] += perf_counter() - began
    if (observe := getattr(agent, "observe", None)) is not None:
        began = perf_counter()
        observe(arrival.block)
        now.times["learn"] += perf_counter() - began
    if arrival.done.any():
        agent.end_sessions(arrival.done)
        now.sessions += int(np.count_nonzero(arrival.done))
    now.steps += len(arrival.block.reward)
    now.observation = arrival.observation
    return Step(
        now.steps,
        now.sessions,
        now.updates,
        arrival.block.reward,
        arrival.done,
        learned,
        arrival.info,
    )

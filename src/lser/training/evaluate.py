"""Noise-free evaluation on users of its own."""

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from numpy.typing import NDArray

from lser.agents.protocol import Agent
from lser.checks import check_count
from lser.simulators.base import Metric
from lser.training.traffic import as_vector

REWARD_PER_STEP = Metric("reward_per_step", "reward", "steps")


class Evaluation(NamedTuple):
    """Scores over whole sessions, each with its standard error over sessions."""

    sessions: int
    metric: float  # the simulator's own, e.g. CTR
    metric_se: float
    reward: float  # per session
    reward_se: float
    length: float  # pages per session
    length_se: float


def metric_of(env: VectorEnv[Any, Any, Any]) -> Metric:
    """The environment's own metric, or reward per step where it names none."""
    single = env.envs[0] if isinstance(env, SyncVectorEnv) else env
    metric = getattr(single.unwrapped, "metric", REWARD_PER_STEP)
    return metric if isinstance(metric, Metric) else REWARD_PER_STEP


def evaluate(
    agent: Agent,
    env: VectorEnv[Any, Any, Any] | gym.Env[Any, Any],
    *,
    sessions: int,
    seed: int = 12_345,
) -> Evaluation:
    """Run `sessions` users' whole sessions without exploration.

    `env` is the evaluation's alone; every row plays exactly one session a wave, so long sessions
    are not under-represented.
    """
    check_count("sessions", sessions)
    env = as_vector(env)
    metric = metric_of(env)
    totals = np.zeros((4, 0))
    for wave in range(-(-sessions // env.num_envs)):
        totals = np.hstack([totals, _wave(agent, env, metric, seed + wave)])
    numerator, denominator, reward, length = totals[:, :sessions]
    score, score_se = ratio(numerator, denominator)
    return Evaluation(sessions, score, score_se, *_mean(reward), *_mean(length))


def _wave(
    agent: Agent, env: VectorEnv[Any, Any, Any], metric: Metric, seed: int
) -> NDArray[np.float64]:
    """Per user: the metric's two sums, the reward and the length of one session, (4, N)."""
    mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
    observation, _ = env.reset(seed=seed)
    active = np.ones(env.num_envs, np.bool_)
    totals = np.zeros((4, env.num_envs))
    while active.any():
        action = agent.act(np.asarray(observation, np.float32))
        observation, reward, terminated, truncated, info = env.step(action)
        step = {"reward": reward, "steps": active, **info}
        totals[0] += np.where(active, step[metric.numerator], 0.0)
        totals[1] += np.where(active, step[metric.denominator], 0.0)
        totals[2] += np.where(active, reward, 0.0)
        totals[3] += active
        done = np.asarray(terminated) | np.asarray(truncated)
        if mode is AutoresetMode.DISABLED and done.any():
            observation, _ = env.reset(options={"reset_mask": done})
        active &= ~done
    return totals


def ratio(numerator: NDArray[np.float64], denominator: NDArray[np.float64]) -> tuple[float, float]:
    """Sum over sum and its standard error over sessions (delta method); 0 where nothing counted."""
    total = denominator.sum()
    if total == 0:
        return 0.0, 0.0
    value = numerator.sum() / total
    n = numerator.size
    if n < 2:
        return float(value), 0.0
    residual = numerator - value * denominator
    return float(value), float(np.sqrt(n / (n - 1) * (residual**2).sum()) / total)


def _mean(values: NDArray[np.float64]) -> tuple[float, float]:
    se = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else 0.0
    return float(values.mean()), float(se)

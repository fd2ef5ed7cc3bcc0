"""Any registered Gymnasium environment as a simulator of an experiment."""

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorEnv


@dataclass(frozen=True)
class Params:
    """Which environment."""

    env_id: str = ""
    """Its Gymnasium id, such as Pendulum-v1, or module:id."""


def make(users: int, *, params: Params) -> VectorEnv[Any, Any, Any]:
    """So many copies of the environment, side by side; ValueError says why there is none."""
    try:
        return gym.make_vec(params.env_id, num_envs=users, vectorization_mode="sync")
    except (gym.error.Error, ModuleNotFoundError) as error:
        raise ValueError(f"simulator {params.env_id!r}: {error}") from None

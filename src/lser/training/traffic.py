"""Vector steps into transitions: which next observation and which flags are stored.

Horizon "continuing" treats traffic as endless: a departing user is followed by the next one, so
the stored next observation is the newcomer's first, ``terminated`` is False, and ``truncated``
marks the change of user. Horizon "session" stores the user's own last observation and the
environment's own flags. Both work for every autoreset mode of Gymnasium's vector environments.
"""

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from lser.checks import check_choice
from lser.types import HORIZONS, Bool, Float32, Horizon, Int64, Transitions


class Arrival(NamedTuple):
    """One vector step: the transitions it completed and what the users did."""

    block: Transitions
    streams: Int64 | None  # stream of each row of `block`; None when row i is stream i
    observation: Float32  # (N, O) what the agent acts on next
    done: Bool  # (N,) sessions that ended in this step
    info: dict[str, Any]


def as_vector(env: Any) -> VectorEnv[Any, Any, Any]:
    """A vector environment as it is, a single one as a vector of one; TypeError says what to do."""
    if isinstance(env, VectorEnv):
        return env
    if isinstance(env, gym.Env):
        vector: VectorEnv[Any, Any, Any] = gym.vector.SyncVectorEnv([lambda: env])
        vector.closed = True  # its environment is the caller's to close
        return vector
    if isinstance(env, str):
        raise TypeError(
            f"env is the name {env!r}; gymnasium.make_vec({env!r}, num_envs=8) makes it"
        )
    raise TypeError(f"env must be a Gymnasium environment or vector environment, got {env!r}")


class Traffic:
    """A vector environment as a source of transitions for one horizon."""

    def __init__(self, env: Any, horizon: Horizon = "continuing") -> None:
        check_choice("horizon", horizon, HORIZONS)
        self.env = env = as_vector(env)
        self.horizon = horizon
        self.mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        # NEXT_STEP only: rows whose last step ended a session, and what they wait to store
        self._resetting = np.zeros(env.num_envs, np.bool_)
        self._waiting: Transitions | None = None

    def reset(self, seed: int) -> Float32:
        """First observations of `num_envs` users."""
        observation, _ = self.env.reset(seed=seed)
        self._resetting[:] = False
        self._waiting = None
        return np.asarray(observation, np.float32)

    def step(self, observation: Float32, action: Float32) -> Arrival:
        """Act on every user and collect the transitions that this completes."""
        following, reward, terminated, truncated, info = self.env.step(action)
        block = Transitions(
            observation,
            action,
            np.asarray(reward, np.float32),
            np.asarray(following, np.float32),
            np.asarray(terminated, np.bool_),
            np.asarray(truncated, np.bool_),
        )
        if self.mode is AutoresetMode.NEXT_STEP:
            return self._next_step(block, info)
        done = block.terminated | block.truncated
        own = first = block.next_observation  # the departing user's last, the newcomer's first
        if done.any():
            if self.mode is AutoresetMode.SAME_STEP:
                own = _final_observations(block.next_observation, info, done)
            else:
                restarted, _ = self.env.reset(options={"reset_mask": done})
                first = np.asarray(restarted, np.float32)
        if self.horizon == "session":
            block = block._replace(next_observation=own)
        else:
            block = _bridge(block, first, done)
        return Arrival(block, None, first, done, info)

    def _next_step(self, block: Transitions, info: dict[str, Any]) -> Arrival:
        """Rows that ended a session last time only reset now; their action had no effect."""
        resetting = self._resetting
        done = (block.terminated | block.truncated) & ~resetting
        stored = block
        if self.horizon == "session":
            rows = np.flatnonzero(~resetting)
        else:
            rows = np.flatnonzero(~done)  # ended ones wait for the newcomer's observation
            if self._waiting is not None and resetting.any():
                merged = [field.copy() for field in block]
                for field, waiting in zip(merged, self._waiting, strict=True):
                    field[resetting] = waiting[resetting]
                stored = _bridge(Transitions._make(merged), block.next_observation, resetting)
            self._waiting = block
        self._resetting = done
        arrived = Transitions._make(field[rows] for field in stored)
        return Arrival(arrived, rows.astype(np.int64), block.next_observation, done, info)

    @property
    def can_be_saved(self) -> bool:
        """Whether the environment can be saved mid-session; others' start anew when stopped."""
        return hasattr(self.env, "state_dict")

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs to continue mid-session, the environment included."""
        save = getattr(self.env, "state_dict", None)
        if save is None:
            raise ValueError(
                f"checkpoints need an environment with state_dict() and load_state_dict(), "
                f"got {type(self.env).__name__}"
            )
        waiting = None if self._waiting is None else list(self._waiting)
        return {"env": save(), "resetting": self._resetting.copy(), "waiting": waiting}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict()`."""
        self.env.load_state_dict(state["env"])  # type: ignore[attr-defined]  # it saved it
        self._resetting = np.array(state["resetting"], np.bool_)
        waiting = state["waiting"]
        self._waiting = None if waiting is None else Transitions(*waiting)


def _bridge(block: Transitions, first: Float32, done: Bool) -> Transitions:
    """Continuing traffic: bootstrap through the change of user, marked by `truncated`."""
    return block._replace(
        next_observation=first, terminated=np.zeros_like(done), truncated=done.copy()
    )


def _final_observations(following: Float32, info: dict[str, Any], done: Bool) -> Float32:
    own = following.copy()
    final = info["final_obs"]
    for row in np.flatnonzero(done):
        own[row] = final[row]
    return own

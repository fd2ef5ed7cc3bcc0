"""Our memories as replay buffers of Stable-Baselines3: DDPG, TD3, SAC and DQN.

``DDPG("MlpPolicy", env, replay_buffer_class=MemoryReplayBuffer, replay_buffer_kwargs=...)``;
guide and limits: docs/guides/sb3.md.
"""

import warnings
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import torch
from gymnasium import spaces

from lser.adapters.columns import Array, Columns, Observation
from lser.adapters.recipe import Recipe
from lser.replay import Replay
from lser.types import Float32

try:
    from stable_baselines3 import DQN, SAC, TD3
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.buffers import ReplayBuffer
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.type_aliases import DictReplayBufferSamples, ReplayBufferSamples
    from stable_baselines3.common.vec_env import VecNormalize
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "lser.adapters.sb3 needs Stable-Baselines3: pip install stable-baselines3", name=error.name
    ) from error

EXACT = 2**24  # float32 holds the integers up to here


class MemoryReplayBuffer(ReplayBuffer):
    """Any memory of `lser` where Stable-Baselines3 expects its replay buffer.

    `memory` is a name of `lser memories` ("lser", "uniform", "per", "reward-top", ...),
    ``module:Class``, or a class that keeps the `Replay` protocol; `params` and `knobs` are its
    constructor's. Without a `seed` the model's is used.

    The query of a draw is the latest observation added, another environment's at each draw; at an
    episode's end that is the departed user's last one, unless `QueryCallback` sets the newcomer's
    first.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: torch.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        *,
        memory: str | type[Replay] = "lser",
        seed: int | None = None,
        params: Any = None,
        **knobs: Any,
    ) -> None:
        if optimize_memory_usage:
            raise ValueError(
                "optimize_memory_usage=True: it takes the next observation from the next slot, but "
                "this memory decides where a transition goes; leave it False"
            )
        columns = Columns(observation_space)
        # past ReplayBuffer's own constructor, which allocates arrays for a ring
        super(ReplayBuffer, self).__init__(
            buffer_size, observation_space, action_space, device, n_envs=n_envs
        )
        self.buffer_size = max(buffer_size // n_envs, 1)  # in vector steps, as in SB3
        self.optimize_memory_usage = False
        self.handle_timeout_termination = handle_timeout_termination
        self._columns = columns
        if isinstance(action_space, spaces.Discrete) and action_space.n > EXACT:
            raise ValueError(
                f"action_space has {action_space.n} actions, at most {EXACT} are exact"
            )
        self._action_dtype = self._maybe_cast_dtype(action_space.dtype)
        seed = torch.initial_seed() % 2**32 if seed is None else seed
        self._recipe = Recipe(memory, seed, params, knobs)
        self.td_errors: Callable[[ReplayBufferSamples], Array] | None = None
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.pos, self.full = 0, False
        capacity = self.buffer_size * self.n_envs
        self.memory = self._recipe.make(capacity, self._columns.width, self.action_dim)
        self._query: Float32 | None = None  # (n_envs, O)
        self._draws = 0
        self._last: tuple[Array, ReplayBufferSamples] | None = None  # ids and data of a draw

    def size(self) -> int:
        """Vector steps held, as in SB3: transitions over environments."""
        return len(self.memory) // self.n_envs

    def add(
        self,
        obs: Observation,
        next_obs: Observation,
        action: Array,
        reward: Array,
        done: Array,
        infos: list[dict[str, Any]],
    ) -> None:
        """Store one vector step; `next_obs` becomes the query."""
        ended = np.asarray(done, np.bool_).reshape(self.n_envs)
        timeout = np.zeros(self.n_envs, np.bool_)
        if self.handle_timeout_termination:
            timeout[:] = [info.get("TimeLimit.truncated", False) for info in infos]
        following = self._columns.flatten(next_obs, self.n_envs)
        self.memory.extend(
            self._columns.flatten(obs, self.n_envs),
            np.asarray(action).reshape(self.n_envs, self.action_dim),
            np.asarray(reward).reshape(self.n_envs),
            following,
            ended & ~timeout,
            ended & timeout,
        )
        self._query = following
        self.pos = (self.pos + 1) % self.buffer_size
        self.full = len(self.memory) == self.memory.capacity

    def set_query(self, obs: Observation) -> None:
        """Make `obs`, raw and one per environment, what the next draws ask about."""
        self._query = self._columns.flatten(obs, self.n_envs)

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> ReplayBufferSamples:
        """Draw a batch on the buffer's device, normalised by `env` if there is one."""
        self._report()
        query = None if self._query is None else self._query[self._draws % self.n_envs]
        self._draws += 1
        batch = self.memory.sample(batch_size, query=query)
        tensor = self._tensor
        samples = (
            tensor(self._normalize_obs(self._columns.restore(batch.observation), env)),
            tensor(batch.action.astype(self._action_dtype, copy=False)),
            tensor(self._normalize_obs(self._columns.restore(batch.next_observation), env)),
            tensor(batch.terminated.astype(np.float32).reshape(-1, 1)),
            tensor(self._normalize_reward(batch.reward.reshape(-1, 1), env)),
        )
        kind = DictReplayBufferSamples if self._columns.named else ReplayBufferSamples
        data = cast("ReplayBufferSamples", kind(*samples))
        self._last = (batch.ids, data) if self._recipe.hears else None
        return data

    def _tensor(self, value: Observation) -> Any:
        if isinstance(value, dict):
            return {key: self.to_torch(array) for key, array in value.items()}
        return self.to_torch(value)

    def _report(self) -> None:
        """Tell the memory the TD errors of the last draw, whose gradient step is done by now."""
        if self._last is None:
            return
        ids, data = self._last
        if self.td_errors is not None:
            self.memory.update(ids, self.td_errors(data))
        elif self._draws == 1 and "td_errors" in self._recipe.needs:
            warnings.warn(
                f"memory={self._recipe.name!r} draws by TD errors, which Stable-Baselines3 does "
                "not report: pass callback=TDErrorCallback() to learn()",
                stacklevel=3,
            )

    def __getstate__(self) -> dict[str, Any]:
        """The memory as plain data; the link to a model is not saved."""
        state = self.__dict__ | {"_last": None, "td_errors": None}
        return state | {"memory": (type(self.memory), self.memory.state())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        kind, saved = state["memory"]
        self.__dict__.update(state | {"memory": kind.from_state(saved)})


class QueryCallback(BaseCallback):
    """Makes the query exact: what the model acts on next, also where an episode has just ended."""

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        model = cast("Any", self.model)
        raw = model._vec_normalize_env is not None
        _buffer_of(self.model).set_query(model._last_original_obs if raw else model._last_obs)


class TDErrorCallback(BaseCallback):
    """Gives memories the TD errors that Stable-Baselines3 keeps to itself.

    They are computed when the next batch is drawn, hence after the batch's own gradient step; one
    more forward pass per update. Importance weights have no place in SB3's losses: none are used.
    """

    def _on_training_start(self) -> None:
        _buffer_of(self.model).td_errors = self.td_errors

    def _on_training_end(self) -> None:
        _buffer_of(self.model).td_errors = None

    def _on_step(self) -> bool:
        return True

    @torch.no_grad()
    def td_errors(self, data: ReplayBufferSamples) -> Array:
        """Target minus value, (b,), the mean over critics; override it for other algorithms."""
        model, after = self.model, data.next_observations
        if isinstance(model, DQN):
            following = model.q_net_target(after).max(dim=1, keepdim=True).values
            value = model.q_net(data.observations).gather(1, data.actions.long())
        elif isinstance(model, TD3 | SAC):
            if isinstance(model, TD3):  # DDPG too
                action, bonus = model.actor_target(after), torch.zeros(())
            else:
                action, log_prob = model.actor.action_log_prob(after)
                bonus = -_temperature(model) * log_prob.reshape(-1, 1)
            critics = torch.cat(model.critic_target(after, action), dim=1)
            following = critics.min(dim=1, keepdim=True).values + bonus
            value = torch.cat(model.critic(data.observations, data.actions), dim=1)
        else:
            raise ValueError(
                f"TDErrorCallback knows DDPG, TD3, SAC and DQN, got {type(model).__name__}: "
                "override td_errors in a subclass"
            )
        target = data.rewards + (1 - data.dones) * model.gamma * following
        errors: Array = (target - value).mean(dim=1).cpu().numpy()
        return errors


def _temperature(model: SAC) -> torch.Tensor:
    if model.ent_coef_optimizer is None or model.log_ent_coef is None:
        return model.ent_coef_tensor
    return model.log_ent_coef.detach().exp()


def _buffer_of(model: BaseAlgorithm) -> MemoryReplayBuffer:
    buffer = getattr(model, "replay_buffer", None)
    if not isinstance(buffer, MemoryReplayBuffer):
        raise ValueError(
            "this callback needs replay_buffer_class=MemoryReplayBuffer (lser.adapters.sb3), "
            f"got {type(buffer).__name__}"
        )
    return buffer

"""The replay buffer that RLlib talks to: episodes in, one-step episodes out, a memory between."""

import json
from typing import Any, NoReturn

import numpy as np
import xxhash
from gymnasium import spaces
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger
from ray.rllib.utils.replay_buffers.prioritized_episode_buffer import (
    PrioritizedEpisodeReplayBuffer,
)

from lser.adapters.columns import Array, Columns
from lser.checks import check_count
from lser.replay import Replay, State
from lser.types import Batch, Float32, Int64

_STATS_EVERY = 100  # draws


class MemoryEpisodeReplayBuffer(PrioritizedEpisodeReplayBuffer):
    """Any memory of `lser` where RLlib expects its replay buffer; its configs here make it.

    It takes episodes apart into transitions and gives one-step episodes back. Being prioritized is
    how RLlib knows whom to report TD errors to; nothing of that class's trees is used.

    The query of a draw is the newest observation of a running episode, another one's at each draw.
    """

    def __init__(
        self,
        memory: Replay,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        *,
        hears: bool = True,
    ) -> None:
        # past the constructors of RLlib's buffers, which make room for episodes and trees
        self.memory, self.capacity, self.hears = memory, memory.capacity, hears
        self._columns, self._action_space = Columns(observation_space), action_space
        named = observation_space if isinstance(observation_space, spaces.Dict) else None
        parts = {"": observation_space} if named is None else named.spaces
        self._scalars = {key for key, part in parts.items() if isinstance(part, spaces.Discrete)}
        self._query: Float32 | None = None  # (running episodes, O)
        self._draws = self._added = self._sampled = 0
        self._last: Int64 | None = None  # ids of a draw

    def __len__(self) -> int:
        return len(self.memory)

    def add(self, episodes: Any, weight: float | None = None) -> None:
        """Store the steps of episodes or of fragments of them; the last observations are asked."""
        running: list[Float32] = []
        ended: list[Float32] = []
        for episode in episodes if isinstance(episodes, list) else [episodes]:
            rows = self._add(episode)
            (ended if episode.is_done else running).append(rows[-1])
        if running or ended:
            self._query = np.stack(running or ended)

    def _add(self, episode: Any) -> Float32:
        """Store an episode; returns its observations, (n + 1, O)."""
        steps = len(episode)
        rows = self._columns.flatten(
            _stacked(episode.get_observations(slice(0, steps + 1))), steps + 1
        )
        if steps == 0:
            return rows
        terminated, truncated = np.zeros((2, steps), np.bool_)
        terminated[-1], truncated[-1] = episode.is_terminated, episode.is_truncated
        action = np.asarray(episode.get_actions(slice(0, steps))).reshape(steps, -1)
        # fragments of an episode share its id
        stream = xxhash.xxh3_64_intdigest(str(episode.id_).encode()) >> 1
        self.memory.extend(
            rows[:-1],
            action,
            np.asarray(episode.get_rewards(slice(0, steps))),
            rows[1:],
            terminated,
            truncated & ~terminated,
            streams=np.full(steps, stream),
        )
        self._added += steps
        return rows

    def sample(  # of many arguments, RLlib passes these
        self,
        num_items: int | None = None,
        *,
        n_step: Any = 1,
        batch_length_T: int | None = None,
        **others: Any,
    ) -> list[Any]:
        """Draw `num_items` transitions, each an episode of one step with "weights" and "n_step"."""
        if n_step not in (None, 1):
            raise ValueError(f"n_step={n_step!r}: only n_step=1 is right with this memory")
        if batch_length_T:
            raise ValueError(
                f"batch_length_T={batch_length_T}: the memory keeps transitions, not sequences; "
                "use modules without state"
            )
        query = None if self._query is None else self._query[self._draws % len(self._query)]
        batch = self.memory.sample(check_count("num_items", num_items), query=query)
        self._draws += 1
        self._sampled += len(batch.ids)
        self._last = batch.ids
        return self._episodes(batch)

    def _episodes(self, batch: Batch) -> list[Any]:
        before, after = self._restored(batch.observation), self._restored(batch.next_observation)
        shape = self._action_space.shape
        assert shape is not None  # of a Box or Discrete space; others are refused
        action = batch.action.reshape(len(batch.ids), *shape)
        action = action.astype(self._action_space.dtype, copy=False)
        ends = zip(batch.terminated.tolist(), batch.truncated.tolist(), strict=True)
        one = np.ones(1)
        found = []
        for i, (terminated, truncated) in enumerate(ends):
            episode = SingleAgentEpisode(
                id_=str(i),
                observations=[before[i], after[i]],
                infos=[{}, {}],
                actions=[action[i]],
                rewards=InfiniteLookbackBuffer([batch.reward[i]]),
                terminated=terminated,
                truncated=truncated,
                extra_model_outputs={
                    "n_step": InfiniteLookbackBuffer(one),
                    "weights": InfiniteLookbackBuffer(batch.weights[i : i + 1]),
                },
                t_started=0,
                len_lookback_buffer=0,
            )
            found.append(episode)
        return found

    def _restored(self, rows: Float32) -> Any:
        """Observations as RLlib had them, by row."""
        found = self._columns.restore(rows)
        if not isinstance(found, dict):
            return found[:, 0] if self._scalars else found
        found = {key: p[:, 0] if key in self._scalars else p for key, p in found.items()}
        return [{key: part[i] for key, part in found.items()} for i in range(len(rows))]

    def update_priorities(self, priorities: Array, module_id: str | None = None) -> None:
        """Take the TD errors, without their signs, of the last draw."""
        if not self.hears:
            return
        errors = np.asarray(priorities)
        if self._last is None or len(self._last) != len(errors):
            asked = None if self._last is None else len(self._last)
            raise ValueError(
                f"priorities are of {len(errors)} transitions, the last draw of {asked}"
            )
        self.memory.update(self._last, errors)

    def get_metrics(self) -> Any:
        """Steps added and drawn, and now and then what the memory says of itself."""
        metrics = MetricsLogger(root=False)
        metrics.log_value("num_env_steps_added_lifetime", self._added, reduce="item")
        metrics.log_value("num_env_steps_sampled_lifetime", self._sampled, reduce="item")
        if self._draws % _STATS_EVERY == 1:
            for name, value in self.memory.stats().items():
                metrics.log_value(("memory", name), value, reduce="item")
        return metrics.reduce()

    def get_num_timesteps(self, module_id: str | None = None) -> int:
        """Transitions held."""
        return len(self.memory)

    def get_added_timesteps(self, module_id: str | None = None) -> int:
        """Transitions ever added, refused ones too."""
        return self._added

    def get_sampled_timesteps(self, module_id: str | None = None) -> int:
        """Transitions ever drawn."""
        return self._sampled

    def get_num_episodes(self, module_id: str | None = None) -> NoReturn:
        """Refused: there are none."""
        raise ValueError("this memory keeps transitions, not episodes")

    get_num_episodes_evicted = get_num_episodes

    def get_state(self) -> dict[str, Any]:
        """The memory and the query: strings, numbers and arrays of its own."""
        config, arrays = self.memory.state()
        return {
            "kind": type(self.memory).__name__,
            "config": json.dumps(config),
            "arrays": {name: np.array(array) for name, array in arrays.items()},
            "query": self._query,
            "counts": [self._draws, self._added, self._sampled],
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `get_state()`."""
        kind = type(self.memory)
        if state["kind"] != kind.__name__:
            raise ValueError(f"the checkpoint holds a {state['kind']}, this is a {kind.__name__}")
        self.memory = kind.from_state(State(json.loads(state["config"]), dict(state["arrays"])))
        self.capacity, self._last = self.memory.capacity, None
        self._query = state["query"]
        self._draws, self._added, self._sampled = state["counts"]


def _stacked(observations: Any) -> Any:
    """Observations of a slice, a list of them or already one array, as `Columns` takes them."""
    if isinstance(observations, list) and isinstance(observations[0], dict):
        return {key: np.stack([o[key] for o in observations]) for key in observations[0]}
    return observations if isinstance(observations, dict) else np.asarray(observations)

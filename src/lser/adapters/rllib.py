"""Our memories inside RLlib's current API stack: SAC, TQC and DQN.

``LserSACConfig().environment(...).replay("lser", capacity=100_000, bits=8).build_algo()``; guide
and limits: docs/guides/rllib.md.
"""

import copy
from typing import Any, Self

import numpy as np
from gymnasium import spaces

from lser.adapters.columns import Columns
from lser.adapters.recipe import Recipe
from lser.replay import Memory, Replay

try:
    import ray
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
    from ray.rllib.algorithms.dqn import DQN, DQNConfig
    from ray.rllib.algorithms.sac import SAC, SACConfig
    from ray.rllib.algorithms.tqc import TQC, TQCConfig
    from ray.rllib.core import DEFAULT_MODULE_ID

    from lser.adapters.rllib_buffer import MemoryEpisodeReplayBuffer
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"lser.adapters.rllib needs RLlib ({error.name} is missing): "
        "pip install 'ray[tune]==2.60.0' dm_tree lz4 ormsgpack",
        name=error.name,
    ) from error

__all__ = [
    "LserDQN",
    "LserDQNConfig",
    "LserSAC",
    "LserSACConfig",
    "LserTQC",
    "LserTQCConfig",
    "MemoryEpisodeReplayBuffer",
]

TESTED = "2.60"  # the adapter leans on what RLlib does not promise to keep
EXACT = 2**24  # float32 holds the integers up to here
_COMPONENT = "replay_memory"  # its name in a checkpoint

if not ray.__version__.startswith(f"{TESTED}."):
    raise ImportError(
        f"lser.adapters.rllib is tested with ray {TESTED}, found {ray.__version__}: "
        f"pip install 'ray[tune]=={TESTED}.0'"
    )


class _Config(AlgorithmConfig):
    """The setting that all three configs have beside RLlib's own."""

    def __init__(self, algo_class: Any = None) -> None:
        super().__init__(algo_class=algo_class)
        self.replay_buffer_config = {"type": "EpisodeReplayBuffer"}  # what RLlib checks
        self.replay()

    def replay(
        self,
        memory: str | type[Replay] | Replay = "lser",
        *,
        capacity: int = 1_000_000,
        seed: int | None = None,
        params: Any = None,
        **knobs: Any,
    ) -> Self:
        """Choose the memory: a name of `lser memories`, ``module:Class``, a class or an instance.

        `params` and `knobs` are its constructor's; without a `seed` the algorithm's is used. An
        instance is copied and has its own capacity, seed and knobs.
        """
        options = {"memory": memory, "capacity": capacity, "seed": seed, "params": params}
        self.replay_memory = {**options, "knobs": knobs}
        return self

    def validate(self) -> None:
        """Refuse what would be wrong with such a memory, beside what RLlib refuses."""
        super().validate()
        n_step, learners = getattr(self, "n_step", 1), self.num_learners
        if n_step != 1:
            raise ValueError(
                f"n_step={n_step!r}: the memory keeps single transitions, so only n_step=1 is right"
            )
        if self.replay_buffer_config != {"type": "EpisodeReplayBuffer"}:
            raise ValueError(
                f"replay_buffer_config={self.replay_buffer_config!r}: choose the memory by "
                ".replay('lser', capacity=..., ...)"
            )
        if not (self.enable_rl_module_and_learner and self.enable_env_runner_and_connector_v2):
            raise ValueError("api_stack: the memories work with RLlib's new API stack only")
        if self.is_multi_agent:
            raise ValueError("multi_agent: the memories are for one agent")
        hears = _hears(self.replay_memory["memory"], self.recipe())
        if learners > 1 and hears:
            raise ValueError(
                f"num_learners={learners}: RLlib loses the order of TD errors with several "
                f"learners, and {self.replay_memory['memory']!r} needs it; use one"
            )

    def recipe(self) -> Recipe | None:
        """How to make the memory; None if there is one."""
        o = self.replay_memory
        if not isinstance(o["memory"], str | type):
            if not isinstance(o["memory"], Replay):
                raise ValueError(
                    "memory must be a name, as 'lser' or 'module:Class', a class or a memory, "
                    f"got {o['memory']!r}"
                )
            if o["params"] is not None or o["knobs"] or o["seed"] is not None:
                raise ValueError("params, seed and knobs are for a memory that is yet to be made")
            return None
        seed = o["seed"] if o["seed"] is not None else self.seed
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        return Recipe(o["memory"], seed, o["params"], o["knobs"])

    def make_buffer(
        self, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]
    ) -> MemoryEpisodeReplayBuffer:
        """A buffer with the memory that was chosen, empty or a copy."""
        if isinstance(action_space, spaces.Discrete) and action_space.n > EXACT:
            raise ValueError(
                f"action_space has {action_space.n} actions, at most {EXACT} are exact"
            )
        if not isinstance(action_space, spaces.Discrete | spaces.Box):
            raise ValueError(f"action_space must be a Box or Discrete, got {action_space}")
        width = int(np.prod(action_space.shape or (1,)))
        recipe, given = self.recipe(), self.replay_memory["memory"]
        if recipe is None:
            memory = copy.deepcopy(given)
        else:
            seen = Columns(observation_space).width
            memory = recipe.make(self.replay_memory["capacity"], seen, width)
        return MemoryEpisodeReplayBuffer(
            memory, observation_space, action_space, hears=_hears(given, recipe)
        )


class _Algorithm(DQN):
    """A DQN, SAC or TQC that makes its memory by itself and has it in its checkpoints."""

    def _create_local_replay_buffer_if_necessary(self, config: Any) -> None:
        """Nothing yet: the spaces are not known."""

    def setup(self, config: Any) -> None:
        """Set RLlib's parts up, then the memory."""
        super().setup(config)
        if self._module_is_stateful:
            raise ValueError(
                "the memory keeps transitions, not sequences: modules with state "
                "(use_lstm) need RLlib's own buffer"
            )
        self.local_replay_buffer = self.config.make_buffer(*self.spaces[DEFAULT_MODULE_ID])

    def get_state(
        self, components: Any = None, *, not_components: Any = None, **others: Any
    ) -> dict[str, Any]:
        """RLlib's state, and the memory."""
        state: dict[str, Any] = super().get_state(
            components, not_components=not_components, **others
        )
        if self._check_component(_COMPONENT, components, not_components):
            state[_COMPONENT] = self.local_replay_buffer.get_state()
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `get_state()`, the memory included."""
        super().set_state(state)
        if _COMPONENT in state:
            self.local_replay_buffer.set_state(state[_COMPONENT])


class LserSAC(_Algorithm, SAC):
    """RLlib's SAC with one of our memories."""

    @classmethod
    def get_default_config(cls) -> "LserSACConfig":
        """A `LserSACConfig`."""
        return LserSACConfig()


class LserTQC(_Algorithm, TQC):
    """RLlib's TQC with one of our memories."""

    @classmethod
    def get_default_config(cls) -> "LserTQCConfig":
        """A `LserTQCConfig`."""
        return LserTQCConfig()


class LserDQN(_Algorithm):
    """RLlib's DQN with one of our memories."""

    @classmethod
    def get_default_config(cls) -> "LserDQNConfig":
        """A `LserDQNConfig`."""
        return LserDQNConfig()


class LserSACConfig(_Config, SACConfig):
    """RLlib's `SACConfig` with `replay`, which chooses the memory."""

    def __init__(self, algo_class: Any = None) -> None:
        super().__init__(algo_class or LserSAC)


class LserTQCConfig(_Config, TQCConfig):
    """RLlib's `TQCConfig` with `replay`, which chooses the memory."""

    def __init__(self, algo_class: Any = None) -> None:
        super().__init__(algo_class or LserTQC)


class LserDQNConfig(_Config, DQNConfig):
    """RLlib's `DQNConfig` with `replay`, which chooses the memory."""

    def __init__(self, algo_class: Any = None) -> None:
        super().__init__(algo_class or LserDQN)


def _hears(memory: Any, recipe: Recipe | None) -> bool:
    """Whether TD errors mean anything to the memory."""
    if recipe is not None:
        return recipe.hears
    return getattr(type(memory), "feedback", None) is not Memory.feedback

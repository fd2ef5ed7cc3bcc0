"""What agents without networks share: bounds, a random start, exploration, exact state, one file.

They act along a direction: the unit vector of a user's taste, in units of half the action's range.
"""

import threading
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lser import files
from lser.agents.bounds import Box, action_bounds, checked_observation
from lser.agents.protocol import Learned
from lser.checks import check_count, check_fields, check_number, check_size
from lser.params import make_params
from lser.types import Batch, Bool, Float32, Float64, Items, Profile, Transitions


@dataclass(frozen=True, kw_only=True)
class BanditParams:
    """What agents without networks have in common."""

    warmup: int = 256
    """Transitions with uniformly random actions at the start."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_count("warmup", self.warmup, low=0)


class Bandit(ABC):
    """Bounds, a random start, and a state that is the attributes named in `KEPT`.

    Its methods may be called from several threads; a lock lets in one at a time.
    """

    Params: ClassVar[type] = BanditParams
    KEPT: ClassVar[tuple[str, ...]] = ()
    """The attributes, arrays and numbers, that learning changes."""

    def __init__(
        self,
        observation_dim: int,
        action_low: ArrayLike | Box,
        action_high: ArrayLike | None = None,
        *,
        params: Any = None,
        seed: int = 0,
        items: Items | None = None,
        **overrides: Any,
    ) -> None:
        """Act in the bounds `action_low` and `action_high`, or in the Box given for the first.

        `items` is the catalogue that actions score, for agents that make use of it.
        """
        self.observation_dim = check_size("observation_dim", observation_dim)
        self.params = make_params(self.Params, params, overrides)
        self._low, self._high = action_bounds(action_low, action_high)
        self._middle, self._range = (self._high + self._low) / 2, (self._high - self._low) / 2
        self.action_dim = len(self._low)
        self.items = items
        if items is not None and items.vectors.shape[1] != self.action_dim:
            wide = items.vectors.shape[1]
            raise ValueError(f"items have {wide} features, actions have {self.action_dim}")
        self.rng = np.random.default_rng(check_count("seed", seed, low=0))
        self.warm = self.params.warmup
        self.exploring = True
        self._lock = threading.RLock()
        self.begin()

    # What an agent says for itself

    def begin(self) -> None:
        """Make what it learns, as it is before anything was seen; here nothing."""
        return

    @abstractmethod
    def choose(self, observation: Float64, explore: bool) -> Float64:
        """Actions (N, A) in units of half the range, for observations (N, O)."""

    def see(self, transitions: Transitions) -> None:
        """Take every new transition into account, once; here not at all."""
        del transitions

    def replay(self, batch: Batch) -> Float64:
        """Learn from what is replayed; returns what was missed of each reward, (b,)."""
        return np.zeros(len(batch.reward))

    # The protocol

    def act(self, observation: Float32, *, explore: bool = False) -> Float32:
        """Actions (N, A) within the Box bounds for observations (N, O)."""
        observation = checked_observation(observation, self.observation_dim)
        with self._lock:
            explore = explore and self.exploring
            if explore and self.warm > 0:
                self.warm -= len(observation)
                chosen: NDArray[Any] = self.random_actions(len(observation))
            else:
                chosen = self.choose(observation.astype(np.float64), explore)
        action = np.clip(self._middle + self._range * chosen, self._low, self._high)
        bounded: Float32 = action.astype(np.float32)
        return bounded

    def random_actions(self, rows: int) -> Float64:
        """Uniform actions (rows, A), in units of half the range."""
        return self.rng.uniform(-1, 1, (rows, self.action_dim))

    def directions(self, action: Float32) -> Float64:
        """Unit vectors (n, A) of actions, from the middle of their range."""
        return unit((action.astype(np.float64) - self._middle) / self._range)

    def observe(self, transitions: Transitions) -> None:
        """Take a block of new transitions into account."""
        with self._lock:
            self.see(transitions)

    def learn(self, batch: Batch) -> Learned:
        """Take a batch of replayed transitions into account."""
        wide = batch.observation.shape, batch.action.shape
        if wide != (
            (len(batch.reward), self.observation_dim),
            (len(batch.reward), self.action_dim),
        ):
            raise ValueError(
                f"batch must have observations (b, {self.observation_dim}) and actions "
                f"(b, {self.action_dim}), got {wide[0]} and {wide[1]}"
            )
        with self._lock:
            missed = self.replay(batch)
        return Learned({"squares": float((missed**2).mean())}, missed.astype(np.float32))

    def end_sessions(self, done: Bool) -> None:
        """Nothing: exploration keeps no state per session."""
        del done

    def stop_exploring(self) -> None:
        """From now on `explore=True` acts like `explore=False`."""
        self.exploring = False

    # State and file

    def state_dict(self) -> dict[str, Any]:
        """All that learning and acting change, as arrays and numbers."""
        with self._lock:
            learned = {name: _copied(getattr(self, name)) for name in self.KEPT}
            acted = {"warm": self.warm, "exploring": self.exploring}
            return {**learned, **acted, "rng": files.rng_state(self.rng)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state_dict()` of an agent built with the same arguments."""
        with self._lock:
            for name in self.KEPT:
                mine, value = getattr(self, name), state[name]
                if np.shape(mine) != np.shape(value):
                    found = f"{np.shape(value)} numbers, this agent {np.shape(mine)}"
                    raise ValueError(f"state's {name} has {found}")
                setattr(self, name, np.array(value) if np.ndim(mine) else type(mine)(value))
            self.warm, self.exploring = int(state["warm"]), bool(state["exploring"])
            self.rng = files.rng_from_state(state["rng"])

    def save(self, path: str | Path) -> None:
        """Write the agent to one file, which `lser.load_agent` reads; never pickle."""
        arrays: dict[str, Any] = {}
        config: dict[str, object] = {
            "observation_dim": self.observation_dim,
            "params": asdict(self.params),
            "state": files.flatten(self.state_dict(), arrays, "state"),
        }
        arrays |= {"action_low": self._low, "action_high": self._high}
        if self.items is not None:
            profile = None if self.items.profile is None else list(self.items.profile)
            config["items"] = {"shown": self.items.shown, "profile": profile}
            arrays["items"] = self.items.vectors
        files.save(path, type(self).__name__, files.State(config, arrays))

    @classmethod
    def from_file(cls, state: files.State) -> Self:
        """The agent that `save` wrote; KeyError or TypeError where the file is not whole."""
        config: dict[str, Any] = dict(state.config)
        known, items = config.get("items"), None
        if known is not None:
            profile = None if known["profile"] is None else Profile(*known["profile"])
            items = Items(np.asarray(state.arrays["items"]), int(known["shown"]), profile)
        bounds = state.arrays["action_low"], state.arrays["action_high"]
        agent = cls(int(config["observation_dim"]), *bounds, items=items, **config["params"])
        agent.load_state_dict(files.restore(config["state"], state.arrays))
        return agent


def check_numbers(params: object, *names: str) -> None:
    """ValueError for a setting that is negative or not finite."""
    for name in names:
        check_number(name, getattr(params, name), low=0.0)


def unit(rows: NDArray[Any]) -> Float64:
    """Rows scaled to unit length."""
    length = np.sqrt(np.einsum("nd,nd->n", rows, rows))[:, None]
    scaled: Float64 = rows / np.maximum(length, 1e-9)
    return scaled


def draw_tastes(features: Float64, covariance: Float64, rng: np.random.Generator) -> Float64:
    """Draws (N, A) of ``features @ W`` less its mean, for W (F, A) of that covariance (FA, FA)."""
    rows, wide = features.shape
    across = len(covariance) // wide
    half = (features @ covariance.reshape(wide, -1)).reshape(rows, across, wide, across)
    spread = np.einsum("nagb,ng->nab", half, features)
    root = np.linalg.cholesky(spread + 1e-9 * np.eye(across))
    drawn: Float64 = (root @ rng.standard_normal((rows, across, 1)))[:, :, 0]
    return drawn


def with_one(observation: Float64) -> Float64:
    """Observations (N, O) with a column of ones, (N, O + 1)."""
    return np.concatenate((observation, np.ones((len(observation), 1))), axis=1)


def page_vectors(items: Items, action: Float32) -> Float32:
    """The vectors (n, k, A) of the items that each action (n, A) shows."""
    from lser.top_k import top_k  # Numba is loaded when a catalogue is searched

    scores = action.astype(np.float32) @ items.vectors.T
    vectors: Float32 = items.vectors[top_k(scores, items.shown)]
    return vectors


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value

"""From pure batched dynamics to Gymnasium: one Env (a batch of one) and one native VectorEnv.

A simulator module gives a frozen ``Params`` dataclass and a class that keeps `Simulator`: spaces
and functions over arrays with a leading users axis and an explicit rng. Everything Gymnasium asks
for (seeding, autoreset, argument checks, rendering, saving) is here, once.
"""

import copy
import dataclasses
from typing import Any, ClassVar, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from lser.params import make_params
from lser.types import Bool, Float32, Items

Info = dict[str, NDArray[Any]]


class Metric(NamedTuple):
    """A simulator's own score: the ratio of two sums of per-step ``info`` numbers over sessions."""

    name: str
    numerator: str
    denominator: str


class Anchor(NamedTuple):
    """A known score on the simulator's metric, to read a result as a share of the possible."""

    policy: str
    score: float
    source: str


class Lengths(NamedTuple):
    """How many sessions a study on a simulator lasts, by its scale."""

    quick: int
    medium: int
    paper: int


class Outcome(NamedTuple):
    """What one step brought to every user."""

    reward: Float32  # (n,)
    terminated: Bool  # (n,) the user left
    info: Info  # plain numbers per user, each with a leading users axis


class Simulator(Protocol):
    """Pure batched dynamics. `Users` is a dataclass whose fields all have a leading users axis."""

    params_type: ClassVar[type]
    metric: ClassVar[Metric]
    goals: ClassVar[tuple[float, ...]]
    """Thresholds of the reward that hindsight takes for goals: clicks on a page, or the like."""
    session_length: ClassVar[float]
    """Pages per session of random actions: what plans of updates and annealing count with."""
    lengths: ClassVar[Lengths]
    capacity: ClassVar[int]
    """Transitions that a memory holds in studies."""
    medium_updates: ClassVar[float]
    """Updates per step of studies below the paper's scale, equal for every memory."""
    single_observation_space: gym.Space[Float32]
    single_action_space: gym.Space[Any]

    def __init__(self, params: Any) -> None: ...

    def arrive(self, rng: np.random.Generator, n: int) -> Any:
        """Draw `n` new users at the start of their sessions."""
        ...

    def observe(self, users: Any) -> Float32:
        """What the recommender sees of each user, (n, O); a new array at every call."""
        ...

    def step(self, users: Any, action: NDArray[Any], rng: np.random.Generator) -> Outcome:
        """Show every user a page chosen by `action` and advance `users` in place."""
        ...

    def describe(self, users: Any, info: Info | None) -> str:
        """One user (arrays of length 1) and the last step's info, in words."""
        ...

    def anchors(self) -> tuple[Anchor, Anchor]:
        """The score of random actions and of the best known policy."""
        ...


class Facts(NamedTuple):
    """What experiments ask of a simulator beside its dynamics."""

    goals: tuple[float, ...]
    session_length: float
    lengths: Lengths
    capacity: int
    medium_updates: float


def facts_of(env: Any) -> Facts:
    """The facts of a vector environment's class; guesses for one of somebody else's."""
    simulator = getattr(env, "simulator_type", env)
    guesses = Facts((1.0,), 100.0, Lengths(30, 300, 1_000), 100_000, 1.0)
    known: dict[str, Any] = {
        name: getattr(simulator, name, guess) for name, guess in guesses._asdict().items()
    }
    return Facts(**known)


def check_action(space: gym.Space[Any], action: Any) -> NDArray[Any]:
    """`action` as an array of the space's shape and within its bounds, or a ValueError."""
    array = np.asarray(action)
    if array.shape != space.shape:
        raise ValueError(f"action must have shape {space.shape}, got shape {array.shape}")
    if array.dtype.kind not in "iuf":
        raise ValueError(f"action must be numbers, got dtype {array.dtype}")
    if isinstance(space, gym.spaces.Box):
        inside = (array >= space.low) & (array <= space.high)  # False for NaN
        if not inside.all():
            raise ValueError(
                f"action must be finite and within [{space.low.min()}, {space.high.max()}], "
                f"got {array[~inside].flat[0]}"
            )
        return array if array.dtype.kind != "f" or array.itemsize in (4, 8) else array.astype("f4")
    if array.dtype.kind == "f":
        raise ValueError(f"action must be integers, got dtype {array.dtype}")
    start = getattr(space, "start", 0)
    count = space.nvec if isinstance(space, gym.spaces.MultiDiscrete) else space.n  # type: ignore[attr-defined]
    outside = (array < start) | (array >= start + count)
    if outside.any():
        raise ValueError(f"action must be in 0..{np.max(count) - 1}, got {array[outside].flat[0]}")
    return array


def assign(users: Any, where: NDArray[np.intp], fresh: Any) -> None:
    """Put the `fresh` users into the rows `where` of `users`."""
    for field in dataclasses.fields(users):
        getattr(users, field.name)[where] = getattr(fresh, field.name)


class _Batched:
    """What both environments share: a simulator, its users, and their rng."""

    simulator_type: ClassVar[type[Simulator]]

    def __init__(self, params: Any, overrides: dict[str, Any]) -> None:
        self.params = make_params(self.simulator_type.params_type, params, overrides)
        self.simulator = self.simulator_type(self.params)
        self.users: Any = None
        self.last_info: Info | None = None

    @property
    def metric(self) -> Metric:
        """The simulator's own score."""
        return self.simulator.metric

    @property
    def items(self) -> Items | None:
        """The catalogue that actions score, where the simulator has one."""
        found: Items | None = getattr(self.simulator, "items", None)
        return found

    def _advance(self, action: NDArray[Any], rng: np.random.Generator) -> tuple[Float32, Outcome]:
        outcome = self.simulator.step(self.users, action, rng)
        self.last_info = outcome.info
        return self.simulator.observe(self.users), outcome

    def _describe(self, user: int, *, arrived: bool = False) -> str:
        if self.users is None:
            raise ResetNeeded("call reset() before render()")
        row = slice(user, user + 1)
        fields = dataclasses.fields(self.users)
        one = type(self.users)(**{f.name: getattr(self.users, f.name)[row] for f in fields})
        if self.last_info is None or arrived:
            return self.simulator.describe(one, None)
        return self.simulator.describe(one, {k: v[row] for k, v in self.last_info.items()})


class UserEnv(_Batched, gym.Env[Float32, Any]):
    """One user at a time; an episode is one session."""

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012  # Gymnasium's

    def __init__(
        self, *, params: Any = None, render_mode: str | None = None, **overrides: Any
    ) -> None:
        _Batched.__init__(self, params, overrides)
        self.render_mode = render_mode
        self.observation_space = self.simulator.single_observation_space
        self.action_space = self.simulator.single_action_space
        self._over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32, dict[str, Any]]:
        """Start a new user's session."""
        super().reset(seed=seed, options=options)
        self.users = self.simulator.arrive(self.np_random, 1)
        self.last_info = None
        self._over = False
        return self.simulator.observe(self.users)[0], {}

    def step(self, action: Any) -> tuple[Float32, float, bool, bool, dict[str, Any]]:
        """Show one page."""
        if self._over:
            raise ResetNeeded("call reset() before step(), and after the end of a session")
        checked = check_action(self.action_space, action)
        observation, outcome = self._advance(checked[None], self.np_random)
        info = {key: value[0] for key, value in outcome.info.items()}
        terminated = bool(outcome.terminated[0])
        self._over = terminated
        return observation[0], float(outcome.reward[0]), terminated, False, info

    def render(self) -> str | None:
        """The user, the slate and the clicks in words (render_mode "ansi")."""
        return self._describe(0) if self.render_mode == "ansi" else None


class UserVectorEnv(_Batched, gym.vector.VectorEnv[Float32, Any, NDArray[Any]]):
    """N users side by side, no Python loop over them.

    A session that ends is followed at once by the next user's (autoreset in the same step): the
    returned observation is the newcomer's first, the departed user's last one is
    ``info["final_obs"]`` where ``info["_final_obs"]``.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  # Gymnasium's
        "render_modes": ["ansi"],
        "render_fps": 1,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        *,
        params: Any = None,
        render_mode: str | None = None,
        **overrides: Any,
    ) -> None:
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, got {num_envs}")
        _Batched.__init__(self, params, overrides)
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.single_observation_space = self.simulator.single_observation_space
        self.single_action_space = self.simulator.single_action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._arrived: Bool = np.ones(num_envs, np.bool_)  # no page of theirs shown yet

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32, dict[str, Any]]:
        """Start `num_envs` new users' sessions; one seed drives them all."""
        if isinstance(seed, list):
            raise ValueError(f"seed must be one number for the whole batch, got {seed}")
        if options and "reset_mask" in options:
            raise ValueError("options: reset_mask is not for environments that reset by themselves")
        super().reset(seed=seed, options=options)
        self.users = self.simulator.arrive(self.np_random, self.num_envs)
        self.last_info = None
        self._arrived = np.ones(self.num_envs, np.bool_)
        return self.simulator.observe(self.users), {}

    def step(self, actions: Any) -> tuple[Float32, Float32, Bool, Bool, dict[str, Any]]:
        """Show every user one page."""
        if self.users is None:
            raise ResetNeeded("call reset() before step()")
        checked = check_action(self.action_space, actions)
        observation, outcome = self._advance(checked, self.np_random)
        info: dict[str, Any] = dict(outcome.info)
        self._arrived = done = outcome.terminated
        if done.any():
            where = np.flatnonzero(done)
            info["final_obs"] = observation.copy()
            info["_final_obs"] = info["_final_info"] = done
            info["final_info"] = outcome.info
            fresh = self.simulator.arrive(self.np_random, where.size)
            assign(self.users, where, fresh)
            observation[where] = self.simulator.observe(fresh)
        truncated = np.zeros(self.num_envs, np.bool_)
        return observation, outcome.reward, done, truncated, info

    def best_action(self) -> NDArray[Any]:
        """The best known action for every user, from what no recommender sees.

        ValueError where nobody knows one.
        """
        if self.users is None:
            raise ResetNeeded("call reset() before best_action()")
        known = getattr(self.simulator, "best_action", None)
        if known is None:
            raise ValueError(f"no oracle is known for {type(self.simulator).__name__}")
        found: NDArray[Any] = known(self.users)
        return found

    def render(self) -> tuple[str, ...] | None:
        """Every user, slate and clicks in words (render_mode "ansi")."""
        if self.render_mode != "ansi":
            return None
        return tuple(
            self._describe(user, arrived=bool(arrived))
            for user, arrived in enumerate(self._arrived)
        )

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to continue exactly here: the users and the rng."""
        if self.users is None:
            raise ResetNeeded("call reset() before state_dict()")
        users = {f.name: getattr(self.users, f.name) for f in dataclasses.fields(self.users)}
        return {"users": copy.deepcopy(users), "rng": self.np_random.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict()` of an environment with the same parameters."""
        like = self.simulator.arrive(np.random.default_rng(0), 1)
        users = copy.deepcopy(state["users"])
        for field in dataclasses.fields(like):
            expected = (self.num_envs, *getattr(like, field.name).shape[1:])
            found = np.shape(users.get(field.name))
            if found != expected:
                raise ValueError(f"state's {field.name} has shape {found}, expected {expected}")
        rng = np.random.default_rng()
        rng.bit_generator.state = state["rng"]
        self.users = type(like)(**users)
        self.np_random = rng
        self.last_info = None

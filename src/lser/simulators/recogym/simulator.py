"""RecoGym: users browse a shop on their own, and between that are shown one product at a time.

Rohde et al. 2018, "RecoGym: A Reinforcement Learning Environment for the problem of Product
Recommendation in Online Advertising". One step is one recommendation; the views that follow, up to
the next recommendation or the user's leaving, happen inside the step.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lser.simulators.base import Anchor, Info, Lengths, Metric, Outcome, UserEnv, UserVectorEnv
from lser.simulators.recogym.kernels import World, arrive, recommend
from lser.simulators.recogym.params import Params
from lser.simulators.recogym.world import make_world
from lser.types import Bool, Float32, Float64, Int64

_LARGEST = float(np.finfo(np.float32).max)


@dataclass
class Users:
    """Users who wait for a recommendation."""

    omega: Float64  # (n, K) hidden interests
    seen: Float32  # (n, P) views per product, or (n, D) the sum of their embeddings
    last: Int64  # (n,) product viewed last
    views: Int64  # (n,) organic views so far
    since: Int64  # (n,) recommendations since the last view
    clicks: Int64  # (n,) so far
    shown: Int64  # (n,) recommendations so far
    time: Float64  # (n,) the original's clock


class RecoGym:
    """The dynamics of RecoGym for many users at once."""

    params_type: ClassVar[type] = Params
    metric: ClassVar[Metric] = Metric("ctr", "clicks", "shown")
    goals: ClassVar[tuple[float, ...]] = (1.0,)  # a click
    session_length: ClassVar[float] = 78.0
    lengths: ClassVar[Lengths] = Lengths(quick=30, medium=1_000, paper=1_000)
    capacity: ClassVar[int] = 10_000
    medium_updates: ClassVar[float] = 0.25  # sessions are ten times as long as VirtualTaobao's

    def __init__(self, params: Params, *, world: World | None = None) -> None:
        self.params = params
        self.world = make_world(params) if world is None else world
        products = params.num_products
        point = self.world.embedding.shape[1]
        self._width = point if params.observation == "embedding" else products
        self._size = 2 * self._width + (4 if params.observation == "embedding" else 3)
        low = -_LARGEST if params.observation == "embedding" else 0.0
        self.single_observation_space: gym.Space[Float32]
        self.single_observation_space = gym.spaces.Box(low, _LARGEST, (self._size,), np.float32)
        self.single_action_space: gym.Space[Any]
        if params.actions == "discrete":
            self.single_action_space = gym.spaces.Discrete(products)
        else:
            size = point if params.actions == "embedding" else products
            self.single_action_space = gym.spaces.Box(-1.0, 1.0, (size,), np.float32)
        # the kernels add embeddings to `seen` only where the observation asks for them
        counting = self.world._replace(embedding=np.empty((0, 0)))
        self._kernel_world = self.world if params.observation == "embedding" else counting

    def arrive(self, rng: np.random.Generator, n: int) -> Users:
        """Draw `n` new users, each at the first recommendation."""
        users = self._blank(n)
        _ = arrive(self._kernel_world, *_drawn(users), rng, True)
        return users

    def arrive_all(self, rng: np.random.Generator, n: int) -> tuple[Users, Bool]:
        """Draw `n` new users as the original does, and say who gets as far as a recommendation."""
        users = self._blank(n)
        return users, arrive(self._kernel_world, *_drawn(users), rng, False)

    def _blank(self, n: int) -> Users:
        return Users(
            omega=np.empty((n, self.world.gamma.shape[1])),
            seen=np.zeros((n, self._width), np.float32),
            last=np.zeros(n, np.int64),
            views=np.zeros(n, np.int64),
            since=np.zeros(n, np.int64),
            clicks=np.zeros(n, np.int64),
            shown=np.zeros(n, np.int64),
            time=np.zeros(n),
        )

    def observe(self, users: Users) -> Float32:
        """Views per product, the last one, and how long ago; clicks and recommendations."""
        width = self._width
        out = np.zeros((users.last.size, self._size), np.float32)
        out[:, 2 * width + 0] = users.since
        out[:, 2 * width + 1] = users.clicks
        out[:, 2 * width + 2] = users.shown
        if self.params.observation == "embedding":
            out[:, 2 * width + 3] = users.views
            np.log1p(out[:, 2 * width :], out=out[:, 2 * width :])
            np.divide(users.seen, users.views[:, None], out=out[:, :width], casting="same_kind")
            out[:, width : 2 * width] = self.world.embedding[users.last]
            return out
        out[:, :width] = users.seen
        out[np.arange(users.last.size), width + users.last] = 1.0
        if self.params.observation == "log_counts":
            np.log1p(out[:, :width], out=out[:, :width])
            np.log1p(out[:, 2 * width :], out=out[:, 2 * width :])
        return out

    def choose(self, action: NDArray[Any]) -> Int64:
        """The product (n,) each action recommends; ties go to the lower index."""
        if self.params.actions == "discrete":
            return np.ascontiguousarray(action, dtype=np.int64)
        if self.params.actions == "continuous":
            return np.asarray(action.argmax(axis=1))
        rows = max(1, 2**22 // self.params.num_products)  # bounds the table of scores
        blocks = [action[i : i + rows] for i in range(0, len(action), rows)]
        return np.concatenate([(b @ self.world.embedding.T).argmax(axis=1) for b in blocks])

    def step(self, users: Users, action: NDArray[Any], rng: np.random.Generator) -> Outcome:
        """Recommend one product to every user."""
        return self.recommend(users, self.choose(action), rng)

    def recommend(self, users: Users, product: Int64, rng: np.random.Generator) -> Outcome:
        """Recommend `product` (n,) to the users, whatever the actions are."""
        probability, click, left, viewed = recommend(
            self._kernel_world,
            product,
            *_drawn(users),
            users.since,
            users.clicks,
            users.shown,
            rng,
        )
        info: Info = {
            "clicks": click,
            "shown": np.ones(product.size, np.int64),
            "click_prob": probability,
            "product": product,
            "views": viewed,
        }
        earned = probability if self.params.reward == "expected click" else click
        reward = (earned * self.params.reward_scale).astype(np.float32)
        return Outcome(reward, left, info)

    def click_probabilities(self, users: Users) -> Float64:
        """The probability (n, P) of a click on each product; privileged."""
        if self.world.version == 0:
            return np.ascontiguousarray(self.world.click_table.T[users.last])
        score = users.omega @ self.world.beta.T + self.world.mu_bandit
        middle = _sigmoid(2.0 * _sigmoid(0.3 * score) - 2.0)
        return _sigmoid(5.0 * middle - 6.0)

    def best_action(self, users: Users) -> NDArray[Any]:
        """The actions of the oracle, which knows the hidden interests.

        An embedding need not recommend its own product: the best of those that some embedding does.
        """
        chance = self.click_probabilities(users)
        if self.params.actions == "embedding":
            points, shown = self._points
            return np.asarray(points[chance[:, shown].argmax(axis=1)])
        best = chance.argmax(axis=1)
        one_hot = self.params.actions == "continuous"
        return np.asarray(np.eye(chance.shape[1], dtype=np.float32)[best] if one_hot else best)

    @cached_property
    def _points(self) -> tuple[Float32, Int64]:
        """The products' embeddings as actions, and what each of them recommends."""
        embedding = self.world.embedding
        points = (embedding / np.abs(embedding).max(axis=1, keepdims=True)).astype(np.float32)
        return points, self.choose(points)

    def describe(self, users: Users, info: Info | None) -> str:
        """One user and the last recommendation, in words."""
        lines = []
        if info is not None:
            answer = "clicked" if info["clicks"][0] else "did not click"
            lines.append(
                f"Recommended product {info['product'][0]} "
                f"(click probability {info['click_prob'][0]:.3f}): the user {answer}, "
                f"then viewed {info['views'][0]} products."
            )
        lines.append(
            f"The user has viewed {users.views[0]} products, last {users.last[0]}, "
            f"{users.since[0]} recommendations ago; "
            f"{users.clicks[0]} clicks in {users.shown[0]} recommendations."
        )
        if self.params.observation != "embedding":
            top = np.argsort(-users.seen[0], kind="stable")[:3]
            most = ", ".join(f"{i} ({users.seen[0, i]:.0f}x)" for i in top if users.seen[0, i])
            lines.append(f"Viewed most: {most}.")
        return "\n".join(lines)

    def anchors(self) -> tuple[Anchor, Anchor]:
        """CTR of random products and of the oracle that knows the hidden interests."""
        n = int(np.clip(2_000_000 // self.params.num_products, 100, 4_000))
        source = f"expected CTR of {n} simulated users of this world"
        return (
            Anchor("random", self._expected_ctr(n, oracle=False), source),
            Anchor("oracle", self._expected_ctr(n, oracle=True), source),
        )

    def _expected_ctr(self, n: int, *, oracle: bool) -> float:
        rng = np.random.default_rng(0)
        users, total, shown = self.arrive(rng, n), 0.0, 0
        while users.last.size:
            if oracle:
                product = self.click_probabilities(users).argmax(axis=1)
            else:
                product = rng.integers(self.params.num_products, size=users.last.size)
            outcome = self.recommend(users, product, rng)
            total += float(outcome.info["click_prob"].sum())
            shown += users.last.size
            users = Users(*(getattr(users, f.name)[~outcome.terminated] for f in fields(users)))
        return total / shown


class RecoGymEnv(UserEnv):
    """One user's timeline; a step is a recommendation."""

    simulator_type = RecoGym


class RecoGymVectorEnv(UserVectorEnv):
    """Many users' timelines side by side."""

    simulator_type = RecoGym


def _drawn(users: Users) -> tuple[Float64, Float32, Int64, Int64, Float64]:
    return users.omega, users.seen, users.last, users.views, users.time


def _sigmoid(x: Float64) -> Float64:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))

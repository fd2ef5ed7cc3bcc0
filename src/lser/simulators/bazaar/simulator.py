"""Bazaar: a marketplace with dials for sparsity, state dependence, drift and patience.

Ours, and the embedded default: it needs no files. A page shows the k items that score highest for
the action, a weight vector over item features; the user, whose interest is hidden behind observed
demographics, clicks some, is more or less satisfied, and stays or leaves. The model in formulas:
docs/simulators/bazaar.md.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lser.simulators.base import Anchor, Info, Lengths, Metric, Outcome, UserEnv, UserVectorEnv
from lser.simulators.bazaar.calibration import settle
from lser.simulators.bazaar.params import Params
from lser.simulators.bazaar.world import Rng, first_places
from lser.simulators.item_index import Ids
from lser.types import Bool, Float32, Int64, Items, Profile

_PAGE_SCALE = 10  # the page number t is observed as t / (t + 10)


@dataclass
class Users:
    """Users in the middle of their sessions; leading axis n."""

    groups: Int64  # (n, attributes) observed demographics
    personal: Float32  # (n, d - 1) hidden personal taste, unit length
    profile: Float32  # (n, d - 1) running mean of clicked items' tastes
    satisfaction: Float32  # (n,)
    last_clicks: Float32  # (n,) share of the last page that was clicked
    page: Int64  # (n,) pages seen


class Bazaar:
    """Batched dynamics of the marketplace."""

    params_type: ClassVar[type] = Params
    metric: ClassVar[Metric] = Metric("ctr", "clicks", "shown")
    goals: ClassVar[tuple[float, ...]] = tuple(map(float, range(1, 11)))  # clicks on a page
    session_length: ClassVar[float] = 10.0
    lengths: ClassVar[Lengths] = Lengths(quick=300, medium=1_500, paper=10_000)
    capacity: ClassVar[int] = 100_000
    medium_updates: ClassVar[float] = 1.0

    def __init__(self, params: Params) -> None:
        self.params = params
        self.world, self.offset = settle(params)
        self._attributes = sum(params.demographics)
        width = self._attributes + (params.features - 1) + 3
        low = np.zeros(width, np.float32)
        low[self._attributes : -3] = -1
        self._width = width
        self.single_observation_space: gym.Space[Float32] = gym.spaces.Box(
            low, np.ones(width, np.float32)
        )
        self.single_action_space: gym.Space[Any] = self._action_space()

    def _action_space(self) -> gym.Space[Any]:
        match self.params.actions:
            case "continuous":
                return gym.spaces.Box(-1, 1, (self.params.features,), np.float32)
            case "slate":
                return gym.spaces.MultiDiscrete([self.params.items] * self.params.slate)
            case "discrete":
                return gym.spaces.Discrete(self.params.items)

    @property
    def items(self) -> Items | None:
        """The catalogue, where actions score it, and where observations keep the click profile."""
        if self.params.actions != "continuous":
            return None
        start = self._attributes
        profile = Profile(start, start + self.params.features - 1, self.params.memory)
        return Items(self.world.features, self.params.slate, profile)

    def arrive(self, rng: Rng, n: int) -> Users:
        """Draw `n` new users."""
        groups = self.world.groups(rng, n)
        return Users(
            groups=groups,
            personal=self.world.personal_taste(groups, rng),
            profile=np.zeros((n, self.params.features - 1), np.float32),
            satisfaction=np.zeros(n, np.float32),
            last_clicks=np.zeros(n, np.float32),
            page=np.zeros(n, np.int64),
        )

    def observe(self, users: Users) -> Float32:
        """One-hot demographics, click profile, satisfaction, last page's clicks, page number.

        All within [-1, 1] and led by the demographics, so that angles between raw observations,
        which locality-sensitive hashing goes by, mean likeness of users.
        """
        n, d = len(users.page), self._attributes
        out = np.zeros((n, self._width), np.float32)
        out[np.arange(n)[:, None], users.groups + self.world.offsets] = 1
        out[:, d:-3] = users.profile
        out[:, -3] = users.satisfaction
        out[:, -2] = users.last_clicks
        out[:, -1] = users.page / (users.page + _PAGE_SCALE)
        return out

    def slates(self, action: NDArray[Any]) -> Ids:
        """The page (n, k) that each user's action shows."""
        match self.params.actions:
            case "continuous":
                return self.world.index.search(action.astype(np.float32), self.params.slate)
            case "slate":
                return action.astype(np.intp)
            case "discrete":
                return action.astype(np.intp)[:, None]

    def step(self, users: Users, action: NDArray[Any], rng: Rng) -> Outcome:
        """Show every user a page; they click, are satisfied or not, and stay or leave."""
        world, n = self.world, len(users.page)
        slates = self.slates(action)
        appeal = world.appeal(world.interest(users.personal), slates, users.groups)
        chance = world.click_chance(appeal, self.offset)
        if self.params.actions == "slate":  # an item shown twice is clicked once at most
            chance = chance * first_places(slates)
        clicked = rng.random(chance.shape, dtype=np.float32) < chance
        clicks = clicked.sum(axis=1)
        users.satisfaction = world.satisfaction(users.satisfaction, slates, clicked)
        users.last_clicks = (clicks / self.params.shown).astype(np.float32)
        self._remember(users, slates, clicked, clicks)
        users.page = users.page + 1
        leaves = rng.random(n, dtype=np.float32) < world.leave_chance(users.satisfaction)
        if self.params.drift:
            users.personal = world.drifted(users.personal, rng)
        info = {
            "clicks": clicks,
            "shown": np.full(n, self.params.shown),
            "slate": slates,
            "clicked": clicked,
            "satisfaction": users.satisfaction.copy(),
        }
        return Outcome(clicks.astype(np.float32), leaves, info)

    def _remember(
        self,
        users: Users,
        slates: Ids,
        clicked: Bool,
        clicks: Int64,
    ) -> None:
        """Move the click profile towards the mean taste of what was clicked, if anything was."""
        share = clicked / np.maximum(clicks, 1)[:, None].astype(np.float32)
        mean = np.matmul(share[:, None, :].astype(np.float32), self.world.taste[slates])[:, 0]
        weight = np.where(clicks > 0, np.float32(self.params.memory), np.float32(0))[:, None]
        users.profile = users.profile + weight * (mean - users.profile)

    def best_action(self, users: Users) -> NDArray[Any]:
        """The actions of the myopic oracle, which sees the hidden interest."""
        from lser.simulators.bazaar.oracle import Sighted

        return Sighted(self)(users)

    def describe(self, users: Users, info: Info | None) -> str:
        """The user, and the last page with its clicks."""
        traits = ", ".join(str(value) for value in users.groups[0])
        lines = [
            f"user with demographics ({traits}), {users.page[0]} pages seen, "
            f"satisfaction {users.satisfaction[0]:.2f}"
        ]
        if info is not None:
            lines.append(f"page: {info['clicks'][0]} of {info['shown'][0]} clicked")
            for item, hit in zip(info["slate"][0], info["clicked"][0], strict=True):
                topic, quality = self.world.topic[item], self.world.quality[item]
                mark = ", clicked" if hit else ""
                lines.append(f"  item {item}: topic {topic}, quality {quality:.2f}{mark}")
        return "\n".join(lines)

    def anchors(self) -> tuple[Anchor, Anchor]:
        """Random actions, and the oracle that sees the hidden interest."""
        from lser.simulators.bazaar.oracle import myopic_score

        return (
            Anchor("random actions", self.params.sparsity, "the dial `sparsity`, calibrated"),
            Anchor(
                "myopic oracle that sees the hidden interest",
                myopic_score(self.params).ctr,
                "simulated over 4,096 sessions",
            ),
        )


class BazaarEnv(UserEnv):
    """`lser/Bazaar-v0` for one user at a time."""

    simulator_type = Bazaar


class BazaarVectorEnv(UserVectorEnv):
    """`lser/Bazaar-v0` for many users side by side."""

    simulator_type = Bazaar

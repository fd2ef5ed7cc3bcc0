"""VirtualTaobao: shoppers learned from Taobao's logs answer ranking weights with clicks.

The released model of J.-C. Shi, Y. Yu, Q. Da, S.-Y. Chen and A.-X. Zeng, "Virtual-Taobao:
Virtualizing real-world online retail environment for reinforcement learning", AAAI 2019
(github.com/eyounx/VirtualTaobao), as batched NumPy. See docs/simulators/virtual_taobao.md.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lser.simulators.base import Anchor, Info, Metric, Outcome, UserEnv, UserVectorEnv
from lser.simulators.weights import Layer, Networks, find_weights, generated_networks, load_networks
from lser.types import Float32, Int64

FEATURES = (8, 8, 11, 11, 11, 11, 2, 2, 3, 18, 3)  # sizes of the user's 11 categorical features
USER = sum(FEATURES)  # 88
NOISE = 128
ACTION = 27
CLICKS, INDEX, PAGES = USER, USER + 1, USER + 2  # columns of the observation after the user's
OBSERVATION = USER + 3  # 91
MOST_CLICKS, MOST_INDEX, MOST_PAGES = 10, 9, 100


@dataclass(frozen=True, kw_only=True)
class Params:
    """Where the networks come from, and the constants of the release."""

    weights: str | Path | None = None  # folder; None: LSER_VIRTUAL_TAOBAO, cache, download
    generated: bool = False  # random networks of the same shape instead, for tests without files
    generated_seed: int = 0
    items_per_page: int = 10  # the denominator of CTR
    negative_slope: float = 0.01  # of LeakyReLU

    def __post_init__(self) -> None:
        if self.generated and self.weights is not None:
            raise ValueError(f"generated=True excludes weights={str(self.weights)!r}")
        if self.items_per_page < 1:
            raise ValueError(f"items_per_page must be at least 1, got {self.items_per_page}")
        if not 0 <= self.negative_slope < 1:
            raise ValueError(f"negative_slope must be in [0, 1), got {self.negative_slope}")


@dataclass
class Users:
    """Shoppers in the middle of their sessions."""

    observation: Float32  # (n, 91) features, last clicks, last index, pages so far
    hidden: Float32  # (n, 128) the features' share of the click model's first layer
    leave_page: Int64  # (n,) drawn on arrival, 0..100
    session_clicks: Int64  # (n,)


class Groups:
    """Independent categoricals laid side by side in one row of logits."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self.sizes = np.array(sizes)
        self.stops = np.cumsum(self.sizes)
        self.starts = self.stops - self.sizes
        self.group_of = np.repeat(np.arange(len(sizes)), sizes)

    def draw(self, logits: Float32, rng: np.random.Generator) -> Int64:
        """One index per row and group, (n, groups), from the softmax of each group's logits."""
        top = np.maximum.reduceat(logits, self.starts, axis=1)
        mass = np.exp(logits - top[:, self.group_of])
        below = np.cumsum(mass, axis=1, dtype=np.float64)
        stop = below[:, self.stops - 1]
        start = np.zeros_like(stop)
        start[:, 1:] = stop[:, :-1]
        point = start + rng.random(stop.shape) * (stop - start)
        passed = below <= point[:, self.group_of]
        index: Int64 = np.add.reduceat(passed, self.starts, axis=1, dtype=np.int64)
        # rounding may put the point on the stop itself
        np.minimum(index, self.sizes - 1, out=index)
        return index


_Params = Params  # inside the class the bare name is the class attribute
PROFILE = Groups(FEATURES)
LEAVE = Groups((MOST_PAGES + 1,))
RESPONSE = Groups((MOST_CLICKS + 1, MOST_INDEX + 1))


def forward(layers: tuple[Layer, ...], inputs: Float32, slope: float) -> Float32:
    """The output of affine layers with LeakyReLU between them, (n, outputs)."""
    first, *rest = layers
    return _forward_hidden(tuple(rest), inputs @ first.weight + first.bias, slope)


def _forward_hidden(layers: tuple[Layer, ...], hidden: Float32, slope: float) -> Float32:
    """Go on from the first layer's output, which is overwritten."""
    for layer in layers:
        np.maximum(hidden, np.float32(slope) * hidden, out=hidden)
        hidden = hidden @ layer.weight
        hidden += layer.bias
    return hidden


class VirtualTaobao:
    """The three networks in batches of users."""

    Params: ClassVar[type] = Params
    metric: ClassVar[Metric] = Metric("ctr", "clicks", "shown")

    def __init__(self, params: _Params) -> None:
        self.params = params
        self.networks: Networks = (
            generated_networks(params.generated_seed)
            if params.generated
            else load_networks(find_weights(params.weights))
        )
        first = self.networks.action[0]
        self._user_layer = Layer(first.weight[:USER], first.bias)
        self._page_weight = np.ascontiguousarray(first.weight[USER:])  # (28, 128) pages and action
        high = np.ones(OBSERVATION, np.float32)
        high[[CLICKS, INDEX, PAGES]] = MOST_CLICKS, MOST_INDEX, MOST_PAGES
        self.single_observation_space: gym.Space[Float32] = gym.spaces.Box(
            np.float32(0) * high, high
        )
        self.single_action_space: gym.Space[Any] = gym.spaces.Box(-1, 1, (ACTION,), np.float32)

    def arrive(self, rng: np.random.Generator, n: int) -> Users:
        """Draw users, and with each the page on which the session will end."""
        noise = rng.random((n, NOISE), np.float32)
        slope = self.params.negative_slope
        profile = PROFILE.draw(forward(self.networks.generator, noise, slope), rng)
        observation = np.zeros((n, OBSERVATION), np.float32)
        observation[np.arange(n)[:, None], profile + PROFILE.starts] = 1
        features = observation[:, :USER]
        return Users(
            observation=observation,
            hidden=features @ self._user_layer.weight + self._user_layer.bias,
            leave_page=LEAVE.draw(forward(self.networks.leave, features, slope), rng)[:, 0],
            session_clicks=np.zeros(n, np.int64),
        )

    def observe(self, users: Users) -> Float32:
        """Features, last clicks, last index and pages so far."""
        return users.observation.copy()

    def click_logits(self, users: Users, action: NDArray[Any]) -> Float32:
        """Logits of 0..10 clicks and of second index 0..9 on the next page, (n, 21)."""
        page = np.empty((len(action), 1 + ACTION), np.float32)
        page[:, 0] = users.observation[:, PAGES]
        page[:, 1:] = action
        hidden = page @ self._page_weight
        hidden += users.hidden
        return _forward_hidden(self.networks.action[1:], hidden, self.params.negative_slope)

    def step(self, users: Users, action: NDArray[Any], rng: np.random.Generator) -> Outcome:
        """Rank one page by the weights `action` and count the clicks."""
        response = RESPONSE.draw(self.click_logits(users, action), rng)
        clicks = response[:, 0]
        users.observation[:, CLICKS:PAGES] = response
        users.observation[:, PAGES] += 1
        users.session_clicks += clicks
        pages = users.observation[:, PAGES].astype(np.int64)
        shown = np.full(len(clicks), self.params.items_per_page)
        info = {
            "clicks": clicks,
            "shown": shown,
            "index": response[:, 1],
            "pages": pages,
            "ctr": users.session_clicks / (shown * pages),
        }
        return Outcome(clicks.astype(np.float32), pages >= users.leave_page, info)

    def describe(self, users: Users, info: Info | None) -> str:
        """The shopper's profile, the last page and the clicks."""
        profile = [
            int(users.observation[0, start:stop].argmax())
            for start, stop in zip(PROFILE.starts, PROFILE.stops, strict=True)
        ]
        lines = [f"Shopper with profile {'-'.join(map(str, profile))}"]
        if self.params.generated:
            lines[0] += " (generated weights: not a real shopper)"
        if info is None:
            return f"{lines[0]}\nJust arrived: no page shown yet."
        pages, clicks, shown = (int(info[key][0]) for key in ("pages", "clicks", "shown"))
        lines.append(
            f"Page {pages}: {shown} items shown, {clicks} clicked; second index "
            f"{int(info['index'][0])}."
        )
        left = pages >= users.leave_page[0]
        lines.append(
            f"{int(users.session_clicks[0])} clicks so far, CTR {info['ctr'][0]:.3f}; "
            f"{'the shopper leaves' if left else 'the shopper stays for another page'}."
        )
        return "\n".join(lines)

    def anchors(self) -> tuple[Anchor, Anchor]:
        """CTR of uniform random actions and of an actor trained through the click model."""
        if self.params.generated:
            unknown = "not measured: generated weights"
            return Anchor("random", np.nan, unknown), Anchor("best", np.nan, unknown)
        return (
            Anchor("random", 0.0185, "uniform actions on the released weights"),
            Anchor("best", 0.9997, "an actor trained through the released click model"),
        )


class VirtualTaobaoEnv(UserEnv):
    """One shopper at a time."""

    simulator_type = VirtualTaobao


class VirtualTaobaoVectorEnv(UserVectorEnv):
    """Many shoppers side by side."""

    simulator_type = VirtualTaobao

"""VirtualTaobao: shoppers learned from Taobao's logs answer ranking weights with clicks.

The released model of J.-C. Shi, Y. Yu, Q. Da, S.-Y. Chen and A.-X. Zeng, "Virtual-Taobao:
Virtualizing real-world online retail environment for reinforcement learning", AAAI 2019
(github.com/eyounx/VirtualTaobao), as batched NumPy. See docs/simulators/virtual_taobao.md.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lser.simulators.base import Anchor, Info, Lengths, Metric, Outcome, UserEnv, UserVectorEnv
from lser.simulators.virtual_taobao.params import Params
from lser.simulators.virtual_taobao.weights import (
    Layer,
    find_weights,
    generated_networks,
    load_networks,
)
from lser.types import Float32, Int64

FEATURES = (8, 8, 11, 11, 11, 11, 2, 2, 3, 18, 3)  # sizes of the user's 11 categorical features
USER = sum(FEATURES)  # 88
NOISE = 128
ACTION = 27
CLICKS, INDEX, PAGES = USER, USER + 1, USER + 2  # columns of the observation after the user's
OBSERVATION = USER + 3  # 91
MOST_CLICKS, MOST_INDEX, MOST_PAGES = 10, 9, 100


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
        stops = np.cumsum(np.array(sizes))
        self.starts = stops - sizes
        self.slices = [slice(a, b) for a, b in zip(self.starts, stops, strict=True)]
        self._last = np.array(sizes)[:, None] - 1
        self._group_of = np.repeat(np.arange(len(sizes)), sizes)
        # sums as products: (groups, k) adds up each group, (k, k) the part of it up to each column
        member = np.arange(len(sizes))[:, None] == self._group_of
        self._sum = member.astype(np.float32)
        self._sum_up_to = np.tril(member.T @ self._sum).astype(np.float32)

    def draw(self, logits: Float32, rng: np.random.Generator) -> Int64:
        """One index per group and row, (groups, n), from the softmax of each group's logits."""
        mass = np.ascontiguousarray(logits.T)  # rows last: every pass below runs along them
        for columns in self.slices:
            mass[columns] -= mass[columns].max(axis=0)
        np.exp(mass, out=mass)
        point = rng.random((len(self.slices), mass.shape[1]), np.float32)
        point *= self._sum @ mass
        passed = self._sum_up_to @ mass <= point[self._group_of]
        index: Int64 = (self._sum @ passed.astype(np.float32)).astype(np.int64)
        np.minimum(index, self._last, out=index)  # rounding may pass the whole group
        return index


PROFILE = Groups(FEATURES)
LEAVE = Groups((MOST_PAGES + 1,))
RESPONSE = Groups((MOST_CLICKS + 1, MOST_INDEX + 1))


class Perceptron:
    """Affine layers with LeakyReLU between them, over blocks of rows that stay in the cache."""

    BLOCK: ClassVar[int] = 256

    def __init__(self, layers: tuple[Layer, ...], slope: float) -> None:
        self.layers = layers
        self.slope = np.float32(slope)
        # memory kept between calls: fresh pages cost as much time as the products
        self._hidden = [np.empty((2, self.BLOCK, len(layer.bias)), np.float32) for layer in layers]

    def __call__(self, inputs: Float32, first_bias: Float32 | None = None) -> Float32:
        """Outputs (n, outputs); `first_bias` (n, hidden) replaces the first layer's bias."""
        *hidden_layers, last = self.layers
        outputs = np.empty((len(inputs), len(last.bias)), np.float32)
        for start in range(0, len(inputs), self.BLOCK):
            rows = slice(start, start + self.BLOCK)
            x = inputs[rows]
            bias = hidden_layers[0].bias if first_bias is None else first_bias[rows]
            for layer, memory in zip(hidden_layers, self._hidden, strict=False):
                hidden, scaled = memory[:, : len(x)]
                np.matmul(x, layer.weight, out=hidden)
                hidden += bias if layer is hidden_layers[0] else layer.bias
                np.multiply(hidden, self.slope, out=scaled)
                x = np.maximum(hidden, scaled, out=hidden)
            np.matmul(x, last.weight, out=outputs[rows])
        outputs += last.bias
        return outputs


class VirtualTaobao:
    """The three networks in batches of users."""

    params_type: ClassVar[type] = Params
    metric: ClassVar[Metric] = Metric("ctr", "clicks", "shown")
    goals: ClassVar[tuple[float, ...]] = tuple(map(float, range(1, 11)))  # clicks on a page
    session_length: ClassVar[float] = 7.76
    lengths: ClassVar[Lengths] = Lengths(quick=300, medium=15_000, paper=90_000)
    capacity: ClassVar[int] = 1_000_000
    medium_updates: ClassVar[float] = 1.0

    def __init__(self, params: Params) -> None:
        self.params = params
        networks = (
            generated_networks(params.generated_seed)
            if params.generated
            else load_networks(find_weights(params.weights))
        )
        slope = params.negative_slope
        first, *rest = networks.action
        self._features_layer = Layer(first.weight[:USER], first.bias)
        page_layer = Layer(np.ascontiguousarray(first.weight[USER:]), first.bias)
        self.generator = Perceptron(networks.generator, slope)
        self.leave = Perceptron(networks.leave, slope)
        self._click = Perceptron((page_layer, *rest), slope)
        high = np.ones(OBSERVATION, np.float32)
        high[[CLICKS, INDEX, PAGES]] = MOST_CLICKS, MOST_INDEX, MOST_PAGES
        self.single_observation_space: gym.Space[Float32] = gym.spaces.Box(
            np.float32(0) * high, high
        )
        self.single_action_space: gym.Space[Any] = gym.spaces.Box(-1, 1, (ACTION,), np.float32)

    def arrive(self, rng: np.random.Generator, n: int) -> Users:
        """Draw users, and with each the page on which the session will end."""
        noise = rng.random((n, NOISE), np.float32)
        profile = PROFILE.draw(self.generator(noise), rng) + PROFILE.starts[:, None]
        observation = np.zeros((n, OBSERVATION), np.float32)
        observation[np.arange(n), profile] = 1
        features = observation[:, :USER]
        return Users(
            observation=observation,
            hidden=self.hidden(features),
            leave_page=LEAVE.draw(self.leave(features), rng)[0],
            session_clicks=np.zeros(n, np.int64),
        )

    def hidden(self, features: Float32) -> Float32:
        """What of the click model's first layer stays the same for a whole session, (n, 128)."""
        return features @ self._features_layer.weight + self._features_layer.bias

    def observe(self, users: Users) -> Float32:
        """Features, last clicks, last index and pages so far."""
        return users.observation.copy()

    def click_logits(self, users: Users, action: NDArray[Any]) -> Float32:
        """Logits of 0..10 clicks and of second index 0..9 on the next page, (n, 21)."""
        page = np.empty((len(action), 1 + ACTION), np.float32)
        page[:, 0] = users.observation[:, PAGES]
        page[:, 1:] = action
        return self._click(page, users.hidden)

    def step(self, users: Users, action: NDArray[Any], rng: np.random.Generator) -> Outcome:
        """Rank one page by the weights `action` and count the clicks."""
        clicks, index = RESPONSE.draw(self.click_logits(users, action), rng)
        users.observation[:, CLICKS] = clicks
        users.observation[:, INDEX] = index
        users.observation[:, PAGES] += 1
        users.session_clicks += clicks
        pages = users.observation[:, PAGES].astype(np.int64)
        shown = np.full(len(clicks), self.params.items_per_page)
        info = {
            "clicks": clicks,
            "shown": shown,
            "index": index,
            "pages": pages,
            "ctr": users.session_clicks / (shown * pages),
        }
        return Outcome(clicks.astype(np.float32), pages >= users.leave_page, info)

    def describe(self, users: Users, info: Info | None) -> str:
        """The shopper's profile, the last page and the clicks."""
        profile = [int(users.observation[0, columns].argmax()) for columns in PROFILE.slices]
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

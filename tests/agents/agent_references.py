"""DDPG, TD3 and SAC in plain modules, autograd and torch.optim: the twins of the fast agents."""

import copy
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from lser.agents.critics import Shape
from lser.agents.perceptron import Perceptron
from lser.types import Batch


def module_twin(network: Perceptron) -> nn.Sequential:
    """The same network as a module, with its own copy of the parameters."""
    parts: list[nn.Module] = []
    for layer in network.layers:
        weight = layer.weight if layer is network.head else layer.weight.t()
        linear = nn.Linear(weight.shape[1], weight.shape[0])
        linear.weight.data.copy_(weight)
        linear.bias.data.copy_(layer.bias)
        parts.append(linear)
        if layer.gain.numel():
            norm = nn.LayerNorm(layer.gain.numel())
            norm.weight.data.copy_(layer.gain)
            norm.bias.data.copy_(layer.shift)
            parts += [norm, nn.ReLU()]
    return nn.Sequential(*parts)


def critic_twin(shape: Shape, vector: Tensor, inputs: Tensor) -> Tensor:
    """A critic's values (b, 1), written for autograd over the flat vector of its parameters."""
    at = 0

    def take(*sizes: int) -> Tensor:
        nonlocal at
        count = int(np.prod(sizes))
        at += count
        return vector[at - count : at].view(sizes)

    def block(x: Tensor, width: int) -> Tensor:
        weight, bias = take(x.shape[1], width), take(width)
        gain, shift = take(width), take(width)
        x = nn.functional.layer_norm(x @ weight + bias, (width,))
        return torch.relu(x * gain + shift)

    def head(x: Tensor, width: int) -> Tensor:
        nonlocal at
        weight, bias = take(width, x.shape[1]), take(width)
        at = -(-at // 16) * 16  # networks start on cache lines
        return x @ weight.t() + bias

    seen, acted = inputs[:, : shape.observations], inputs[:, shape.observations :]
    first, *rest = shape.hidden
    if shape.kind == "product":
        towers = []
        for x in (seen, acted):
            for width in shape.hidden:
                x = block(x, width)
            towers.append(head(x, shape.hidden[-1]))
        return (towers[0] * towers[1]).sum(1, keepdim=True)
    x = block(seen if shape.late else inputs, first)
    x = torch.cat((x, acted), 1) if shape.late else x
    for width in rest:
        x = block(x, width)
    return head(x, 1)


def random_batch(size: int, observations: int, actions: int, *, seed: int) -> Batch:
    """A batch of views into packed rows, with terminations and uneven weights."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((size, 2 * observations + actions + 3)).astype(np.float32)
    end = observations + actions
    return Batch(
        rows[:, :observations],
        rows[:, observations:end],
        rows[:, end],
        rows[:, end + 1 : end + 1 + observations],
        rng.random(size) < 0.2,
        rng.random(size) < 0.2,
        np.arange(size),
        rng.uniform(0.1, 1.0, size).astype(np.float32),
    )


class Columns(NamedTuple):
    """A batch as tensors, scalars as columns."""

    observation: Tensor
    action: Tensor
    reward: Tensor
    next_observation: Tensor
    going_on: Tensor
    weights: Tensor


def columns(batch: Batch) -> Columns:
    """The batch as the references read it."""
    numbers = (batch.reward, 1.0 - batch.terminated, batch.weights)
    reward, going_on, weights = (torch.tensor(x, dtype=torch.float32)[:, None] for x in numbers)
    observation, action, after = (
        torch.tensor(x) for x in (batch.observation, batch.action, batch.next_observation)
    )
    return Columns(observation, action, reward, after, going_on, weights)


def value(critic: nn.Module, observation: Tensor, action: Tensor) -> Tensor:
    """Q(s, a), (b, 1)."""
    out: Tensor = critic(torch.cat((observation, action), 1))
    return out


def follow(target: nn.Module, online: nn.Module, tau: float) -> None:
    """The Polyak update."""
    for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
        slow.data.mul_(1 - tau).add_(tau * fast.data)


def descend(loss: Tensor) -> None:
    """Leave the gradient of the loss on the parameters."""
    loss.backward()  # type: ignore[no-untyped-call]


class ReferenceDDPG:
    """Textbook DDPG."""

    def __init__(
        self, actor: Perceptron, critic: Perceptron, low: ArrayLike, high: ArrayLike
    ) -> None:
        self.actor, self.critic = module_twin(actor), module_twin(critic)
        self.target_actor = copy.deepcopy(self.actor)
        self.target_critic = copy.deepcopy(self.critic)
        self.low = torch.tensor(low, dtype=torch.float32)
        self.high = torch.tensor(high, dtype=torch.float32)
        self.actor_adam = torch.optim.Adam(self.actor.parameters(), lr=1e-4)
        self.critic_adam = torch.optim.Adam(self.critic.parameters(), lr=1e-3)

    def policy(self, actor: nn.Module, observation: Tensor) -> Tensor:
        out: Tensor = self.low + (torch.tanh(actor(observation)) + 1) / 2 * (self.high - self.low)
        return out

    def learn(self, batch: Batch, *, discount: float = 0.99, tau: float = 0.001) -> Tensor:
        data = columns(batch)
        with torch.no_grad():
            after = self.policy(self.target_actor, data.next_observation)
            target = data.reward + discount * data.going_on * value(
                self.target_critic, data.next_observation, after
            )
        error = target - value(self.critic, data.observation, data.action)
        self.critic_adam.zero_grad()
        descend((data.weights * error**2).mean())
        self.critic_adam.step()
        self.actor_adam.zero_grad()
        action = self.policy(self.actor, data.observation)
        descend(-value(self.critic, data.observation, action).mean())
        self.actor_adam.step()
        follow(self.target_actor, self.actor, tau)
        follow(self.target_critic, self.critic, tau)
        return error.detach()[:, 0]


class ReferenceTD3(ReferenceDDPG):
    """Textbook TD3 without smoothing noise, which a test sets to zero."""

    def __init__(
        self, actor: Perceptron, critics: list[Perceptron], low: ArrayLike, high: ArrayLike
    ) -> None:
        super().__init__(actor, critics[0], low, high)
        self.second = module_twin(critics[1])
        self.target_second = copy.deepcopy(self.second)
        self.actor_adam = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        parameters = [*self.critic.parameters(), *self.second.parameters()]
        self.critic_adam = torch.optim.Adam(parameters, lr=1e-3)
        self.updates = 0

    def learn(self, batch: Batch, *, discount: float = 0.99, tau: float = 0.005) -> Tensor:
        data = columns(batch)
        with torch.no_grad():
            after = self.policy(self.target_actor, data.next_observation)
            values = [
                value(critic, data.next_observation, after)
                for critic in (self.target_critic, self.target_second)
            ]
            target = data.reward + discount * data.going_on * torch.minimum(*values)
        errors = [
            target - value(critic, data.observation, data.action)
            for critic in (self.critic, self.second)
        ]
        self.critic_adam.zero_grad()
        descend((data.weights * (errors[0] ** 2 + errors[1] ** 2)).mean())
        self.critic_adam.step()
        self.updates += 1
        if self.updates % 2 == 0:
            self.actor_adam.zero_grad()
            action = self.policy(self.actor, data.observation)
            descend(-value(self.critic, data.observation, action).mean())
            self.actor_adam.step()
            follow(self.target_actor, self.actor, tau)
            follow(self.target_critic, self.critic, tau)
            follow(self.target_second, self.second, tau)
        return ((errors[0] + errors[1]) / 2).detach()[:, 0]


class ReferenceSAC:
    """Textbook SAC on torch.distributions; draws its normals from the generator it is given."""

    def __init__(
        self,
        actor: Perceptron,
        critics: list[Perceptron],
        low: ArrayLike,
        high: ArrayLike,
        generator: torch.Generator,
    ) -> None:
        self.actor = module_twin(actor)
        self.critics = [module_twin(critic) for critic in critics]
        self.targets = copy.deepcopy(self.critics)
        self.low = torch.tensor(low, dtype=torch.float32)
        self.high = torch.tensor(high, dtype=torch.float32)
        self.generator = generator
        self.log_temperature = torch.zeros(1, requires_grad=True)
        self.actor_adam = torch.optim.Adam(self.actor.parameters(), lr=3e-4)
        both = [p for critic in self.critics for p in critic.parameters()]
        self.critic_adam = torch.optim.Adam(both, lr=3e-4)
        self.temperature_adam = torch.optim.Adam([self.log_temperature], lr=3e-4)

    def draw(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_deviation = self.actor(observation).chunk(2, 1)
        deviation = log_deviation.clamp(-20, 2).exp()
        # The fast agent's arrays are transposed, and so is the order of its draws.
        normal = torch.randn(mean.shape[1], mean.shape[0], generator=self.generator).t()
        before = mean + deviation * normal
        squash = torch.distributions.TanhTransform(cache_size=1)
        policy = torch.distributions.TransformedDistribution(
            torch.distributions.Normal(mean, deviation, validate_args=False), [squash]
        )
        unit = squash(before)
        action = self.low + (unit + 1) / 2 * (self.high - self.low)
        density: Tensor = policy.log_prob(unit)  # type: ignore[no-untyped-call]
        return action, density.sum(1, keepdim=True)

    def learn(self, batch: Batch, *, discount: float = 0.99, tau: float = 0.005) -> Tensor:
        data = columns(batch)
        temperature = self.log_temperature.exp().detach()
        with torch.no_grad():
            after, density = self.draw(data.next_observation)
            values = [value(critic, data.next_observation, after) for critic in self.targets]
            future = torch.minimum(*values) - temperature * density
            target = data.reward + discount * data.going_on * future
        errors = [target - value(critic, data.observation, data.action) for critic in self.critics]
        self.critic_adam.zero_grad()
        descend((data.weights * (errors[0] ** 2 + errors[1] ** 2)).mean())
        self.critic_adam.step()
        self.actor_adam.zero_grad()
        action, density = self.draw(data.observation)
        lower = torch.minimum(*(value(c, data.observation, action) for c in self.critics))
        descend((temperature * density - lower).mean())
        self.actor_adam.step()
        self.temperature_adam.zero_grad()
        entropy = -action.shape[1]
        descend((-self.log_temperature * (density.detach() + entropy)).mean())
        self.temperature_adam.step()
        for slow, fast in zip(self.targets, self.critics, strict=True):
            follow(slow, fast, tau)
        return ((errors[0] + errors[1]) / 2).detach()[:, 0]

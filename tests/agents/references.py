"""DDPG, TD3 and SAC in plain modules, autograd and torch.optim: the twins of the fast agents."""

import copy
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from lser.agents.networks import Perceptron
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
        (data.weights * error**2).mean().backward()
        self.critic_adam.step()
        self.actor_adam.zero_grad()
        action = self.policy(self.actor, data.observation)
        (-value(self.critic, data.observation, action).mean()).backward()
        self.actor_adam.step()
        follow(self.target_actor, self.actor, tau)
        follow(self.target_critic, self.critic, tau)
        return error.detach()[:, 0]

"""`ddpg-release` is the VirtualTaobao release's DDPG: same weights in, same numbers out.

The networks, losses and soft updates are written out here as its example has them, from the
description in docs/differences.md (L11), in plain PyTorch with autograd and Adam.
"""

import copy

import numpy as np
import torch
from torch import Tensor, nn

from lser.agents import DDPG
from lser.agents.perceptron import Perceptron
from lser.catalogue import AGENTS
from lser.types import Batch

OBSERVED, ACTED, HIDDEN, ROWS = 91, 27, 128, 32
GAMMA, TAU, ACTOR_RATE, CRITIC_RATE = 0.99, 0.001, 1e-4, 1e-3


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear1, self.ln1 = nn.Linear(OBSERVED, HIDDEN), nn.LayerNorm(HIDDEN)
        self.linear2, self.ln2 = nn.Linear(HIDDEN, HIDDEN), nn.LayerNorm(HIDDEN)
        self.mu = nn.Linear(HIDDEN, ACTED)

    def forward(self, inputs: Tensor) -> Tensor:
        x = torch.relu(self.ln1(self.linear1(inputs)))
        x = torch.relu(self.ln2(self.linear2(x)))
        return torch.tanh(self.mu(x))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear1, self.ln1 = nn.Linear(OBSERVED, HIDDEN), nn.LayerNorm(HIDDEN)
        self.linear2, self.ln2 = nn.Linear(HIDDEN + ACTED, HIDDEN), nn.LayerNorm(HIDDEN)
        self.V = nn.Linear(HIDDEN, 1)

    def forward(self, inputs: Tensor, actions: Tensor) -> Tensor:
        x = torch.relu(self.ln1(self.linear1(inputs)))
        x = torch.cat((x, actions), 1)  # the action enters here
        x = torch.relu(self.ln2(self.linear2(x)))
        return self.V(x)


def take_weights(module: Actor | Critic, network: Perceptron) -> None:
    """Give the module the numbers of ours, layer by layer."""
    head = module.mu if isinstance(module, Actor) else module.V
    parts = [(module.linear1, module.ln1), (module.linear2, module.ln2), (head, None)]
    with torch.no_grad():
        for layer, (linear, norm) in zip(network.layers, parts, strict=True):
            ours = layer.weight if layer is network.head else layer.weight.t()
            linear.weight.copy_(ours)
            linear.bias.copy_(layer.bias)
            if norm is not None:
                norm.weight.copy_(layer.gain)
                norm.bias.copy_(layer.shift)


class Release:
    """The example's agent: two networks, two targets, one update after another."""

    def __init__(self, agent: DDPG) -> None:
        self.actor, self.critic = Actor(), Critic()
        take_weights(self.actor, agent.learner.actor)
        take_weights(self.critic, agent.learner.critics[0].networks[0])
        self.actor_target = copy.deepcopy(self.actor)
        self.critic_target = copy.deepcopy(self.critic)
        self.actor_optim = torch.optim.Adam(self.actor.parameters(), lr=ACTOR_RATE)
        self.critic_optim = torch.optim.Adam(self.critic.parameters(), lr=CRITIC_RATE)

    def update(self, batch: Batch) -> tuple[float, float, Tensor]:
        state, action, reward, following = (torch.from_numpy(x) for x in batch[:4])
        mask = 1 - torch.from_numpy(batch.terminated).float()
        with torch.no_grad():
            ahead = self.critic_target(following, self.actor_target(following))
        expected = reward[:, None] + GAMMA * mask[:, None] * ahead
        value = self.critic(state, action)
        value_loss = nn.functional.mse_loss(value, expected)
        self.critic_optim.zero_grad()
        value_loss.backward()
        self.critic_optim.step()
        policy_loss = -self.critic(state, self.actor(state)).mean()
        self.actor_optim.zero_grad()
        policy_loss.backward()
        self.actor_optim.step()
        for target, source in (
            (self.actor_target, self.actor),
            (self.critic_target, self.critic),
        ):
            for old, new in zip(target.parameters(), source.parameters(), strict=True):
                old.data.copy_(old.data * (1 - TAU) + new.data * TAU)
        return value_loss.item(), policy_loss.item(), (expected - value).detach()[:, 0]


def batch(seed: int) -> Batch:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((2, ROWS, OBSERVED)).astype(np.float32)
    action = rng.uniform(-1, 1, (ROWS, ACTED)).astype(np.float32)
    reward = rng.integers(0, 11, ROWS).astype(np.float32)
    ended, never = rng.random(ROWS) < 0.2, np.zeros(ROWS, np.bool_)
    ones = np.ones(ROWS, np.float32)
    return Batch(rows[0], action, reward, rows[1], ended, never, np.arange(ROWS), ones)


def ours(seed: int = 3) -> DDPG:
    params = AGENTS["ddpg-release"].params()
    assert (params.discount, params.tau) == (GAMMA, TAU)
    assert (params.actor_lr, params.critic_lr) == (ACTOR_RATE, CRITIC_RATE)
    return DDPG(OBSERVED, -np.ones(ACTED), np.ones(ACTED), params=params, seed=seed)


def test_networks_have_the_release_s_shapes_and_first_numbers():
    agent = ours()
    network = agent.learner.critics[0].networks[0]
    twin = Critic()
    take_weights(twin, network)  # fails unless every shape is the same
    gains = torch.cat([layer.gain for layer in network.layers if layer.gain.numel()])
    assert (gains >= 0).all()
    assert (gains <= 1).all()
    assert abs(float(gains.mean()) - 0.5) < 0.06
    head = twin.V.weight.detach().abs().max()
    assert float(head) <= 0.1 / np.sqrt(HIDDEN) + 1e-6  # a tenth of nn.Linear's


def test_losses_targets_and_policies_are_the_release_s_over_fifty_updates():
    torch.manual_seed(0)
    agent = ours()
    release = Release(agent)
    for seed in range(50):
        drawn = batch(seed)
        learned = agent.learn(drawn)
        value_loss, policy_loss, errors = release.update(drawn)
        np.testing.assert_allclose(learned.losses["critic"], value_loss, rtol=2e-4)
        np.testing.assert_allclose(learned.losses["actor"], policy_loss, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(learned.td_errors, errors.numpy(), atol=2e-3)
    seen = batch(99).observation
    with torch.no_grad():
        theirs = release.actor(torch.from_numpy(seen)).numpy()
    np.testing.assert_allclose(agent.act(seen), theirs, atol=2e-3)


def test_noise_goes_on_when_a_session_ends():
    agent = ours()
    rows = np.zeros((1, OBSERVED), np.float32)
    for _ in range(5):
        agent.act(rows, explore=True)
    before = agent.state_dict()["noise"]
    agent.end_sessions(np.ones(1, np.bool_))
    after = agent.state_dict()["noise"]
    assert str(before) == str(after)

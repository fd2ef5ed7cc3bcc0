"""Every agent's update equals its autograd twin, and treats ends and weights as it should."""

import numpy as np
import pytest
import torch
from agent_references import (
    ReferenceDDPG,
    ReferenceSAC,
    ReferenceTD3,
    module_twin,
    random_batch,
    value,
)
from torch import nn

from lser.agents import DDPG, SAC, TD3
from lser.agents.perceptron import Perceptron

LOW, HIGH = np.array([-1.0, 0.0, -3.0]), np.array([1.0, 2.0, -1.0])


def perceptrons(agent: DDPG | TD3 | SAC) -> list[Perceptron]:
    return [critic.networks[0] for critic in agent.learner.critics]


def assert_same_network(ours: Perceptron, theirs: nn.Module) -> None:
    for a, b in zip(module_twin(ours).parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=3e-5)


def test_fifty_updates_of_ddpg_equal_the_autograd_twin() -> None:
    agent = DDPG(6, LOW, HIGH, hidden=(32, 24), seed=4)
    twin = ReferenceDDPG(agent.learner.actor, agent.learner.critics[0].networks[0], LOW, HIGH)
    for seed in range(50):
        batch = random_batch(32, 6, 3, seed=seed)
        ours, theirs = agent.learn(batch).td_errors, twin.learn(batch).numpy()
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)
    assert_same_network(agent.learner.actor, twin.actor)
    assert_same_network(perceptrons(agent)[0], twin.critic)
    assert_same_network(agent.learner.target_actor, twin.target_actor)
    assert_same_network(agent.learner.target_critics[0].networks[0], twin.target_critic)


def test_fifty_updates_of_td3_equal_the_autograd_twin() -> None:
    agent = TD3(6, LOW, HIGH, hidden=(32, 24), smoothing=0.0, seed=4)
    twin = ReferenceTD3(agent.learner.actor, perceptrons(agent), LOW, HIGH)
    for seed in range(50):
        batch = random_batch(32, 6, 3, seed=seed)
        ours, theirs = agent.learn(batch).td_errors, twin.learn(batch).numpy()
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)
    assert_same_network(agent.learner.actor, twin.actor)
    assert_same_network(perceptrons(agent)[1], twin.second)
    assert_same_network(agent.learner.target_actor, twin.target_actor)
    assert_same_network(agent.learner.target_critics[1].networks[0], twin.target_second)


def test_fifty_updates_of_sac_equal_the_autograd_twin() -> None:
    agent = SAC(6, LOW, HIGH, hidden=(32, 24), seed=4)
    generator = torch.Generator()
    generator.set_state(agent.state_dict()["generator"])
    twin = ReferenceSAC(agent.learner.actor, perceptrons(agent), LOW, HIGH, generator)
    for seed in range(50):
        batch = random_batch(32, 6, 3, seed=seed)
        learned = agent.learn(batch)
        temperature = twin.log_temperature.exp().item()
        theirs = twin.learn(batch).numpy()
        np.testing.assert_allclose(learned.td_errors, theirs, rtol=1e-3, atol=1e-4)
        assert learned.losses["temperature"] == pytest.approx(temperature, rel=1e-5)
    assert_same_network(agent.learner.actor, twin.actor)
    assert_same_network(perceptrons(agent)[1], twin.critics[1])
    assert_same_network(agent.learner.target_critics[0].networks[0], twin.targets[0])


def test_a_terminated_transition_is_worth_its_reward_and_a_truncated_one_more() -> None:
    agent = DDPG(6, LOW, HIGH, seed=1)
    critic = module_twin(perceptrons(agent)[0])
    batch = random_batch(8, 6, 3, seed=0)
    ends = batch._replace(terminated=np.ones(8, bool), truncated=np.zeros(8, bool))
    with torch.no_grad():
        now = value(critic, torch.tensor(batch.observation), torch.tensor(batch.action))
    state = agent.state_dict()
    np.testing.assert_allclose(agent.learn(ends).td_errors, batch.reward - now[:, 0].numpy(), 1e-4)
    agent.load_state_dict(state)
    cut = batch._replace(terminated=np.zeros(8, bool), truncated=np.ones(8, bool))
    gap = agent.learn(cut).td_errors - (batch.reward - now[:, 0].numpy())
    assert (np.abs(gap) > 1e-4).all()


def test_a_transition_of_weight_zero_does_not_move_the_critic() -> None:
    first, second = (DDPG(6, LOW, HIGH, seed=1) for _ in range(2))
    batch = random_batch(8, 6, 3, seed=0)
    weights = np.ones(8, np.float32)
    weights[3] = 0.0
    reward = batch.reward.copy()
    reward[3] = 1e6
    first.learn(batch._replace(weights=weights))
    second.learn(batch._replace(weights=weights, reward=reward))
    assert torch.equal(first.learner.critics[0].vector, second.learner.critics[0].vector)


def test_the_critic_loss_is_the_weighted_mean_of_squared_errors() -> None:
    batch = random_batch(8, 6, 3, seed=0)
    learned = DDPG(6, LOW, HIGH).learn(batch)
    expected = (batch.weights * learned.td_errors**2).mean()
    assert learned.losses["critic"] == pytest.approx(expected, rel=1e-5)


def test_targets_follow_by_tau() -> None:
    agent = DDPG(6, LOW, HIGH, tau=0.25)
    before = agent.learner.targets.clone()
    agent.learn(random_batch(8, 6, 3, seed=0))
    torch.testing.assert_close(
        agent.learner.targets, 0.75 * before + 0.25 * agent.learner.parameters
    )


def test_td3_moves_the_actor_only_at_every_delayed_update() -> None:
    agent = TD3(6, LOW, HIGH, delay=3)
    moved = []
    for seed in range(6):
        before = agent.learner.actor.vector.clone()
        agent.learn(random_batch(8, 6, 3, seed=seed))
        moved.append(not torch.equal(before, agent.learner.actor.vector))
    assert moved == [False, False, True, False, False, True]

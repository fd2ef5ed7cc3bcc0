"""Bounded values, penalties, diagnostics and noise options do what they say."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from agent_references import critic_twin, random_batch

from lser.agents import DDPG, SAC, TD3
from lser.agents.params import DDPGParams
from lser.agents.value_bounds import ValueBounds
from lser.catalogue import AGENTS

LOW, HIGH = np.array([-1.0, 0.0, -3.0]), np.array([1.0, 2.0, -1.0])
every_agent = pytest.mark.parametrize("make", [DDPG, TD3, SAC])


def critic_values(agent: Any, batch: Any) -> Any:
    learner = agent.learner
    inputs = torch.from_numpy(np.hstack([batch.observation, batch.action]))
    critics = [critic_twin(c.shape, c.vector, inputs) for c in learner.critics]
    return torch.stack(critics).mean(0)[:, 0].numpy()


@every_agent
def test_targets_stay_within_given_bounds(make: Any) -> None:
    agent = make(6, LOW, HIGH, value_bound=(-0.1, 0.2))
    batch = random_batch(64, 6, 3, seed=0)
    before = critic_values(agent, batch)
    targets = agent.learn(batch).td_errors + before
    assert targets.min() == pytest.approx(-0.1, abs=1e-5)
    assert targets.max() == pytest.approx(0.2, abs=1e-5)


@pytest.mark.parametrize(
    ("rewards", "discount", "expected"),
    [
        ((0.0, 10.0), 0.99, (0.0, 1000.0)),
        ((2.0, 10.0), 0.9, (2.0, 100.0)),  # a session may end after its lowest reward
        ((-3.0, 1.0), 0.5, (-6.0, 2.0)),
        ((-3.0, -1.0), 0.5, (-6.0, -1.0)),
        ((0.0, 1.0), 1.0, (0.0, np.inf)),
        ((1.0, 4.0), 0.0, (1.0, 4.0)),
    ],
)
def test_rewards_bound_the_values(rewards: Any, discount: float, expected: Any) -> None:
    agent = DDPG(6, LOW, HIGH, discount=discount, value_bound="auto")
    assert agent.learner.bounds.limits() == (-np.inf, np.inf)  # nothing seen yet
    agent.learner.bounds.see(0, np.array(rewards, np.float32))
    assert agent.learner.bounds.limits() == pytest.approx(expected)


def test_bounds_of_many_agents_at_once_are_those_of_each_alone() -> None:
    kinds = [{"value_bound": "auto"}, {"value_bound": (-1.0, 2.0)}, {}, {"value_bound": "auto"}]
    params = [DDPGParams(discount=0.5 + 0.1 * n, **kind) for n, kind in enumerate(kinds)]
    together, alone = ValueBounds(params), ValueBounds(params)
    rng = np.random.default_rng(0)
    for _ in range(20):
        who = rng.random(len(params)) < 0.5
        rewards = rng.normal(0, 3, (len(params), 8)).astype(np.float32)
        together.see_all(who, rewards)
        for slot in np.flatnonzero(who):
            alone.see(slot, rewards[slot])
        assert (together.seen == alone.seen).all()
        limits = [alone.limits(slot) for slot in range(len(params))]
        assert (limits == together.all_limits().T).all()
    together.seen[0] = -7.0, 9.0  # as loading a learner does
    assert together.all_limits()[:, 0].tolist() == [-14.0, 18.0]


def test_automatic_bounds_follow_the_rewards_seen_and_are_saved() -> None:
    agent = DDPG(6, LOW, HIGH, value_bound="auto", discount=0.5)
    batch = random_batch(8, 6, 3, seed=0)
    agent.learn(batch._replace(reward=np.full(8, 3.0, np.float32)))
    agent.learn(batch._replace(reward=np.full(8, 1.0, np.float32)))
    other = DDPG(6, LOW, HIGH, value_bound="auto", discount=0.5)
    other.load_state_dict(agent.state_dict())
    assert other.learner.bounds.limits() == agent.learner.bounds.limits() == (1.0, 6.0)


@pytest.mark.parametrize("make", [DDPG, TD3])
def test_the_penalty_on_preactivations_is_its_gradient(make: Any) -> None:
    """At a critic of zeros, the actor's gradient is the penalty's alone."""
    agent = (
        make(6, LOW, HIGH, hidden=(8,), preactivation_penalty=0.25, delay=1)
        if make is TD3
        else make(6, LOW, HIGH, hidden=(8,), preactivation_penalty=0.25)
    )
    learner = agent.learner
    learner.parameters[learner.split :] = 0.0
    learner.targets[learner.split :] = 0.0
    batch = random_batch(16, 6, 3, seed=0)
    layers = [[p.clone().requires_grad_(True) for p in layer[:4]] for layer in learner.actor.layers]
    x = torch.from_numpy(batch.observation)
    (weight, bias, gain, shift), (head, head_bias, *_) = layers
    x = torch.relu(torch.nn.functional.layer_norm(x @ weight + bias, (8,)) * gain + shift)
    raw = x @ head.t() + head_bias
    (0.25 * raw.square().sum(1).mean()).backward()
    agent.learn(batch._replace(reward=np.zeros(16, np.float32)))
    torch.testing.assert_close(
        learner.actor_gradient.layers[0].weight, weight.grad, rtol=1e-3, atol=1e-6
    )
    torch.testing.assert_close(learner.actor_gradient.head.weight, head.grad, rtol=1e-3, atol=1e-6)


def test_a_penalty_pulls_saturated_actions_back() -> None:
    agents = [DDPG(6, LOW, HIGH, preactivation_penalty=p, actor_lr=1e-2) for p in (0.0, 1.0)]
    batch = random_batch(32, 6, 3, seed=0)
    for agent in agents:
        agent.learner.actor.head.bias.add_(6.0)
        for _ in range(200):
            agent.learn(batch)
    free, held = (np.abs(agent.act(batch.observation) - (LOW + HIGH) / 2) for agent in agents)
    assert held.mean() < free.mean() - 0.2


@every_agent
@pytest.mark.parametrize("critic", ["joint", "late-action", "product"])
def test_diagnostics_are_the_critics_values(make: Any, critic: Any) -> None:
    agent = make(6, LOW, HIGH, diagnose_every=3, critic=critic)
    batches = [random_batch(32, 6, 3, seed=seed) for seed in range(3)]
    assert agent.learn(batches[0]).values is None
    assert agent.learn(batches[1]).values is None
    first = agent.learner.critics[0]
    inputs = torch.from_numpy(np.hstack([batches[2].observation, batches[2].action]))
    replayed = critic_twin(first.shape, first.vector, inputs).numpy()
    values = agent.learn(batches[2]).values
    assert values.replayed_mean == pytest.approx(replayed.mean(), abs=1e-4)
    assert values.replayed_largest == pytest.approx(replayed.max(), abs=1e-4)
    action = agent.act(batches[2].observation)
    inputs = torch.from_numpy(np.hstack([batches[2].observation, action]))
    own = critic_twin(first.shape, first.vector, inputs).numpy()
    assert values.own_mean == pytest.approx(own.mean(), abs=1e-4)
    assert values.own_largest == pytest.approx(own.max(), abs=1e-4)
    assert values.spread > 0
    assert 0 <= values.saturated <= 1
    rewards = batches[2].reward
    assert values.bound_high == pytest.approx(rewards.max() * 100, rel=1e-3)
    assert values.bound_low == pytest.approx(rewards.min() * 100, rel=1e-3)


def test_saturated_components_are_counted() -> None:
    agent = DDPG(6, LOW, HIGH, diagnose_every=1, actor_lr=1e-9)
    agent.learner.actor.head.bias[0] = 50.0
    agent.learner.actor.head.bias[1] = -50.0
    values = agent.learn(random_batch(32, 6, 3, seed=0)).values
    assert values is not None
    assert values.saturated == pytest.approx(2 / 3)


@every_agent
def test_diagnostics_change_no_number(make: Any) -> None:
    often, never = (make(6, LOW, HIGH, diagnose_every=every) for every in (1, 0))
    for seed in range(10):
        batch = random_batch(16, 6, 3, seed=seed)
        learned = often.learn(batch), never.learn(batch)
        assert (learned[0].td_errors == learned[1].td_errors).all()
        assert learned[0].losses == learned[1].losses
        assert learned[1].values is None


@pytest.mark.parametrize("reset", [True, False])
def test_noise_goes_on_through_sessions_where_asked(reset: bool) -> None:
    agent = DDPG(6, LOW, HIGH, noise_sigma=0.2, noise_reset=reset)
    agent.act(np.zeros((3, 6), np.float32), explore=True)
    before = agent.state_dict()["noise"]["streams"]
    agent.end_sessions(np.array([True, False, True]))
    after = agent.state_dict()["noise"]["streams"]
    assert (after[1] == before[1]).all()
    assert (after[0] == (0.0 if reset else before[0])).all()


@every_agent
@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"value_bound": (1.0, 1.0)}, "value_bound must be a lower and a higher"),
        ({"value_bound": (1.0, np.inf)}, "value_bound must be None, 'auto' or two numbers"),
        ({"value_bound": "tight"}, "value_bound must be None, 'auto' or two numbers"),
        ({"critic": "wide"}, "critic must be one of 'joint', 'late-action', 'product', got 'wide'"),
        ({"critic": "late-action", "hidden": (8,)}, "needs two hidden layers"),
        ({"norm_gain": "zeros"}, "norm_gain must be"),
        ({"diagnose_every": -1}, "diagnose_every must be >= 0, got -1"),
        ({"preactivation_penalty": -1.0}, "preactivation_penalty must be finite and >= 0"),
    ],
)
def test_bad_options_are_named(make: Any, knobs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(6, LOW, HIGH, **knobs)


@pytest.mark.parametrize("name", AGENTS.own)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), "x", [1], 1.5, -1.5])
def test_a_setting_of_another_kind_is_refused_by_name_whatever_the_agent(name, value):
    kind = AGENTS[name].params_type()
    for field in fields(kind):
        word = field.name == "device" and value == "x"  # it is looked up when the agent is made
        number = (field.type is float or field.name == "target_entropy") and value in (1.5, -1.5)
        widths = field.name == "hidden" and value == [1]
        if not (word or number or widths):
            with pytest.raises(ValueError, match=f"{field.name} must"):
                kind(**{field.name: value})

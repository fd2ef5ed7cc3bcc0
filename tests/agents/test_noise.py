"""Exploration noise has the closed-form statistics and follows sessions."""

import numpy as np
import pytest

from lser.agents import DDPG, SAC, TD3
from lser.agents.noise import Noise, WeightNoise


def noise(theta: float = 0.15, sigma: float = 0.2, scale: float = 0.1, dim: int = 2) -> Noise:
    return Noise(dim, theta, sigma, scale, rng=np.random.default_rng(0))


@pytest.mark.parametrize("theta", [0.15, 0.6, 1.0])
def test_variance_and_correlation_are_the_stationary_ones(theta: float) -> None:
    process = noise(theta)
    for _ in range(60):
        process.sample(20_000)
    now, after = process.sample(20_000).ravel(), process.sample(20_000).ravel()
    variance = 0.1**2 * 0.2**2 / (1 - (1 - theta) ** 2)
    assert now.mean() == pytest.approx(0, abs=4 * (variance / now.size) ** 0.5)
    assert now.var() == pytest.approx(variance, rel=0.03)
    assert np.corrcoef(now, after)[0, 1] == pytest.approx(1 - theta, abs=0.02)


def test_only_the_streams_whose_session_ended_start_again() -> None:
    process = noise(sigma=0.0)
    state = process.state_dict()
    state["streams"] = np.ones((3, 2), np.float32)
    process.load_state_dict(state)
    process.reset(np.array([False, True, False]))
    expected = np.array([[0.085, 0.085], [0.0, 0.0], [0.085, 0.085]])
    np.testing.assert_allclose(process.sample(3), expected, rtol=1e-6)


def test_streams_are_independent() -> None:
    draws = np.stack([noise(dim=1).sample(3)[:, 0], noise(dim=1).sample(3)[:, 0]])
    assert (draws[0] == draws[1]).all()
    assert len(set(draws[0].tolist())) == 3


def test_a_wrong_number_of_sessions_is_refused() -> None:
    process = noise()
    process.sample(3)
    with pytest.raises(ValueError, match=r"done must have shape \(3,\), got \(2,\)"):
        process.reset(np.zeros(2, bool))


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ((0.0, 0.2, 0.1), "noise_theta"),
        ((1.5, 0.2, 0.1), "noise_theta"),
        ((0.15, -1.0, 0.1), "noise_sigma"),
        ((0.15, 0.2, float("nan")), "noise_scale"),
    ],
)
def test_impossible_noise_is_refused(knobs: tuple[float, float, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        noise(*knobs)


def weight_noise(scale: float = 0.5) -> WeightNoise:
    return WeightNoise(6, 2, scale, rng=np.random.default_rng(0))


def test_a_layer_is_one_function_of_the_observation_until_its_session_ends() -> None:
    layers, seen = weight_noise(), np.random.default_rng(1).normal(size=(3, 6)).astype(np.float32)
    first = layers.sample(seen)
    np.testing.assert_array_equal(layers.sample(seen), first)
    np.testing.assert_allclose(layers.sample(7 * seen), first, rtol=1e-4)  # by direction
    layers.reset(np.array([False, True, False]))
    again = layers.sample(seen)
    assert (again == first).all(axis=1).tolist() == [True, False, True]


def test_its_deviation_over_layers_is_the_scale() -> None:
    seen = np.random.default_rng(1).normal(size=(20_000, 6)).astype(np.float32)
    assert weight_noise(0.5).sample(seen).std() == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize("make", [DDPG, TD3])
def test_exploration_in_parameters_moves_actions_alone_and_is_saved(make: type) -> None:
    bounds, quiet = (-np.ones(2), np.ones(2)), {"noise_scale": 0.0, "hidden": (8,)}
    agent = make(6, *bounds, weight_noise=0.3, **quiet)
    seen = np.random.default_rng(1).normal(size=(3, 6)).astype(np.float32)
    plain, moved = agent.act(seen), agent.act(seen, explore=True)
    assert (plain == make(6, *bounds, **quiet).act(seen)).all()
    assert (plain != moved).any()
    np.testing.assert_array_equal(agent.act(seen, explore=True), moved)
    other = make(6, *bounds, weight_noise=0.3, **quiet)
    other.load_state_dict(agent.state_dict())
    np.testing.assert_array_equal(other.act(seen, explore=True), moved)
    for one in (agent, other):
        one.end_sessions(np.array([True, False, False]))
    np.testing.assert_array_equal(agent.act(seen, explore=True), other.act(seen, explore=True))
    agent.stop_exploring()
    np.testing.assert_array_equal(agent.act(seen, explore=True), plain)


def test_it_is_off_unless_asked_for_and_changes_no_other_draw() -> None:
    bounds = -np.ones(2), np.ones(2)
    seen = np.ones((3, 6), np.float32)
    assert "weight_noise" not in DDPG(6, *bounds).state_dict()
    with_it, without = DDPG(6, *bounds, weight_noise=1e-9), DDPG(6, *bounds)
    expected = without.act(seen, explore=True)
    np.testing.assert_allclose(with_it.act(seen, explore=True), expected, rtol=1e-5)
    with pytest.raises(ValueError, match="weight_noise must be finite and >= 0, got -1"):
        DDPG(6, *bounds, weight_noise=-1)
    with pytest.raises(ValueError, match="unknown parameter 'weight_noise'"):
        SAC(6, *bounds, weight_noise=1.0)

"""Exploration noise has the closed-form statistics and follows sessions."""

import numpy as np
import pytest

from lser.agents.noise import Noise


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

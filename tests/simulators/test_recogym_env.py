"""RecoGym's own promises: what a step is, what an agent sees, what is refused."""

import dataclasses
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from lser.simulators.recogym import PRESETS, Params
from lser.simulators.recogym.simulator import RecoGym, RecoGymEnv, RecoGymVectorEnv
from lser.simulators.recogym.world import flip, make_world


def literal_flip(gamma: np.ndarray, flips: int) -> np.ndarray:
    order, products, used, done = np.arange(len(gamma)), len(gamma), set[int](), 0
    covariance = gamma @ gamma.T
    covariance -= np.diag(np.diag(covariance))
    for cell in covariance.ravel().argsort()[::-1]:
        one, other = divmod(int(cell), products)
        if one not in used and other not in used:
            order[one], order[other] = other, one
            used |= {one, other}
            done += 1
            if done == flips:
                break
    return order


@pytest.mark.parametrize("flips", [1, 2, 4, 5, 9, 40])
def test_flips_swap_the_same_pairs_as_the_literal_loop(flips: int) -> None:
    rng = np.random.default_rng(flips)
    for _ in range(20):
        gamma = rng.normal(size=(int(rng.integers(2, 30)), 3))
        np.testing.assert_array_equal(flip(gamma, flips), literal_flip(gamma, flips))


def test_products_can_be_given_instead_of_drawn() -> None:
    params = Params(number_of_flips=3, actions="discrete")
    drawn = make_world(params)
    given = make_world(
        dataclasses.replace(params, random_seed=1),
        gamma=drawn.gamma,
        mu_organic=drawn.mu_organic[:, None],
    )
    np.testing.assert_array_equal(given.beta, drawn.beta)
    assert RecoGym(params, world=given).world is given
    with pytest.raises(ValueError, match="gamma must be finite of shape"):
        make_world(params, gamma=np.zeros((3, 3)))


def test_leaving_from_bandit_ignores_its_own_probability_unless_asked() -> None:
    assert make_world(Params(prob_leave_bandit=0.3)).transition[1, 2] == 0.01
    fixed = make_world(Params(prob_leave_bandit=0.3, use_prob_leave_bandit=True))
    np.testing.assert_allclose(fixed.transition[1], [0.05, 0.65, 0.3])


def test_a_step_is_one_recommendation_and_views_happen_inside() -> None:
    sim = RecoGym(Params(actions="discrete"))
    rng = np.random.default_rng(0)
    users = sim.arrive(rng, 500)
    assert (users.views >= 1).all()
    before = users.seen.copy()
    info = sim.step(users, np.zeros(500, np.int64), rng).info
    np.testing.assert_array_equal((users.seen - before).sum(axis=1), info["views"])
    np.testing.assert_array_equal(users.shown, 1)
    np.testing.assert_array_equal(users.since, info["views"] == 0)
    assert (info["views"][info["clicks"] == 1] > 0).all()
    observation = sim.observe(users)
    np.testing.assert_array_equal(observation[:, :10], users.seen)
    np.testing.assert_array_equal(observation[:, 10:20].argmax(axis=1), users.last)
    np.testing.assert_array_equal(
        observation[:, 20:], np.c_[users.since, users.clicks, users.shown]
    )


def test_drift_in_bandit_states_moves_interests_at_every_event() -> None:
    for drifts in (False, True):
        sim = RecoGym(Params(change_omega_for_bandits=drifts, actions="discrete"))
        rng = np.random.default_rng(0)
        users = sim.arrive(rng, 4_000)
        before = users.omega.copy()
        outcome = sim.step(users, np.zeros(4_000, np.int64), rng)
        quiet = (outcome.info["views"] == 0) & ~outcome.terminated
        moved = (users.omega - before)[quiet]
        assert moved.std() == pytest.approx(0.1 if drifts else 0.0, rel=0.03)


def test_random_time_scales_the_drift() -> None:
    params = Params(time_generator="normal", normal_time_mu=3.0, change_omega_for_bandits=True)
    sim = RecoGym(dataclasses.replace(params, actions="discrete"))
    rng = np.random.default_rng(0)
    users = sim.arrive(rng, 4_000)
    omega, time = users.omega.copy(), users.time.copy()
    outcome = sim.step(users, np.zeros(4_000, np.int64), rng)
    quiet = outcome.info["views"] == 0
    passed = (users.time - time)[quiet]
    assert passed.mean() == pytest.approx(3.0, abs=0.1)
    scaled = (users.omega - omega)[quiet] / passed[:, None]
    assert scaled.std() == pytest.approx(0.1, rel=0.03)


def test_the_three_kinds_of_action_recommend_products() -> None:
    scores = RecoGym(Params())
    assert scores.choose(np.eye(10, dtype=np.float32)[[3, 7]]).tolist() == [3, 7]
    assert scores.choose(np.zeros((1, 10), np.float32)).tolist() == [0]
    assert RecoGym(Params(actions="discrete")).choose(np.array([4, 2])).tolist() == [4, 2]
    points = RecoGym(Params(num_products=50, actions="embedding", embedding_users=500))
    action = np.random.default_rng(0).uniform(-1, 1, (9, 6))
    best = (action @ points.world.embedding.T).argmax(axis=1)
    np.testing.assert_array_equal(points.choose(action), best)


def test_the_embedding_of_co_views_recovers_the_products_geometry() -> None:
    world = make_world(Params(num_products=100, actions="embedding", random_seed=3))
    truth = np.c_[world.gamma, world.mu_organic]
    weight = np.exp(world.mu_organic / 2)[:, None]  # rarely viewed products tell little
    fit = np.linalg.lstsq(world.embedding * weight, truth * weight, rcond=None)[0]
    error = ((world.embedding @ fit - truth) * weight).var(axis=0) / (truth * weight).var(axis=0)
    assert error.mean() < 0.15, error


def test_ten_thousand_products_work_both_ways() -> None:
    large = dataclasses.replace(PRESETS["large"], embedding_users=1_000)
    env = RecoGymVectorEnv(8, params=large)
    observation, _ = env.reset(seed=0)
    assert observation.shape == (8, 16)
    for _ in range(3):
        observation, *_ = env.step(np.random.default_rng(0).uniform(-1, 1, (8, 6)))
    assert np.isfinite(observation).all()
    counted = RecoGymEnv(num_products=10_000, actions="discrete", number_of_flips=5)
    assert counted.reset(seed=0)[0].shape == (20_003,)
    assert counted.step(9_999)[4]["product"] == 9_999


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"actions": "discrete", "observation": "log_counts"},
        {"version": 0},
        {"actions": "embedding", "observation": "embedding", "embedding_users": 300},
    ],
)
def test_gymnasiums_checker_accepts_every_variant(overrides: dict[str, Any]) -> None:
    check_env(gym.make("lser/RecoGym-v0", **overrides).unwrapped)
    env = RecoGymEnv(render_mode="ansi", **overrides)
    env.reset(seed=0)
    assert "has viewed" in str(env.render())
    env.step(env.action_space.sample())
    assert "click probability" in str(env.render())


def test_the_same_seed_gives_the_same_users_and_a_vector_of_one_is_the_single_env() -> None:
    single, batch = RecoGymEnv(), RecoGymVectorEnv(1)
    one, many = single.reset(seed=5)[0], batch.reset(seed=5)[0]
    actions = np.random.default_rng(0).uniform(-1, 1, (200, 10)).astype(np.float32)
    for action in actions:
        np.testing.assert_array_equal(one, many[0])
        one, reward, over, _, _ = single.step(action)
        many, rewards, overs, _, info = batch.step(action[None])
        assert (reward, over) == (rewards[0], overs[0])
        if over:
            np.testing.assert_array_equal(one, info["final_obs"][0])
            one = single.reset()[0]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"num_products": 0}, "num_products must be at least 1, got 0"),
        ({"prob_leave_organic": 1.5}, r"prob_leave_organic must be in \[0, 1\], got 1.5"),
        ({"prob_organic_to_bandit": 0.0}, "nobody would come to a recommendation"),
        ({"prob_organic_to_bandit": 0.995}, "must be at most 1"),
        ({"prob_bandit_to_organic": 1.0}, "must be at most 1"),
        ({"number_of_flips": -1}, "number_of_flips must be at least 0, got -1"),
        ({"sigma_omega": float("nan")}, "sigma_omega must be finite"),
        ({"version": 0, "num_products": 7}, "multiple of num_clusters"),
        ({"actions": "slate"}, "actions must be one of"),
        ({"random_seed": -1}, "random_seed must be in"),
        ({"number_of_flip": 1}, "did you mean number_of_flips"),
    ],
)
def test_bad_parameters_are_refused_by_name(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RecoGymEnv(**overrides)

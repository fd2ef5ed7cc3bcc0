"""Bazaar's dials do what they say."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import lser  # noqa: F401  (registers the environments)
from lser.simulators.bazaar import Params
from lser.simulators.bazaar.oracle import (
    Sighted,
    constant,
    informed,
    long_term_score,
    myopic_score,
    play,
    scoring,
    uniformly_random,
)
from lser.simulators.bazaar.simulator import Bazaar, BazaarEnv
from lser.simulators.bazaar.world import first_places, normalised

# The calibration is itself sampled: 3 % of the CTR, beside the test's own standard error.
CALIBRATION = 0.03
# Two-sided 4 standard errors: over the about 25 comparisons here a false alarm has chance 2e-3.
ERRORS = 4

GRID = [
    {},
    {"sparsity": 0.01},
    {"sparsity": 0.2},
    {"state_dependence": 0.0},
    {"state_dependence": 1.0},
    {"state_dependence": 1.0, "sparsity": 0.01},
    {"drift": 0.0},
    {"drift": 0.5, "state_dependence": 1.0},
    {"patience": 0.0},
    {"patience": 6.0, "sparsity": 0.2},
    {"items": 100},
    {"items": 10_000},
    {"features": 32, "topics": 5},
    {"individuality": 1.0},
    {"sharpness": 5.0},
    {"world_seed": 7},
    {"slate": 3},
    {"actions": "slate"},
    {"actions": "discrete"},
]


@pytest.mark.parametrize("dials", GRID, ids=str)
def test_random_actions_have_the_ctr_that_sparsity_says(dials: dict[str, object]) -> None:
    bazaar = Bazaar(Params(**dials))  # type: ignore[arg-type]
    score = play(bazaar, uniformly_random(bazaar, seed=1), sessions=6_000, seed=2)
    target = bazaar.params.sparsity
    assert abs(score.ctr - target) < CALIBRATION * target + ERRORS * score.ctr_error


def best_constant(bazaar: Bazaar, users: int = 400) -> np.ndarray:
    """The weight vector with the most expected first-page clicks among many, then climbed."""
    rng = np.random.default_rng(3)
    interest = bazaar.world.interest(bazaar.arrive(rng, users).personal)

    def worth(weights: np.ndarray) -> float:
        slate = bazaar.slates(weights[None].astype(np.float32))
        appeal = bazaar.world.appeal(interest, np.repeat(slate, users, axis=0))
        return float(bazaar.world.click_chance(appeal, bazaar.offset).mean())

    candidates = [rng.uniform(-1, 1, bazaar.params.features) for _ in range(300)]
    candidates += [scoring(bazaar.world.shared[None], 0.0)[0]]
    candidates += [scoring(interest.mean(axis=0)[None], 0.0)[0]]
    best = max(candidates, key=worth)
    for step in np.geomspace(0.3, 0.03, 300):
        other = np.clip(best + step * rng.standard_normal(best.shape), -1, 1)
        best = max((best, other), key=worth)
    return best.astype(np.float32)


@pytest.mark.parametrize("drift", [0.0, 0.3])
def test_without_state_dependence_the_best_constant_action_is_as_good_as_the_oracle(
    drift: float,
) -> None:
    bazaar = Bazaar(Params(state_dependence=0.0, drift=drift))
    shared = scoring(bazaar.world.shared[None], 0.0)[0]
    fixed = play(bazaar, constant(bazaar, shared), seed=4)
    oracle = play(bazaar, Sighted(bazaar), seed=4)
    assert fixed == oracle  # the same pages, clicks and departures
    searched = play(bazaar, constant(bazaar, best_constant(bazaar)), seed=4)
    assert searched.ctr <= oracle.ctr + ERRORS * oracle.ctr_error


def test_at_full_state_dependence_the_best_constant_action_is_near_random() -> None:
    bazaar = Bazaar(Params(state_dependence=1.0))
    fixed = play(bazaar, constant(bazaar, best_constant(bazaar)), seed=4).ctr
    oracle = play(bazaar, Sighted(bazaar), seed=4).ctr
    share = (fixed - bazaar.params.sparsity) / (oracle - bazaar.params.sparsity)
    assert share < 0.15


def test_the_more_state_matters_the_less_a_constant_action_reaches() -> None:
    shares = []
    for dependence in (0.0, 0.25, 0.5, 0.75, 1.0):
        bazaar = Bazaar(Params(state_dependence=dependence))
        fixed = constant(bazaar, scoring(bazaar.world.shared[None], 0.0)[0])
        shares.append(play(bazaar, fixed).ctr / myopic_score(bazaar.params).ctr)
    assert shares == sorted(shares, reverse=True)


def test_no_slate_has_more_expected_clicks_than_the_myopic_oracles() -> None:
    bazaar = Bazaar(Params(items=60, slate=3, features=5))
    users = bazaar.arrive(np.random.default_rng(0), 50)
    interest = bazaar.world.interest(users.personal)

    def worth(slates: np.ndarray) -> np.ndarray:
        chance = bazaar.world.click_chance(bazaar.world.appeal(interest, slates), bazaar.offset)
        return np.asarray(chance.sum(axis=1))

    best = worth(bazaar.slates(Sighted(bazaar)(users)))
    rng = np.random.default_rng(1)
    for _ in range(500):
        other = np.stack([rng.choice(60, 3, replace=False) for _ in range(50)])
        assert (worth(other) <= best + 1e-5).all()


@pytest.mark.slow
def test_patience_raises_the_long_term_oracle_above_the_myopic_one() -> None:
    gains = []
    for patience in (0.0, 3.0, 5.0):
        params = Params(patience=patience)
        myopic, far = myopic_score(params), long_term_score(params)
        gains.append(far.score.clicks / myopic.clicks)
        if patience:
            error = np.hypot(myopic.clicks_error, far.score.clicks_error)
            assert far.quality_weight > 0
            assert far.score.clicks > myopic.clicks + ERRORS * error
            assert far.score.ctr < myopic.ctr  # clicks now are what it pays with
    assert gains[0] == pytest.approx(1, abs=0.02)
    assert gains == sorted(gains)


def test_leaving_depends_on_clicks_only_with_patience() -> None:
    for patience, longer in ((0.0, False), (3.0, True)):
        bazaar = Bazaar(Params(patience=patience))
        liked = play(bazaar, Sighted(bazaar)).pages
        random = play(bazaar, uniformly_random(bazaar, seed=1)).pages
        assert random == pytest.approx(bazaar.params.pages, rel=0.1)
        assert (liked > 1.2 * random) == longer


def test_drift_turns_a_taste_by_its_angle_every_page() -> None:
    bazaar = Bazaar(Params(drift=0.2))
    rng = np.random.default_rng(0)
    start = bazaar.arrive(rng, 20_000).personal
    now, cosine = start, np.cos(0.2 * np.pi / 2)
    for page in range(1, 6):
        before, now = now, bazaar.world.drifted(now, rng)
        np.testing.assert_allclose((before * now).sum(axis=1), cosine, atol=1e-5)
        overlap = (start * now).sum(axis=1)
        error = max(overlap.std() / np.sqrt(len(overlap)), 1e-6)
        assert abs(overlap.mean() - cosine**page) < ERRORS * error


def test_drift_devalues_demographics_and_leaves_the_oracle_alone() -> None:
    scores = []
    for drift in (0.0, 0.3):
        bazaar = Bazaar(Params(drift=drift))
        scores.append((play(bazaar, informed(bazaar)).ctr, myopic_score(bazaar.params).ctr))
    (told, oracle), (told_less, same) = scores
    assert told_less < 0.85 * told
    assert same == pytest.approx(oracle, rel=0.03)


def test_individuality_hides_interest_from_who_sees_demographics_only() -> None:
    told = []
    for individuality in (0.0, 0.5, 1.0):
        bazaar = Bazaar(Params(individuality=individuality, state_dependence=1.0, drift=0.0))
        told.append(play(bazaar, informed(bazaar)).ctr)
    assert told == sorted(told, reverse=True)
    assert told[2] == pytest.approx(bazaar.params.sparsity, rel=0.5)


def test_with_nothing_hidden_demographics_are_as_good_as_sight() -> None:
    bazaar = Bazaar(Params(individuality=0.0, drift=0.0))
    assert play(bazaar, informed(bazaar)).ctr == pytest.approx(
        play(bazaar, Sighted(bazaar)).ctr, rel=0.01
    )


def test_the_click_profile_of_a_served_user_points_to_their_interest() -> None:
    bazaar = Bazaar(Params(state_dependence=1.0))
    rng = np.random.default_rng(0)
    users = bazaar.arrive(rng, 500)
    for _ in range(5):
        bazaar.step(users, Sighted(bazaar)(users), rng)
    cosine = (normalised(users.profile) * bazaar.world.interest(users.personal)).sum(axis=1)
    assert cosine.mean() > 0.7


@pytest.mark.parametrize("actions", ["continuous", "slate", "discrete"])
@pytest.mark.filterwarnings("ignore:.*render fps.*")
def test_gymnasiums_checker_is_content(actions: str) -> None:
    env = gym.make("lser/Bazaar-v0", actions=actions, items=200, render_mode="ansi")
    check_env(env.unwrapped)


def test_an_item_shown_twice_is_clicked_once_at_most() -> None:
    slates = np.array([[3, 1, 3, 3], [0, 1, 2, 3]])
    expected = [[True, True, False, False], [True] * 4]
    np.testing.assert_array_equal(first_places(slates), expected)
    bazaar = Bazaar(Params(actions="slate", sparsity=0.4, slate=4))
    rng = np.random.default_rng(0)
    users = bazaar.arrive(rng, 200)
    outcome = bazaar.step(users, np.full((200, 4), 5), rng)
    assert outcome.info["clicks"].max() == 1


def test_the_world_comes_from_its_own_seed_and_the_users_from_the_environments() -> None:
    first, again, other = (Bazaar(Params(world_seed=seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.world.taste, again.world.taste)
    assert not np.array_equal(first.world.taste, other.world.taste)
    env = gym.make_vec("lser/Bazaar-v0", num_envs=5, world_seed=1)
    one, two, same = (env.reset(seed=seed)[0] for seed in (0, 1, 0))
    assert not np.array_equal(one, two)
    np.testing.assert_array_equal(one, same)


def test_render_tells_the_user_the_page_and_the_clicks() -> None:
    env = gym.make("lser/Bazaar-v0", render_mode="ansi", sparsity=0.4)
    env.reset(seed=0)
    env.step(np.ones(env.action_space.shape, np.float32))
    words = str(env.render())
    assert "demographics" in words
    assert "10 clicked" in words
    assert words.count("item ") == 10


def test_anchors_are_the_random_and_the_best_score() -> None:
    random, oracle = Bazaar(Params()).anchors()
    assert random.score == Params().sparsity
    assert oracle.score == myopic_score(Params()).ctr > 5 * random.score


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sparsity", 0.0),
        ("state_dependence", 1.5),
        ("drift", -0.1),
        ("patience", -1.0),
        ("items", 5),
        ("features", 2),
        ("actions", "words"),
        ("demographics", ()),
        ("memory", 0.0),
    ],
)
def test_a_dial_out_of_range_is_named(name: str, value: object) -> None:
    with pytest.raises(ValueError, match="slate" if name == "items" else name):
        Params(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("actions", ["slate", "discrete"])
def test_the_oracle_shows_the_same_items_by_every_kind_of_action(actions: str) -> None:
    continuous, named = Bazaar(Params(items=200)), Bazaar(Params(items=200, actions=actions))
    users = named.arrive(np.random.default_rng(3), 50)
    shown = named.slates(Sighted(named)(users))
    expected = continuous.slates(Sighted(continuous)(users))
    np.testing.assert_array_equal(shown, expected[:, : shown.shape[1]])


def test_a_number_with_a_fraction_is_no_item() -> None:
    env = BazaarEnv(actions="discrete")
    env.reset(seed=0)
    with pytest.raises(ValueError, match="action must be integers, got dtype float64"):
        env.step(np.float64(1.0))


def test_generous_users_click_more_readily_and_random_ctr_stays():
    bazaar = Bazaar(Params(generosity=2.5))
    rng = np.random.default_rng(0)
    users = bazaar.arrive(rng, 20_000)
    policy = uniformly_random(bazaar, 1)
    clicks = bazaar.step(users, policy(users), rng).reward / 10
    by_value = [clicks[users.groups[:, 2] == value].mean() for value in range(8)]
    assert by_value[-1] > 10 * by_value[0]
    assert np.all(np.diff(by_value[2:]) > 0)
    score = play(bazaar, uniformly_random(bazaar, 2), sessions=8_192, seed=3)
    assert abs(score.ctr - 0.02) < 4 * score.ctr_error + 0.03 * 0.02


def test_without_generosity_nothing_moves():
    bazaar = Bazaar(Params())
    users = bazaar.arrive(np.random.default_rng(0), 50)
    slates = bazaar.slates(np.zeros((50, 8), np.float32))
    interest = bazaar.world.interest(users.personal)
    with_groups = bazaar.world.appeal(interest, slates, users.groups)
    assert (with_groups == bazaar.world.appeal(interest, slates)).all()
    with pytest.raises(ValueError, match="generosity must be at least 0"):
        Params(generosity=-1)

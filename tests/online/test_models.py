"""The tower and the bandit on numbers one can check."""

import numpy as np
import pytest

from lser.online.bandit import Bandit
from lser.online.covisits import Covisits, start_vectors
from lser.online.learners import memory_for
from lser.online.policies import popularity
from lser.online.settings import Settings
from lser.online.tower import Tower, _forward, direction, with_one

RNG = np.random.default_rng(0)


def batch(rows=6, width=3, k=4, dim=2):
    observation = RNG.standard_normal((rows, width)).astype(np.float32)
    vectors = RNG.standard_normal((rows, k, dim)).astype(np.float32)
    clicked = (RNG.random((rows, k)) < 0.4).astype(np.float32)
    shown = (RNG.random((rows, k)) < 0.9).astype(np.float32)
    return observation, vectors, clicked * shown, shown


def likelihood(parameters, observation, vectors, clicked, shown):
    inputs = with_one(observation).astype(np.float64)
    output = inputs @ parameters["linear"].astype(np.float64)
    if "first" in parameters:
        output = output + np.maximum(inputs @ parameters["first"], 0) @ parameters["second"]
    logit = np.einsum("bkd,bd->bk", vectors, output) + parameters["places"]
    loss = np.logaddexp(0, logit) - clicked * logit
    return (loss * shown).sum() / shown.sum()


@pytest.mark.parametrize("hidden", [0, 5])
def test_one_observation_s_direction_is_that_of_many(hidden):
    made = Tower(3, 2, places=4, hidden=hidden, seed=1)
    for value in made.parameters.values():
        value[...] = RNG.standard_normal(value.shape)
    observations = batch()[0]
    _, learned = _forward(made.parameters, with_one(observations))
    for observation, expected in zip(observations, learned, strict=True):
        np.testing.assert_allclose(direction(made.parameters, observation), expected, rtol=1e-5)


@pytest.mark.parametrize("hidden", [0, 5])
def test_the_tower_s_gradient_is_that_of_the_likelihood(hidden):
    made = Tower(3, 2, places=4, hidden=hidden, shrinkage=0.0, seed=1)
    for value in made.parameters.values():
        value[...] = RNG.standard_normal(value.shape) * 0.5
    data = batch()
    caught = {}
    made._step = caught.update
    made.learn(*data)
    for name, slope in caught.items():
        for place in [(0,) * slope.ndim, tuple(n - 1 for n in slope.shape)]:
            sides = []
            for step in (1e-3, -1e-3):
                moved = {key: value.astype(np.float64) for key, value in made.parameters.items()}
                moved[name][place] += step
                sides.append(likelihood(moved, *data))
            numeric = (sides[0] - sides[1]) / 2e-3
            assert slope[place] == pytest.approx(numeric, rel=1e-2, abs=1e-5), (name, place)


def test_the_tower_finds_who_likes_what():
    made = Tower(2, 3, places=5, rate=1e-2)
    taste = RNG.standard_normal((2, 3))
    for _ in range(600):
        seen = RNG.standard_normal((32, 2)).astype(np.float32)
        vectors = RNG.standard_normal((32, 5, 3)).astype(np.float32)
        chance = 1 / (1 + np.exp(2 - 2 * np.einsum("bkd,bd->bk", vectors, seen @ taste)))
        clicked = (RNG.random((32, 5)) < chance).astype(np.float32)
        made.learn(seen, vectors, clicked, np.ones((32, 5), np.float32))
    found = direction(made.parameters, np.eye(2, dtype=np.float32)) - direction(
        made.parameters, np.zeros((2, 2), np.float32)
    )
    cosine = (found * taste).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(taste, axis=1)
    assert cosine.min() > 0.97


def test_a_tower_survives_saving_to_the_bit():
    one, two = Tower(3, 2, places=4, hidden=3), Tower(3, 2, places=4, hidden=3, seed=9)
    for _ in range(5):
        one.learn(*batch())
    two.load(one.state())
    data = batch()
    for made in (one, two):
        made.learn(*data)
    for name, value in one.parameters.items():
        np.testing.assert_array_equal(value, two.parameters[name])


def test_the_bandit_is_ridge_regression():
    made = Bandit(2, 3, ridge=2.0)
    design, clicks = [], []
    for _ in range(30):
        seen = RNG.standard_normal(2).astype(np.float32)
        vectors = RNG.standard_normal((4, 3)).astype(np.float32)
        clicked = (RNG.random(4) < 0.5).astype(np.float32)
        made.see(seen, vectors, clicked)
        design += [np.kron(np.append(seen, 1), x) for x in vectors]
        clicks += clicked.tolist()
    x, y = np.array(design, np.float64), np.array(clicks)
    expected = np.linalg.solve(x.T @ x + 2 * np.eye(9), x.T @ y).reshape(3, 3)
    np.testing.assert_allclose(made.solve(), expected, rtol=1e-4, atol=1e-6)


def test_too_many_unknowns_are_refused():
    with pytest.raises(ValueError, match="6464 unknowns"):
        Bandit(100, 64)


def test_popularity_is_drawn_towards_the_mean():
    clicks, shown = np.array([1, 50, 0]), np.array([1, 100, 399])
    found = popularity(clicks, shown, strength=100.0)
    assert found == pytest.approx([(1 + 10.2) / 101, (50 + 10.2) / 200, 10.2 / 499], rel=1e-5)
    assert found[1] > found[0]  # one lucky click is not the best


def test_co_clicks_survive_saving_and_turn_onto_the_vectors_before():
    made, twin = Covisits(4, seed=0), Covisits(4, seed=0)
    for number in range(400):
        half = number % 2
        for _ in range(2):
            made.see(f"u{number}", 2 * RNG.integers(10, size=2) + half)
    twin.load(made.state())
    before, live = start_vectors([f"i{n}" for n in range(20)], 4), np.ones(20, bool)
    one, two = made.vectors(before, live), twin.vectors(before, live)
    np.testing.assert_array_equal(one.vectors, two.vectors)
    after = before.copy()
    after[one.rows] = one.vectors
    made._next = 0
    again = made.vectors(after, live)  # nothing new: they stay where they are
    np.testing.assert_allclose(again.vectors, one.vectors, atol=1e-3)


@pytest.mark.parametrize("arm", ["lser-steady", "lser", "uniform", "lser-ddpg"])
def test_a_full_memory_holds_pages_with_and_without_clicks_as_they_came(arm):
    settings = Settings(capacity=500)
    memory = memory_for(arm, settings, 3, 2)
    rng = np.random.default_rng(0)
    clicked = (rng.random(3_000) < 0.3).astype(np.float32)
    for click in clicked:
        observation = rng.standard_normal((1, 3)).astype(np.float32)
        action, ends = np.zeros((1, 2), np.float32), np.ones(1, np.bool_)
        memory.extend(observation, action, click[None], observation, ends, ~ends)
    slots = np.flatnonzero(memory.store.ids >= 0)
    held = memory.store.batch(slots).reward
    assert len(held) == 500
    assert held.mean() == clicked[-500:].mean()


def test_what_is_compared_has_the_newest_alike():
    memories = [memory_for(arm, Settings(), 3, 2) for arm in ("lser-steady", "uniform")]
    assert {memory.params.newest for memory in memories} == {8}

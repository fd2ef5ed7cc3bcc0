"""The click model: its likelihood's gradient and information, its steps, and what it recovers."""

import numpy as np
import pytest

from lser.agents import ClickModel
from lser.agents.bandit import page_vectors, with_one
from lser.types import Batch, Items, Profile, Transitions

LOW, HIGH = -np.ones(3), np.ones(3)
ROWS, SHOWN = 5, 4


def catalogue(profile, items=30):
    vectors = np.random.default_rng(0).normal(size=(items, 3)).astype(np.float32)
    return Items(vectors, SHOWN, profile)


def model(items=None, seed=3, **knobs):
    """A click model in the middle of its learning."""
    agent = ClickModel(4, LOW, HIGH, items=items, intercept=-1.0, trials=float(SHOWN), **knobs)
    agent.mean = agent.mean + np.random.default_rng(seed).normal(0, 0.5, agent.mean.shape)
    return agent


def shown(agent, seed=3):
    """A batch, the vectors of its pages (n, k, A), and which of them were clicked, (n, k)."""
    rng = np.random.default_rng(seed)
    o, following = rng.normal(size=(2, ROWS, 4)).astype(np.float32)
    a = rng.uniform(-1, 1, (ROWS, 3)).astype(np.float32)
    clicked = (rng.random((ROWS, SHOWN)) < 0.6).astype(np.float64)
    clicks = clicked.sum(1)
    if agent.items is None:
        vectors = np.repeat(agent.directions(a)[:, None], SHOWN, axis=1)
    else:
        vectors = page_vectors(agent.items, a).astype(np.float64)
        mean = np.einsum("nk,nka->na", clicked, vectors) / np.maximum(clicks, 1)[:, None]
        moved = o[:, :3] + 0.3 * (mean - o[:, :3])
        following[:, :3] = np.where(clicks[:, None] > 0, moved, o[:, :3])
    flags = np.zeros(ROWS, np.bool_)
    reward = clicks.astype(np.float32)
    batch = Batch(o, a, reward, following, flags, flags, np.arange(ROWS), np.ones_like(reward))
    return batch, vectors, clicked


def logits(mean, observation, vectors):
    """The model in its docstring, written out."""
    t = with_one(observation.astype(np.float64)) @ mean[:-2].reshape(5, 3)
    taste = t / np.sqrt(1 + (t**2).sum(axis=1, keepdims=True))
    return np.exp(mean[-2]) * np.einsum("nka,na->nk", vectors, taste) + mean[-1]


def differences(function, at, step=1e-6):
    """Central differences of a function's values by every component of `at`, in front."""
    steps = step * np.eye(len(at))
    return np.array([(function(at + d) - function(at - d)) / (2 * step) for d in steps])


KNOWN = [None, catalogue(Profile(0, 3, 0.3))]  # clicks as a whole, and item by item


@pytest.mark.parametrize("items", KNOWN)
def test_the_gradient_is_that_of_the_likelihood_of_every_click(items):
    agent = model(items)
    batch, vectors, clicked = shown(agent)

    def likelihood(mean):
        found = logits(mean, batch.observation, vectors)
        return (clicked * found - np.log1p(np.exp(found))).sum()

    expected = differences(likelihood, agent.mean)
    found = agent._gradient(batch, agent._judge(batch))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("items", KNOWN)
def test_the_information_is_fisher_s(items):
    agent = model(items)
    batch, vectors, _ = shown(agent)
    slopes = differences(lambda mean: logits(mean, batch.observation, vectors), agent.mean)
    chance = 1 / (1 + np.exp(-logits(agent.mean, batch.observation, vectors)))
    expected = np.einsum("ink,nk,jnk->ij", slopes, chance * (1 - chance), slopes)
    agent._count(agent._judge(batch))
    assert agent.counted == ROWS
    np.testing.assert_allclose(agent.information, expected, rtol=1e-4, atol=1e-4)


def test_at_a_change_of_user_the_page_s_clicks_count_as_a_whole():
    agent = model(KNOWN[1])
    batch, vectors, _ = shown(agent)
    ended = batch._replace(terminated=np.ones(ROWS, np.bool_))
    other = ended._replace(next_observation=np.zeros_like(batch.next_observation))
    pages = agent._judge(ended)
    assert (agent._score(ended, pages) == agent._score(other, pages)).all()
    one_click = np.zeros((ROWS, SHOWN)) + pages.missed[:, None] / SHOWN
    evenly = np.einsum("nk,nka->na", one_click, vectors)
    even = pages._replace(chance=np.full((ROWS, SHOWN), 0.5))
    np.testing.assert_allclose(agent._score(ended, even), evenly, rtol=1e-6)


def test_no_step_moves_tastes_farther_than_its_reach():
    agent = model(KNOWN[1], reach=0.01)
    batch, _, _ = shown(agent)
    features = with_one(batch.observation.astype(np.float64))
    before = features @ agent.weights
    agent.learn(batch)
    moved = features @ agent.weights - before
    assert np.sqrt((moved**2).sum(axis=1).mean()) == pytest.approx(0.01)


def test_a_known_model_is_recovered():
    """Three kinds of user click by the model: their tastes, the slope and the intercept."""
    items = catalogue(Profile(3, 6, 1.0), items=200)  # the profile is that of the last page
    rng = np.random.default_rng(0)
    tastes = np.array([[0.9, 0, 0], [0, -0.5, 0.7], [-0.6, 0.6, 0]])
    group, pages = rng.integers(3, size=4_000), 4_000
    o = np.zeros((pages, 6), np.float32)
    o[np.arange(pages), group] = 1
    a = rng.uniform(-1, 1, (pages, 3)).astype(np.float32)
    vectors = page_vectors(items, a)
    appeal = np.einsum("nka,na->nk", vectors, tastes[group])
    clicked = rng.random(appeal.shape) < 1 / (1 + np.exp(2 - 2 * appeal))
    reward = clicked.sum(axis=1).astype(np.float32)
    following = o.copy()
    following[:, 3:] = np.einsum("nk,nka->na", clicked, vectors) / np.maximum(reward, 1)[:, None]
    flags = np.zeros(pages, np.bool_)
    everything = Transitions(o, a, reward, following, flags, flags)
    agent = ClickModel(6, LOW, HIGH, items=items, prior=0.1)
    agent.observe(everything)
    for _ in range(800):
        rows = rng.integers(pages, size=128)
        agent.learn(Batch(*(part[rows] for part in everything), rows, reward[rows]))
    t = np.hstack([np.eye(3), np.zeros((3, 3)), np.ones((3, 1))]) @ agent.weights
    taste = t / np.sqrt(1 + (t**2).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(np.exp(agent.mean[-2]) * taste, 2 * tastes, atol=0.25)
    assert agent.mean[-1] == pytest.approx(-2, abs=0.25)

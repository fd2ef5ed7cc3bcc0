"""The contract of agents without networks, and that each learns what it says."""

import copy
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from agent_references import random_batch
from gymnasium.spaces import Box, Discrete

from lser.agents import ClickModel, Popular, RandomAgent, Ridge, load_agent
from lser.agents.bandit import Bandit, page_vectors
from lser.catalogue import AGENTS, SIMULATORS
from lser.types import Batch, Items, Profile, Transitions

LOW, HIGH = np.array([-1.0, 0.0, -3.0]), np.array([1.0, 2.0, -1.0])
NAMES = ("click-model", "ridge", "ridge-thompson", "ridge-pages", "constant", "popular", "random")
every_agent = pytest.mark.parametrize("name", NAMES)


PROFILE = Profile(0, 2, 0.3)


def catalogue(seed=0, items=30, features=3, profile=PROFILE):
    vectors = np.random.default_rng(seed).normal(size=(items, features)).astype(np.float32)
    return Items(vectors, 4, profile)


def made(name, *, seed=0, items=None, **knobs):
    entry = AGENTS[name]
    return entry.load()(6, LOW, HIGH, params=entry.params(**knobs), seed=seed, items=items)


def observations(rows, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, 6)).astype(np.float32)


def work(agent, rounds):
    seen = []
    for seed in rounds:
        seen.append(agent.act(observations(4, seed), explore=True))
        batch = random_batch(16, 6, 3, seed=seed)
        agent.observe(Transitions(*batch[:6]))
        agent.end_sessions(np.arange(4) == seed % 4)
        seen.append(agent.learn(batch).td_errors)
        seen.append(agent.act(observations(2, seed)))
    return seen


def assert_equal(ours, theirs):
    assert all((a == b).all() for a, b in zip(ours, theirs, strict=True))


@every_agent
@pytest.mark.parametrize("explore", [False, True])
def test_actions_stay_within_an_asymmetric_box(name, explore):
    agent = made(name, warmup=100)
    work(agent, range(3))
    rows = [agent.act(100 * observations(64, seed), explore=explore) for seed in range(5)]
    actions = np.concatenate(rows)
    assert actions.dtype == np.float32
    assert actions.shape == (320, 3)
    assert (actions >= LOW.astype(np.float32)).all()
    assert (actions <= HIGH.astype(np.float32)).all()


@every_agent
@pytest.mark.parametrize("items", [None, catalogue(), catalogue(profile=None)])
def test_a_loaded_agent_goes_on_bit_for_bit(name, items, tmp_path):
    agent = made(name, seed=1, items=items, warmup=6)
    work(agent, range(5))
    state = copy.deepcopy(agent.state_dict())
    agent.save(tmp_path / "agent")
    expected = work(agent, range(5, 80))  # past an inversion of the click model's precision
    other = made(name, seed=2, items=items, warmup=6)
    other.load_state_dict(state)
    assert_equal(work(other, range(5, 80)), expected)
    read = load_agent(tmp_path / "agent")
    assert type(read) is type(agent)
    assert read.params == agent.params
    assert_equal(work(read, range(5, 80)), expected)


@every_agent
def test_the_state_is_arrays_and_plain_numbers_that_do_not_change(name):
    agent = made(name)
    work(agent, range(3))
    found = agent.state_dict()
    kept = copy.deepcopy(found)
    plain = {key: x for key, x in found.items() if not isinstance(x, np.ndarray)}
    assert json.loads(json.dumps(plain)) == plain
    work(agent, range(3, 6))
    assert all(np.array_equal(found[key], kept[key]) for key in found if key != "rng")


@every_agent
def test_the_state_of_another_shape_is_refused(name):
    if name == "random":
        return  # it has learned nothing that could have a shape
    other = AGENTS[name].load()(9, -np.ones(2), np.ones(2), params=AGENTS[name].params())
    with pytest.raises(ValueError, match="numbers, this agent"):
        made(name).load_state_dict(other.state_dict())


@every_agent
def test_exploration_can_be_stopped_for_good(name):
    agent, rows = made(name, warmup=0), observations(3)
    work(agent, range(3))
    if name == "random":
        assert (agent.act(rows) != agent.act(rows)).any()  # in evaluations too
        return
    assert (agent.act(rows, explore=True) != agent.act(rows)).any()
    agent.stop_exploring()
    assert (agent.act(rows, explore=True) == agent.act(rows)).all()
    other = made(name, warmup=0)
    other.load_state_dict(agent.state_dict())
    assert (other.act(rows, explore=True) == other.act(rows)).all()


@every_agent
def test_it_starts_at_random_and_then_chooses(name):
    agent = made(name, warmup=8)
    rows = observations(4)
    agent.act(rows)  # evaluations are no part of it
    first = np.concatenate([agent.act(rows, explore=True) for _ in range(2)])
    agent.stop_exploring()
    assert len(np.unique(first[:, 0])) == 8
    assert agent.warm == 0


@every_agent
def test_the_batch_is_left_as_it_was_and_may_be_read_only(name):
    agent, batch = made(name), random_batch(16, 6, 3, seed=0)
    before = [np.copy(field) for field in batch]
    for field in batch:
        field.setflags(write=False)
    agent.observe(Transitions(*batch[:6]))
    agent.learn(batch)
    assert all((a == b).all() for a, b in zip(batch, before, strict=True))


@every_agent
def test_many_threads_get_their_own_users_actions(name):
    if name == "random":
        return
    agent = made(name)
    work(agent, range(3))
    rows = [observations(1 + seed % 3, seed) for seed in range(8)]
    expected = [agent.act(row) for row in rows]

    def serve(which):
        return all((agent.act(rows[which]) == expected[which]).all() for _ in range(50))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(serve, range(8)))


@every_agent
def test_wrong_shapes_and_spaces_are_refused(name):
    agent = made(name)
    with pytest.raises(ValueError, match=r"observation must have shape \(N, 6\), got \(6,\)"):
        agent.act(np.zeros(6, np.float32))
    with pytest.raises(ValueError, match=r"got \(4, 5\) and \(4, 3\)"):
        agent.learn(random_batch(4, 5, 3, seed=0))
    with pytest.raises(ValueError, match="agents act in a Box"):
        AGENTS[name].load()(6, Discrete(5))
    with pytest.raises(ValueError, match="items have 5 features, actions have 3"):
        made(name, items=catalogue(features=5))
    with pytest.raises(ValueError, match="unknown parameter 'warmpu'"):
        AGENTS[name].load()(6, LOW, HIGH, warmpu=3)


@pytest.mark.parametrize(
    ("kind", "knobs"),
    [
        (Ridge, {"ridge": 0.0}),
        (Ridge, {"noise": -1.0}),
        (Popular, {"noise": float("nan")}),
        (RandomAgent, {"warmup": -1}),
        (ClickModel, {"prior": 0.0}),
        (ClickModel, {"trials": -1.0}),
        (ClickModel, {"refresh": 0}),
        (ClickModel, {"thompson": -0.5}),
        (ClickModel, {"slope": 0.0}),
        (ClickModel, {"reach": 0.0}),
    ],
)
def test_a_bad_knob_is_named(kind, knobs):
    with pytest.raises(ValueError, match=next(iter(knobs))):
        kind(6, LOW, HIGH, **knobs)


def transitions(observation, action, reward):
    flags = np.zeros(len(reward), np.bool_)
    return Transitions(observation, action, reward, observation, flags, flags)


def test_ridge_is_the_textbook_s_solution_over_every_transition():
    rng = np.random.default_rng(0)
    agent = Ridge(4, -np.ones(2), np.ones(2), ridge=3.0)
    o = rng.normal(size=(50, 4)).astype(np.float32)
    a = rng.uniform(-1, 1, (50, 2)).astype(np.float32)
    r = rng.integers(0, 11, 50).astype(np.float32)
    for part in (slice(0, 1), slice(1, 9), slice(9, 50)):
        agent.observe(transitions(o[part], a[part], r[part]))
    agent.learn(Batch(*transitions(o, a, r), np.arange(50), np.ones(50, np.float32)))
    ways = a / np.linalg.norm(a, axis=1, keepdims=True)
    x = (np.hstack([o, np.ones((50, 1))])[:, :, None] * ways[:, None, :]).reshape(50, -1)
    expected = np.linalg.solve(x.T @ x + 3 * np.eye(10), x.T @ r).reshape(5, 2)
    np.testing.assert_allclose(agent.weights, expected, rtol=1e-6, atol=1e-9)


def test_the_page_of_an_action_is_its_highest_scores():
    items = catalogue()
    action = np.random.default_rng(1).normal(size=(7, 3)).astype(np.float32)
    best = np.argsort(-(action @ items.vectors.T), axis=1)[:, :4]
    assert (page_vectors(items, action) == items.vectors[best]).all()


def shop(users, sessions, name, items=None, seed=0):
    """A linear world of clicks: how well an agent's directions fit the tastes it cannot see."""
    rng = np.random.default_rng(seed)
    tastes = np.eye(3)[:, :2] * 3 - 1
    agent = AGENTS[name].load()(
        3, -np.ones(2), np.ones(2), params=AGENTS[name].params(), items=items, seed=seed
    )
    for _ in range(sessions):
        group = rng.integers(3, size=users)
        o = np.eye(3, dtype=np.float32)[group]
        a = agent.act(o, explore=True)
        way = a / np.maximum(np.linalg.norm(a, axis=1, keepdims=True), 1e-9)
        chance = 1 / (1 + np.exp(2 - 2 * np.einsum("nd,nd->n", way, tastes[group])))
        block = transitions(o, a, rng.binomial(10, chance).astype(np.float32))
        agent.observe(block)
        ids = np.arange(users)
        agent.learn(Batch(*block, ids, np.ones(users, np.float32)))
    shown = agent.act(np.eye(3, dtype=np.float32))
    want = tastes / np.linalg.norm(tastes, axis=1, keepdims=True)
    got = shown / np.linalg.norm(shown, axis=1, keepdims=True)
    return np.einsum("nd,nd->n", got, want)


@pytest.mark.parametrize("name", ["click-model", "ridge", "ridge-thompson"])
def test_what_each_user_likes_is_learned(name):
    assert shop(16, 400, name).min() > 0.9


def test_a_constant_shows_everybody_the_same():
    agent = made("constant")
    work(agent, range(5))
    assert len(np.unique(agent.act(observations(5)), axis=0)) == 1


def test_bazaar_tells_its_catalogue_and_where_the_profile_is():
    env = SIMULATORS["bazaar"].load()(4)
    observation, _ = env.reset(seed=0)
    rng = np.random.default_rng(0)
    start, stop, memory = env.items.profile
    told = 0
    for _ in range(20):
        action = rng.uniform(-1, 1, env.action_space.shape).astype(np.float32)
        following, reward, done, _, info = env.step(action)
        vectors = page_vectors(env.items, action)
        assert (vectors == env.items.vectors[info["slate"]]).all()
        step = (following - (1 - memory) * observation)[:, start:stop] / memory
        clicked = np.einsum("nk,nka->na", info["clicked"], vectors)[:, : stop - start]
        known = ~done & (reward > 0)
        told += known.sum()
        assert np.allclose((reward[:, None] * step)[known], clicked[known], atol=1e-4)
        observation = following
    assert told > 0
    assert SIMULATORS["bazaar"].load()(1, actions="slate").items is None


def test_a_box_gives_the_same_agent_as_its_bounds():
    box = Box(LOW.astype(np.float32), HIGH.astype(np.float32))
    assert (Ridge(6, box).act(observations(5)) == Ridge(6, LOW, HIGH).act(observations(5))).all()


def test_an_agent_that_does_not_say_how_it_chooses_cannot_be_made():
    class Undecided(Bandit):
        pass

    with pytest.raises(TypeError, match=r"abstract class Undecided .*choose"):
        Undecided(4, [-1.0], [1.0])

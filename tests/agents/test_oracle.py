"""The oracle: what it sees, what it shows, and that it scores what is known as the best."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

import lser
from lser.agents.oracle import Oracle
from lser.experiments.build import anchors
from lser.experiments.presets import learnable, preset
from lser.simulators.bazaar.simulator import BazaarVectorEnv
from lser.simulators.recogym.simulator import RecoGymVectorEnv
from lser.simulators.recsim.interest_evolution.simulator import InterestEvolutionVectorEnv
from lser.training import SightedEnv

KNOWING = {
    "bazaar": (preset, 400),
    "recogym": (preset, 1_500),
    "long-term-satisfaction": (preset, 400),
    "long-term-satisfaction, informative": (learnable, 1_000),
}


@pytest.mark.parametrize("name", KNOWING)
def test_it_scores_what_is_known_as_the_best(name):
    settings, sessions = KNOWING[name]
    run = replace(settings(name.partition(",")[0], "uniform", "oracle"), seed=3)
    _, best = anchors(run)
    found = lser.build(run).evaluate(sessions)
    assert found.metric == pytest.approx(best.score, abs=4 * found.metric_se + 0.01 * best.score)


def test_its_observations_end_in_the_action_that_suits_each_user_best():
    env = SightedEnv(BazaarVectorEnv(32))
    observation, _ = env.reset(seed=4)
    wide = env.single_action_space.shape[0]
    assert observation in env.observation_space
    assert np.array_equal(observation[:, -wide:], env.unwrapped.best_action().astype(np.float32))
    agent = Oracle(observation.shape[1], env.single_action_space)
    shown = agent.act(observation, explore=True)
    assert shown == pytest.approx(observation[:, -wide:], abs=1e-6)
    best = env.step(shown)[4]["clicks"].sum()
    other = SightedEnv(BazaarVectorEnv(32))
    other.reset(seed=4)
    assert best > 2 * other.step(-shown)[4]["clicks"].sum()


def test_the_last_observation_of_a_session_ends_in_nobodys_action():
    env = SightedEnv(BazaarVectorEnv(64, patience=1.0))
    observation, _ = env.reset(seed=5)
    wide = env.single_action_space.shape[0]
    for _ in range(20):
        observation, _, done, _, info = env.step(observation[:, -wide:])
        assert observation in env.observation_space
        if done.any():
            last = info["final_obs"]
            assert last.shape == observation.shape
            assert not last[:, -wide:].any()  # the middle of [-1, 1]
            return
    raise AssertionError("no session ended")


def test_it_goes_on_where_its_environment_stood():
    first, second = (SightedEnv(BazaarVectorEnv(8)) for _ in range(2))
    observation, _ = first.reset(seed=6)
    second.reset(seed=7)
    second.load_state_dict(first.state_dict())
    action = observation[:, -first.single_action_space.shape[0] :]
    for one, other in zip(first.step(action)[:4], second.step(action)[:4], strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("actions", ["continuous", "embedding", "discrete"])
def test_recogyms_oracle_shows_what_is_clicked_most(actions):
    env = RecoGymVectorEnv(200, actions=actions)
    env.reset(seed=1)
    chance = env.simulator.click_probabilities(env.users)
    found = chance[np.arange(200), env.simulator.choose(env.best_action())]
    if actions == "embedding":  # not every product can be pointed at
        points = env.simulator._points[1]
        assert np.array_equal(found, chance[:, np.unique(points)].max(axis=1))
    else:
        assert np.array_equal(found, chance.max(axis=1))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: InterestEvolutionVectorEnv(2), "InterestEvolution"),
        (lambda: gym.make_vec("CartPole-v1", num_envs=2), "best_action"),
    ],
)
def test_where_nobody_knows_an_oracle_it_says_so(make, said):
    with pytest.raises(ValueError, match=f"no oracle is known for.*{said}"):
        SightedEnv(make()).reset(seed=1)


def test_discrete_actions_are_not_for_it():
    with pytest.raises(ValueError, match="acts in a Box"):
        SightedEnv(RecoGymVectorEnv(2, actions="discrete"))


def test_it_comes_back_from_its_file(tmp_path):
    made = lser.build(preset("bazaar", "uniform", "oracle"))
    made.agent.save(tmp_path / "oracle.lser")
    observation, _ = made.env.reset(seed=1)
    again = lser.load_agent(tmp_path / "oracle.lser")
    assert np.array_equal(again.act(observation), made.agent.act(observation))


def test_it_does_not_share_the_end_of_the_observation_with_a_goal():
    with pytest.raises(ValueError, match="oracle and her both need.*uniform"):
        lser.build(preset("bazaar", "her", "oracle"))


@pytest.mark.parametrize("best", [None, np.zeros(3), np.zeros((4, 1)), np.full((4, 9), np.nan)])
def test_a_best_action_that_is_none_is_refused(monkeypatch, best):
    env = SightedEnv(BazaarVectorEnv(4))
    monkeypatch.setattr(env.unwrapped, "best_action", lambda: best)
    with pytest.raises(ValueError, match=r"best_action\(\) must be finite numbers of shape \(4, "):
        env.reset(seed=1)

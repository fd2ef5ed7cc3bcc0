"""Goals in the observation: scaled as the memory expects, kept for a session, drawn anew after."""

import numpy as np
import pytest

from lser.replay import HindsightReplay
from lser.simulators.bazaar.simulator import BazaarVectorEnv
from lser.training import GoalEnv

GOALS = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0)


def played(env, steps):
    observation, _ = env.reset(seed=3)
    yield observation, np.zeros(env.num_envs, np.bool_), {}
    for _ in range(steps):
        action = np.zeros(env.action_space.shape, np.float32)
        observation, _, terminated, truncated, info = env.step(action)
        yield observation, terminated | truncated, info


def test_a_goal_lasts_a_session_and_is_drawn_anew_for_the_next():
    env = GoalEnv(BazaarVectorEnv(16), GOALS)
    goal = None
    changed = 0
    for observation, done, info in played(env, 60):
        assert observation in env.observation_space
        if goal is not None:
            assert (observation[~done, -1] == goal[~done]).all()
            if done.any():
                assert (info["final_obs"][done, -1] == goal[done]).all()
            changed += np.count_nonzero(observation[done, -1] != goal[done])
        goal = observation[:, -1].copy()
    assert changed > 10


def test_the_memory_accepts_every_goal_that_is_shown():
    env = GoalEnv(BazaarVectorEnv(64), GOALS)
    observation, _ = env.reset(seed=0)
    assert len(np.unique(observation[:, -1])) == len(GOALS)
    memory = HindsightReplay(100, observation.shape[1], 2, goals=GOALS)
    flags = np.zeros(64, np.bool_)
    memory.extend(observation, np.zeros((64, 2)), np.zeros(64), observation, flags, flags)
    assert len(memory) == 64


def test_evaluation_aims_at_the_highest_goal():
    env = GoalEnv(BazaarVectorEnv(8), GOALS, highest=True)
    for observation, _, _ in played(env, 10):
        assert (observation[:, -1] == 1).all()


def test_a_saved_environment_continues_exactly():
    first, second = (GoalEnv(BazaarVectorEnv(4), GOALS) for _ in range(2))
    for _ in played(first, 5):
        pass
    second.reset(seed=9)
    second.load_state_dict(first.state_dict())
    action = np.zeros(first.action_space.shape, np.float32)
    for _ in range(30):
        assert np.array_equal(first.step(action)[0], second.step(action)[0])


def test_goals_without_a_positive_one_are_refused():
    with pytest.raises(ValueError, match="goals"):
        GoalEnv(BazaarVectorEnv(2), (0.0,))

"""A single environment, and the usual mistakes."""

from pathlib import Path

import gymnasium as gym
import pytest

import lser

SOURCE = Path(lser.__file__).parent


def parts(env):
    dim, actions = env.observation_space.shape[0], env.action_space
    agent = lser.DDPG(dim, actions, hidden=(8,), seed=0)
    return agent, lser.UniformReplay(500, dim, actions.shape[0], seed=0)


def test_a_single_environment_is_a_vector_of_one():
    env = gym.make("lser/Bazaar-v0")
    agent, replay = parts(env)
    for step in lser.train(env, agent, replay, batch_size=4, learning_starts=8):
        assert len(step.reward) <= 1  # none while the ended session waits for the next
        if step.sessions >= 3:
            break
    assert len(replay) == step.steps
    result = lser.evaluate(agent, env, sessions=4)
    assert result.sessions == 4
    assert 0 <= result.metric <= 1  # the click rate, not the reward
    env.reset(seed=0)  # still the caller's, and open


def test_evaluating_twice_without_a_seed_is_the_same():
    env = gym.make("lser/Bazaar-v0")
    agent, _ = parts(env)
    assert lser.evaluate(agent, env, sessions=3) == lser.evaluate(agent, env, sessions=3)


@pytest.mark.parametrize(
    ("env", "message"),
    [("lser/Bazaar-v0", "gymnasium.make_vec\\('lser/Bazaar-v0'"), (3, "must be a Gymnasium env")],
)
def test_what_is_no_environment_is_refused_with_what_to_do(env, message):
    agent, replay = parts(gym.make("lser/Bazaar-v0"))
    with pytest.raises(TypeError, match=message):
        lser.train(env, agent, replay)


def test_a_discrete_space_is_refused_with_what_to_do():
    with pytest.raises(ValueError, match="actions='continuous'"):
        lser.DDPG(3, gym.spaces.Discrete(5))


def test_no_class_of_gymnasium_is_subscripted_that_1_1_does_not_let():
    wrong = [
        str(path)
        for path in SOURCE.rglob("*.py")
        if any(
            line.lstrip().startswith("class ") and "VectorWrapper[" in line
            for line in path.read_text().splitlines()
        )
    ]
    assert wrong == []

"""What every simulator promises to Gymnasium and to the training loop."""

import copy
import dataclasses
import math
import pickle
import re
import subprocess
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from released import arguments

import lser
from lser.simulators import SIMULATORS, simulator_type

assert lser.__version__  # importing lser registers the simulators

USERS = 6
MANY = 400  # steps in which sessions of every simulator end


pytestmark = pytest.mark.parametrize("name", SIMULATORS)


def make(name, **overrides):
    return gym.make(name, **arguments(name), **overrides).unwrapped


def make_vec(name, num_envs=USERS, **overrides):
    return gym.make_vec(name, num_envs=num_envs, **arguments(name), **overrides)


def actions(env, steps, seed=0):
    env.action_space.seed(seed)
    return [env.action_space.sample() for _ in range(steps)]


def rollout(env, steps, seed=0):
    """Everything `steps` vector steps return, as a flat list of arrays."""
    results = []
    for action in actions(env, steps, seed):
        observation, reward, terminated, truncated, info = env.step(action)
        results += [observation, reward, terminated, truncated]
        results += [info[key] for key in sorted(info) if isinstance(info[key], np.ndarray)]
    return results


def assert_same(first, second):
    assert len(first) == len(second)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def snapshot(env):
    """The users and the rng of an environment, as bytes."""
    return pickle.dumps((vars(env.users), env.np_random.bit_generator.state))


def test_gymnasiums_checker_finds_nothing(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(name))


def test_make_and_make_vec_find_the_native_environments(name):
    prefix = SIMULATORS[name].prefix
    assert type(make(name)).__name__ == f"{prefix}Env"
    vector = make_vec(name)
    assert type(vector).__name__ == f"{prefix}VectorEnv"
    assert vector.num_envs == USERS
    assert vector.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP


def test_the_same_seed_gives_the_same_sessions(name):
    first, second = make_vec(name), make_vec(name)
    np.testing.assert_array_equal(first.reset(seed=3)[0], second.reset(seed=3)[0])
    assert_same(rollout(first, 50), rollout(second, 50))


def test_seeding_again_starts_again(name):
    env = make_vec(name)
    before = [env.reset(seed=3)[0], *rollout(env, 30)]
    assert_same(before, [env.reset(seed=3)[0], *rollout(env, 30)])


def test_another_seed_gives_other_sessions(name):
    env = make_vec(name)
    before = [env.reset(seed=3)[0], *rollout(env, 30)]
    after = [env.reset(seed=4)[0], *rollout(env, 30)]
    pairs = zip(before, after, strict=False)
    assert not all(np.array_equal(a, b) for a, b in pairs)


def test_two_environments_do_not_touch_each_other(name):
    alone, beside, other = make_vec(name), make_vec(name), make_vec(name)
    alone.reset(seed=3)
    expected = rollout(alone, 20)
    beside.reset(seed=3)
    other.reset(seed=99)
    found = []
    for action in actions(beside, 20):
        observation, reward, terminated, truncated, info = beside.step(action)
        found += [observation, reward, terminated, truncated]
        found += [info[key] for key in sorted(info) if isinstance(info[key], np.ndarray)]
        other.step(action)
    assert_same(expected, found)


def test_a_vector_of_one_behaves_as_the_single_environment(name):
    single, vector = make(name), make_vec(name, 1)
    np.testing.assert_array_equal(single.reset(seed=5)[0], vector.reset(seed=5)[0][0])
    for action in actions(single, MANY):
        one = single.step(action)
        many = vector.step(np.asarray(action)[None])
        last = many[4]["final_obs"][0] if many[2][0] else many[0][0]
        np.testing.assert_array_equal(one[0], last)
        assert (one[1], one[2], one[3]) == (many[1][0], many[2][0], many[3][0])
        for key, value in one[4].items():
            np.testing.assert_array_equal(value, many[4][key][0])
        if one[2]:
            np.testing.assert_array_equal(single.reset()[0], many[0][0])


def test_ended_sessions_are_followed_by_new_users_and_keep_their_last_observation(name):
    env = make_vec(name)
    env.reset(seed=0)
    ended = 0
    for action in actions(env, MANY):
        observation, _, terminated, truncated, info = env.step(action)
        assert not truncated.any()
        if not terminated.any():
            assert "final_obs" not in info
            continue
        ended += terminated.sum()
        np.testing.assert_array_equal(info["_final_obs"], terminated)
        assert info["final_obs"].shape == observation.shape
        staying = ~terminated
        np.testing.assert_array_equal(info["final_obs"][staying], observation[staying])
        assert not np.array_equal(info["final_obs"][terminated], observation[terminated])
    assert ended > 0


def test_observations_are_float32_inside_the_space_and_new_arrays(name):
    env = make_vec(name)
    observation, _ = env.reset(seed=0)
    for action in actions(env, 100):
        before, kept = observation, observation.copy()
        observation, reward, terminated, truncated, info = env.step(action)
        np.testing.assert_array_equal(before, kept)
        assert observation.dtype == reward.dtype == np.float32
        assert terminated.dtype == truncated.dtype == np.bool_
        assert env.observation_space.contains(observation)
        if "final_obs" in info:
            assert env.observation_space.contains(info["final_obs"])


def test_info_holds_numbers_and_what_the_metric_needs(name):
    env, vector = make(name), make_vec(name)
    env.reset(seed=0)
    info = env.step(actions(env, 1)[0])[4]
    assert info
    assert all(np.asarray(value).dtype.kind in "iufb" for value in info.values())
    vector.reset(seed=0)
    infos = vector.step(actions(vector, 1)[0])[4]
    assert {vector.metric.numerator, vector.metric.denominator} <= set(infos)
    assert all(len(infos[key]) == USERS for key in info)


def test_anchors_name_a_policy_and_a_source(name):
    low, high = make(name).simulator.anchors()
    assert low.policy
    assert high.source
    assert math.isnan(low.score) or low.score < high.score


def test_rendering_says_in_words_what_happened(name):
    env = make(name, render_mode="ansi")
    env.reset(seed=0)
    texts = [env.render()]
    env.step(actions(env, 1)[0])
    texts.append(env.render())
    assert all(len(re.findall(r"[a-z]{3,}", text.lower())) >= 3 for text in texts)
    assert texts[0] != texts[1]
    assert make(name).render() is None


def test_rendering_a_batch_describes_every_user(name):
    env = make_vec(name, render_mode="ansi")
    env.reset(seed=0)
    for action in actions(env, 30):
        env.step(action)
        assert len(env.render()) == USERS
    assert all(env.render())


def test_rendering_before_reset_is_an_error(name):
    with pytest.raises(ResetNeeded, match="reset"):
        make(name, render_mode="ansi").render()


def test_stepping_before_reset_is_an_error(name):
    for env in (make(name), make_vec(name)):
        with pytest.raises(ResetNeeded, match="reset"):
            env.step(env.action_space.sample())


def test_stepping_after_the_end_of_a_session_is_an_error(name):
    env = make(name)
    env.reset(seed=0)
    action = env.action_space.sample()
    while not env.step(action)[2]:
        pass
    with pytest.raises(ResetNeeded, match="end of a session"):
        env.step(action)
    env.reset()
    env.step(action)


def bad_actions(env):
    good = np.asarray(env.action_space.sample())
    yield good[..., None], "shape"
    yield np.asarray("no"), "shape"
    yield np.full(good.shape, "no"), "numbers"
    if good.dtype.kind == "f":
        space = env.action_space
        for value, word in ((np.nan, "nan"), (np.inf, "inf"), (2 * space.high.max() + 1, "within")):
            bad = good.copy()
            bad.flat[0] = value
            yield bad, word


@pytest.mark.parametrize("batch", [False, True])
def test_a_bad_action_is_an_error_and_changes_nothing(name, batch):
    env = make_vec(name) if batch else make(name)
    env.reset(seed=0)
    before = snapshot(env)
    for action, word in bad_actions(env):
        with pytest.raises(ValueError, match=f"(?i)action must.*{word}"):
            env.step(action)
    assert snapshot(env) == before


def test_an_unknown_parameter_is_an_error_with_a_hint(name):
    known = list(make(name).params.__dataclass_fields__)
    misspelt = known[-1] + "x"
    for maker in (make, make_vec):
        with pytest.raises(ValueError, match=f"unknown parameter '{misspelt}'.*{known[-1]}"):
            maker(name, **{misspelt: 1})


def test_params_of_another_kind_are_an_error(name):
    with pytest.raises(ValueError, match="params must be a"):
        make(name, params=object())


@pytest.mark.parametrize("num_envs", [0, -3])
def test_a_batch_needs_a_user(name, num_envs):
    with pytest.raises(ValueError, match=f"num_envs must be at least 1, got {num_envs}"):
        make_vec(name, num_envs)


def test_a_saved_environment_continues_exactly(name):
    env = make_vec(name)
    env.reset(seed=1)
    rollout(env, 20)
    state = copy.deepcopy(env.state_dict())
    expected = rollout(env, 60, seed=7)
    other = make_vec(name)
    other.load_state_dict(pickle.loads(pickle.dumps(state)))
    assert_same(expected, rollout(other, 60, seed=7))


def test_a_state_of_another_size_is_an_error_and_changes_nothing(name):
    env, smaller = make_vec(name), make_vec(name, USERS - 1)
    env.reset(seed=1)
    smaller.reset(seed=1)
    before = snapshot(env)
    with pytest.raises(ValueError, match=r"state's \w+ has shape"):
        env.load_state_dict(smaller.state_dict())
    assert snapshot(env) == before


def test_saving_before_reset_is_an_error(name):
    with pytest.raises(ResetNeeded, match="reset"):
        make_vec(name).state_dict()


def test_the_name_of_the_command_line_finds_the_dynamics(name):
    entry = SIMULATORS[name]
    kind = simulator_type(entry.name)
    assert kind is type(make_vec(name).simulator)
    assert kind.__name__ == entry.prefix
    assert kind.params_type.__module__ == f"lser.simulators.{entry.package}.params"


def test_what_studies_need_to_know_fits_random_sessions(name):
    """Pages per session about as stated, the lowest goal within reach, longer studies at scale."""
    env = make_vec(name, num_envs=100)
    kind = type(env.simulator)
    if getattr(env.params, "generated", False):
        pytest.skip("generated networks mean nothing: the released ones were not found")
    env.reset(seed=5)
    rewards, ended = [], 0
    for action in actions(env, int(20 * kind.session_length), seed=6):
        _, reward, terminated, _, _ = env.step(action)
        rewards.append(reward)
        ended += terminated.sum()
    pages = len(rewards) * 100 / ended
    assert pages == pytest.approx(kind.session_length, rel=0.25)
    assert list(kind.goals) == sorted(set(kind.goals))
    assert 0 < kind.goals[0] <= np.max(rewards)
    assert 0 < kind.lengths.quick < kind.lengths.medium <= kind.lengths.paper
    assert kind.capacity >= 10_000
    assert 0 < kind.medium_updates <= 1


def test_the_parameters_are_imported_without_numba_or_torch(name):
    code = (
        f"import sys; from lser.simulators.{SIMULATORS[name].package} import Params; Params(); "
        "sys.exit(bool({'numba', 'torch', 'pooch'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_batch_takes_one_seed(name):
    with pytest.raises(ValueError, match=r"one number for the whole batch, got \[1, 2\]"):
        make_vec(name).reset(seed=[1, 2])


def test_without_a_render_mode_there_is_nothing_to_see(name):
    for env in (make(name), make_vec(name)):
        env.reset(seed=0)
        assert env.render() is None


WRONG = {
    bool: (None, "x", 2),
    int: (1.5, True, "x", None, math.nan, 2**70),
    float: (math.nan, math.inf, -math.inf, 1e300, "x", None, True),
    str: ("nope", None, 3, ["slate"]),
    tuple: ((), None, "x", (math.nan, 2)),
}


def test_a_parameter_of_another_kind_is_refused_by_name_and_value(name):
    params, tried = type(make_vec(name, 1).params), 0
    for field in dataclasses.fields(params):
        default = getattr(params(), field.name)
        kind = float if field.type is float else type(default)
        for value in WRONG.get(kind, ()):
            if kind is not tuple and value == default:
                continue
            with pytest.raises(ValueError, match=field.name) as refused:
                params(**{field.name: value})
            tried += repr(value)[:6] in str(refused.value)
    assert tried > 10


EXTREMES = (0.0, -1.0, 1e-300, 1.0, 2.0, 1e9, -1e9)


@pytest.mark.filterwarnings("ignore:overflow")  # of exp on the way to a chance of 0, which is right
def test_what_an_extreme_parameter_is_not_refused_for_it_can_do(name):
    """Every number that is taken runs, finite and within the spaces."""
    params, ran = type(make_vec(name, 1).params), 0
    for field in dataclasses.fields(params):
        if field.type is not float:
            continue
        for value in EXTREMES:
            try:
                params(**{field.name: value})
            except ValueError:
                continue
            small = {"items": 60} if "Bazaar" in name else {}
            env = make_vec(name, 2, **small, **{field.name: value})
            observation, _ = env.reset(seed=0)
            for action in actions(env, 5):
                assert observation in env.observation_space, (field.name, value)
                observation, reward, *_ = env.step(action)
                assert np.isfinite(reward).all(), (field.name, value)
            ran += 1
    assert ran > 0


def test_actions_of_half_precision_are_taken(name):
    env = make_vec(name)
    if not isinstance(env.action_space, gym.spaces.Box):
        pytest.skip("its actions are whole numbers")
    env.reset(seed=0)
    (action,) = actions(env, 1)
    observation, *_ = env.step((action * 0.5).astype(np.float16))
    assert observation in env.observation_space


def test_a_mask_of_whom_to_reset_is_refused_and_resets_nobody(name):
    env = make_vec(name)
    env.reset(seed=0)
    before = snapshot(env)
    with pytest.raises(ValueError, match="reset_mask"):
        env.reset(options={"reset_mask": np.ones(USERS, bool)})
    assert snapshot(env) == before

"""Our memories inside RLlib, with the real library."""

import copy
import importlib
import os
import signal

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
ray = pytest.importorskip("ray", reason="the extra rllib is not installed")
pytest.importorskip("ray.rllib", reason="the extra rllib is not installed")
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig  # noqa: E402
from ray.rllib.env.single_agent_episode import SingleAgentEpisode  # noqa: E402
from ray.rllib.utils.replay_buffers.utils import (  # noqa: E402
    update_priorities_in_episode_replay_buffer,
)

import lser  # noqa: E402
from lser.adapters import rllib  # noqa: E402
from lser.adapters.rllib import (  # noqa: E402
    LserDQNConfig,
    LserSACConfig,
    LserTQCConfig,
)
from lser.catalogue import MEMORIES  # noqa: E402

torch.set_num_threads(1)
# RLlib's own habits; everything else is an error
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

BOX = spaces.Box(-10, 10, (3,), np.float32)
ACTION = spaces.Box(-1, 1, (2,), np.float32)
CONFIGS = (LserSACConfig, LserTQCConfig, LserDQNConfig)


@pytest.fixture(autouse=True)
def time_limit():
    """Nothing here may hang: a hard limit for every test."""

    def stop(*_):
        raise TimeoutError("a test of RLlib took longer than 240 s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(240)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def buffer_of(memory="lser", observation_space=BOX, action_space=ACTION, **options):
    options = {"capacity": 1000, "seed": 0, **options}
    return LserSACConfig().replay(memory, **options).make_buffer(observation_space, action_space)


def episode(steps, seed, ending=(False, False), name=None, actions=ACTION, base=0):
    """An episode, or a fragment, whose observations are random and whose rewards tell its steps."""
    rng = np.random.default_rng(seed)
    actions.seed(seed)
    return SingleAgentEpisode(
        id_=name or f"episode {seed}",
        observations=list(rng.normal(size=(steps + 1, 3)).astype(np.float32)),
        actions=[actions.sample() for _ in range(steps)],
        rewards=[float(base + t) for t in range(steps)],
        terminated=ending[0],
        truncated=ending[1],
        len_lookback_buffer=0,
    )


def steps_of(episodes):
    """The transitions of episodes: what RLlib's learner would see of them."""
    found = []
    for e in episodes:
        seen = [np.asarray(o) for o in e.get_observations(slice(0, len(e) + 1))]
        rows = zip(seen, e.get_actions(), e.get_rewards(), seen[1:], strict=False)
        for t, (before, action, reward, after) in enumerate(rows):
            last = t == len(e) - 1
            ends = (last and e.is_terminated, last and e.is_truncated)
            found.append(
                (
                    np.asarray(before, np.float32).tobytes(),
                    np.asarray(action).tobytes(),
                    float(reward),
                    np.asarray(after, np.float32).tobytes(),
                    *ends,
                )
            )
    return found


@pytest.mark.parametrize("actions", [ACTION, spaces.Discrete(5), spaces.Discrete(3, start=-1)])
def test_transitions_come_out_as_they_went_in(actions):
    buffer = buffer_of("uniform", action_space=actions)
    ends = [(False, False), (True, False), (False, True)]
    given = [episode(4, k, ends[k % 3], actions=actions) for k in range(12)]
    buffer.add(copy.deepcopy(given[:7]))
    buffer.add([e.to_numpy() for e in copy.deepcopy(given[7:])])
    drawn = buffer.sample(num_items=600, n_step=1)
    assert set(steps_of(drawn)) == set(steps_of(given))
    assert all(len(e) == 1 for e in drawn)
    assert drawn[0].get_actions(0).dtype == actions.dtype
    assert len(buffer) == buffer.get_num_timesteps() == buffer.get_added_timesteps() == 48
    assert buffer.get_sampled_timesteps() == 600


def test_observations_of_many_spaces_come_back():
    for space, values in (
        (spaces.Discrete(4), [0, 3, 1]),
        (
            spaces.Box(0, 255, (2, 2), np.uint8),
            list(np.arange(12, dtype=np.uint8).reshape(3, 2, 2)),
        ),
        (
            spaces.Dict({"a": spaces.Box(-1, 1, (2,)), "b": spaces.Discrete(3)}),
            [{"a": np.full(2, k / 4, np.float32), "b": k} for k in range(3)],
        ),
    ):
        buffer = buffer_of("uniform", space)
        action = np.zeros(2, np.float32)
        buffer.add(
            [
                SingleAgentEpisode(
                    observations=values,
                    actions=[action] * 2,
                    rewards=[0.0, 1.0],
                    len_lookback_buffer=0,
                )
            ]
        )
        for e in buffer.sample(num_items=8, n_step=1):
            at = int(e.get_rewards(0))
            for k, found in enumerate(e.get_observations(slice(0, 2))):
                wanted = values[at + k]
                if isinstance(wanted, dict):
                    assert all(np.array_equal(found[key], wanted[key]) for key in wanted)
                else:
                    assert np.array_equal(found, wanted)
                    assert np.shape(found) == np.shape(wanted)


@pytest.mark.parametrize("memory", [*MEMORIES, "toy_memory:NewestReplay"])
def test_every_memory_gives_back_what_it_was_given(memory):
    buffer = buffer_of(memory, capacity=40)
    given = []
    for k in range(15):
        e = episode(4, k, (k % 2 == 0, False))
        for t, o in enumerate(e.observations.data):
            o[-1] = (t % 2 + 1) / 2  # a goal, for memories that have one
        given.append(e)
        buffer.add([e])
        drawn = buffer.sample(num_items=8, n_step=1)
        buffer.update_priorities(np.ones(8), "default_policy")
    known = {step[1] for step in steps_of(given)}
    assert {step[1] for step in steps_of(drawn)} <= known
    assert len(buffer) <= 40


def test_a_memory_can_be_a_class_an_instance_and_have_params():
    made = lser.LocalityReplay(50, 3, 2, bits=3, seed=4)
    for memory, options in (
        (lser.LocalityReplay, {"capacity": 50, "bits": 3, "seed": 4}),
        (made, {}),
    ):
        buffer = LserSACConfig().replay(memory, **options).make_buffer(BOX, ACTION)
        assert buffer.memory is not made
        assert (buffer.memory.capacity, buffer.memory.params.bits) == (50, 3)
        buffer.add([episode(10, 0)])
        assert len(made) == 0
    assert buffer_of("reward-top").memory.params.codes == "constant"
    with pytest.raises(ValueError, match="yet to be made"):
        LserSACConfig().replay(made, bits=4).recipe()
    with pytest.raises(ValueError, match="memory must be"):
        LserSACConfig().replay(3).recipe()
    with pytest.raises(ValueError, match="bits"):
        LserSACConfig().replay("lser", bits=99).recipe()


def test_draws_are_those_of_the_memory_itself():
    buffer, memory = buffer_of(bits=3), lser.LocalityReplay(1000, 3, 2, bits=3, seed=0)
    for k in range(20):
        e = episode(5, k)
        buffer.add([e])
        seen = np.stack(e.get_observations(slice(0, 6)))
        none = np.zeros(5, bool)
        memory.extend(seen[:-1], np.stack(e.get_actions()), e.get_rewards(), seen[1:], none, none)
        batch = memory.sample(8, seen[-1])  # the newest observation, which is not stored yet
        drawn = buffer.sample(num_items=8, n_step=1)
        np.testing.assert_array_equal([d.get_observations(0) for d in drawn], batch.observation)


def test_the_query_is_the_newest_observation_of_a_running_episode():
    buffer = buffer_of()
    asked = []
    draw = buffer.memory.sample
    buffer.memory.sample = lambda size, query: asked.append(query) or draw(size, query)
    over, first, second = episode(3, 1, (True, False)), episode(3, 2), episode(3, 3)
    buffer.add([over, first, second])
    for _ in range(3):
        buffer.sample(num_items=2, n_step=1)
    wanted = [e.get_observations(-1) for e in (first, second, first)]
    np.testing.assert_array_equal(asked, wanted)
    buffer.add([over])  # nobody else is there
    buffer.sample(num_items=2, n_step=1)
    np.testing.assert_array_equal(asked[-1], over.get_observations(-1))


def test_fragments_of_an_episode_are_one_session():
    """By return: what comes before a reward is ordered above what does not."""
    options = {"order": "return", "codes": "constant", "discount": 1.0, "greedy": 1.0}
    whole, parts = buffer_of(**options), buffer_of(**options)
    one = episode(6, 0, (True, False), name="long", base=1)
    other = episode(6, 1, name="other")
    whole.add([one, other])
    front = SingleAgentEpisode(
        id_="long",
        observations=one.observations.data[:4],
        actions=one.actions.data[:3],
        rewards=one.rewards.data[:3],
        len_lookback_buffer=0,
    )
    back = SingleAgentEpisode(
        id_="long",
        observations=one.observations.data[3:],
        actions=one.actions.data[3:],
        rewards=one.rewards.data[3:],
        len_lookback_buffer=0,
        terminated=True,
    )
    parts.add([front, other])
    parts.add([back])
    best = [[d.get_rewards(0) for d in b.sample(num_items=6, n_step=1)] for b in (whole, parts)]
    assert best[0] == best[1] == [1, 2, 3, 4, 5, 6]  # the returns are 21, 20, 18, 15, 11, 6


def test_td_errors_and_importance_weights_reach_those_who_use_them():
    buffer = buffer_of("per", alpha=1.0, beta=1.0)
    buffer.add([episode(30, 0)])
    drawn = buffer.sample(num_items=16, n_step=1)
    ids = buffer._last.copy()
    errors = np.where(
        np.array([d.get_rewards(0) for d in drawn]) == drawn[0].get_rewards(0), 9, 1e-6
    )
    update_priorities_in_episode_replay_buffer(
        replay_buffer=buffer, td_errors={"default_policy": {"td_error": errors}}
    )
    weights, again = [], []
    for _ in range(20):
        drawn = buffer.sample(num_items=16, n_step=1)
        again += [buffer._last]
        weights += [d.get_extra_model_outputs("weights", 0) for d in drawn]
    assert np.mean(np.concatenate(again) == ids[0]) > 0.15  # of 30, by priority
    assert min(weights) < max(weights) <= 1
    with pytest.raises(ValueError, match="priorities"):
        buffer.update_priorities(np.ones(3))
    plain = buffer_of("lser")
    plain.add([episode(5, 0)])
    assert [
        d.get_extra_model_outputs("weights", 0) for d in plain.sample(num_items=3, n_step=1)
    ] == [1, 1, 1]
    plain.update_priorities(np.ones(99))  # of no use to it, so not looked at


@pytest.mark.parametrize("memory", ["lser", "per", "toy_memory:NewestReplay"])
def test_a_state_goes_on_with_the_same_draws(memory):
    buffer = buffer_of(memory)
    for k in range(10):
        buffer.add([episode(5, k)])
        buffer.sample(num_items=8, n_step=1)
    state = buffer.get_state()
    other = buffer_of(memory, seed=5)
    other.set_state(copy.deepcopy(state))
    for k in range(5):
        left, right = (steps_of(b.sample(num_items=8, n_step=1)) for b in (buffer, other))
        assert left == right
        for b in (buffer, other):
            b.add([episode(5, 100 + k)])
    assert other.get_added_timesteps() == buffer.get_added_timesteps() == 75
    with pytest.raises(ValueError, match="checkpoint holds"):
        buffer_of("uniform").set_state(state)


def test_what_cannot_be_right_is_refused():
    buffer = buffer_of()
    buffer.add([episode(5, 0)])
    with pytest.raises(ValueError, match="n_step"):
        buffer.sample(num_items=4, n_step=3)
    with pytest.raises(ValueError, match="batch_length_T"):
        buffer.sample(num_items=4, n_step=1, batch_length_T=20)
    with pytest.raises(ValueError, match="num_items"):
        buffer.sample(num_items=0, n_step=1)
    with pytest.raises(ValueError, match="not episodes"):
        buffer.get_num_episodes()
    for space in (spaces.Discrete(2**24 + 1), spaces.MultiDiscrete([2, 3])):
        with pytest.raises(ValueError, match="action_space"):
            buffer_of(action_space=space)
    for config in CONFIGS:
        with pytest.raises(ValueError, match="n_step"):
            config().training(n_step=3).env_runners(rollout_fragment_length=3).validate()
        with pytest.raises(ValueError, match="replay_buffer_config"):
            config().training(replay_buffer_config={"capacity": 5}).validate()
    with pytest.raises(ValueError, match="num_learners=2"):
        LserSACConfig().replay("per").learners(num_learners=2).validate()
    LserSACConfig().replay("lser").learners(num_learners=2).validate()
    with pytest.raises(ValueError, match="memory must be|unknown|one of"):
        LserDQNConfig().replay("nonesuch").validate()
    old = {"enable_rl_module_and_learner": False, "enable_env_runner_and_connector_v2": False}
    with pytest.raises(ValueError):
        LserDQNConfig().api_stack(**old).validate()


def test_a_version_that_was_not_tested_is_refused(monkeypatch):
    monkeypatch.setattr(ray, "__version__", "2.59.1")
    with pytest.raises(ImportError, match=r"tested with ray 2\.60, found 2\.59\.1"):
        importlib.reload(rllib)


class Counting(gym.Env):
    """Observation t / 10 after t steps; leaves after 7 steps, cut off after 11 every other time."""

    observation_space = BOX

    def __init__(self, config):
        self.action_space = spaces.Discrete(3) if config.get("discrete") else spaces.Box(2, 6, (2,))
        self.t = self.sessions = 0

    def observe(self):
        return np.full(3, self.t / 10, np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        self.sessions += 1
        return self.observe(), {}

    def step(self, action):
        self.t += 1
        odd = self.sessions % 2
        return self.observe(), float(self.t), odd and self.t == 7, not odd and self.t == 11, {}


@pytest.fixture(scope="module")
def cluster():
    ray.init(
        "local", num_cpus=8, include_dashboard=False, log_to_driver=False, object_store_memory=10**8
    )
    yield
    ray.shutdown()


def built(config, memory, *, runners=0, **options):
    config = (
        config()
        .environment(Counting, env_config={"discrete": config is LserDQNConfig})
        .env_runners(num_env_runners=runners, rollout_fragment_length=3)
        .training(train_batch_size_per_learner=8, num_steps_sampled_before_learning_starts=20)
        .reporting(min_sample_timesteps_per_iteration=30, min_time_s_per_iteration=0)
        .debugging(seed=3, log_level="ERROR")
        .replay(memory, capacity=500, **options)
    )
    return config.build_algo()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "memory", "runners"),
    [(LserSACConfig, "lser", 0), (LserTQCConfig, "per", 0), (LserDQNConfig, "lser", 2)],
)
def test_algorithms_learn_from_it_and_have_it_in_their_checkpoints(
    cluster, tmp_path, config, memory, runners
):
    algorithm = built(config, memory, runners=runners)
    result = algorithm.train()
    buffer = algorithm.local_replay_buffer
    assert len(buffer) >= 30
    assert result["replay_buffer"]["num_env_steps_added_lifetime"] == len(buffer)
    assert result["replay_buffer"]["num_env_steps_sampled_lifetime"] >= 8
    for before, action, reward, after, terminated, truncated in zip(
        *buffer.memory.sample(200, np.zeros(3))[:6], strict=True
    ):
        assert np.all(before == np.float32((reward - 1) / 10))
        assert np.all(after == np.float32(reward / 10))
        assert not terminated or reward == 7
        assert not truncated or reward == 11
        if config is LserDQNConfig:
            assert action[0] in (0, 1, 2)
        else:  # as RLlib learns from them, not as the environment takes them
            assert np.all(np.abs(action) <= 1)
    if memory == "per":
        assert buffer.memory.stats()["largest_priority"] != 1
    restored = type(algorithm).from_checkpoint(algorithm.save_to_path(str(tmp_path / "here")))
    theirs = restored.local_replay_buffer
    assert len(theirs) == len(buffer)
    for _ in range(3):
        assert steps_of(theirs.sample(num_items=8, n_step=1)) == steps_of(
            buffer.sample(num_items=8, n_step=1)
        )
    restored.train()
    assert len(theirs) > len(buffer)
    for each in (algorithm, restored):
        each.stop()


@pytest.mark.slow
def test_a_killed_env_runner_costs_its_unsent_steps_and_nothing_else(cluster):
    algorithm = built(LserDQNConfig, "lser", runners=2)
    algorithm.train()
    buffer = algorithm.local_replay_buffer
    before = len(buffer)
    pids = algorithm.env_runner_group.foreach_env_runner(
        lambda _: os.getpid(), local_env_runner=False
    )
    os.kill(pids[0], signal.SIGKILL)
    for _ in range(3):
        algorithm.train()
    after = algorithm.env_runner_group.foreach_env_runner(
        lambda _: os.getpid(), local_env_runner=False
    )
    assert len(after) == 2  # another one is in its place
    assert pids[0] not in after
    assert len(buffer) > before
    drawn = buffer.memory.sample(200, np.zeros(3))  # nothing is joined across the gap
    assert np.all(drawn.observation == np.float32((drawn.reward - 1) / 10)[:, None])
    assert np.all(drawn.next_observation == np.float32(drawn.reward / 10)[:, None])
    algorithm.stop()


@pytest.mark.slow
def test_a_checkpoint_of_another_memory_is_refused(cluster, tmp_path):
    algorithm = built(LserDQNConfig, "lser")
    state = algorithm.get_state()
    assert "replay_memory" not in algorithm.get_state(not_components="replay_memory")
    algorithm.set_state(state)
    state["replay_memory"]["kind"] = "SomethingElse"
    with pytest.raises(ValueError, match="SomethingElse"):
        algorithm.set_state(state)
    algorithm.stop()


@pytest.mark.slow
def test_modules_with_state_are_refused(cluster):
    config = LserDQNConfig().environment(Counting, env_config={"discrete": True})
    config = config.rl_module(model_config=DefaultModelConfig(use_lstm=True))
    with pytest.raises(ValueError, match="not sequences"):
        config.replay("lser", capacity=100).build_algo()

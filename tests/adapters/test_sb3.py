"""Our memories inside Stable-Baselines3, with the real library."""

import pickle
from functools import partial

import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_worlds import ACTION, BOX, Counting, Wares, bazaar, fill, model_of, stacked
from stable_baselines3 import DDPG, TD3
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import lser
from lser.adapters.sb3 import MemoryReplayBuffer, QueryCallback, TDErrorCallback
from lser.catalogue import MEMORIES

torch.set_num_threads(1)


@pytest.mark.parametrize("memory", [name for name in MEMORIES if name != "her"])
@pytest.mark.parametrize("n", [1, 3])
def test_transitions_come_out_as_they_went_in(memory, n):
    knobs = {"bits": 1} if "lser" in memory or memory == "random-code" else {}
    buffer = MemoryReplayBuffer(1000, BOX, ACTION, "cpu", n, memory=memory, seed=0, **knobs)
    rows = {row.tobytes() for row in fill(buffer, n=n).astype(np.float32)}
    buffer.td_errors = lambda data: np.ones(16)
    drawn = {row.tobytes() for _ in range(8) for row in stacked(buffer.sample(16))}
    assert drawn <= rows
    assert len(drawn) > 3
    assert buffer.size() == 20


def test_samples_have_the_shapes_and_types_of_the_librarys_own_buffer():
    for space in (ACTION, spaces.Box(-1, 1, (2,), np.float64), spaces.Discrete(7)):
        size = 1 if isinstance(space, spaces.Discrete) else 2
        for observation in (BOX, spaces.Box(0, 255, (2, 3), np.uint8), spaces.Discrete(5)):
            found = []
            obs = np.array([observation.sample()])
            for kind in (ReplayBuffer, MemoryReplayBuffer):
                buffer = kind(10, observation, space, "cpu")
                action = np.ones((1, size), space.dtype)
                buffer.add(obs, obs, action, np.ones(1), np.zeros(1, bool), [{}])
                found.append(buffer.sample(4))
            theirs, ours = found
            for one, other in zip(theirs[:5], ours[:5], strict=True):
                assert one.dtype == other.dtype
                assert torch.equal(one, other)
            assert ours.discounts is None


def test_a_time_limit_is_no_end_unless_it_is_asked_to_be():
    for handled, expected in ((True, 0.0), (False, 1.0)):
        buffer = MemoryReplayBuffer(10, BOX, ACTION, "cpu", 1, False, handled)
        obs = np.ones((1, 3), np.float32)
        infos = [{"TimeLimit.truncated": True}]
        buffer.add(obs, obs, np.zeros((1, 2)), np.ones(1), np.ones(1, bool), infos)
        assert buffer.sample(1).dones.item() == expected


def test_a_model_stores_leaving_and_cutting_off_apart_with_the_users_own_last_observation():
    for env, ended in ((Counting(last=4), 1.0), (Counting(limit=4), 0.0)):
        model = model_of(DDPG, env, MemoryReplayBuffer, memory="uniform")
        model.learn(30)
        samples = model.replay_buffer.sample(200)
        last = samples.rewards[:, 0] == 4
        assert torch.allclose(samples.next_observations[last], torch.tensor(0.4))
        assert (samples.dones[last] == ended).all()
        assert (samples.dones[~last] == 0).all()


def test_capacity_is_shared_by_the_environments():
    buffer = MemoryReplayBuffer(10, BOX, ACTION, "cpu", 3, unseen="evict", seed=0)
    fill(buffer, steps=9, n=3)
    assert buffer.memory.capacity == len(buffer.memory) == 9
    assert buffer.full
    assert buffer.size() == 3
    buffer.reset()
    assert buffer.size() == len(buffer.memory) == 0


def test_the_query_is_the_latest_observation_of_each_environment_in_turn():
    asked = []

    class Asked(lser.UniformReplay):
        def sample(self, batch_size, query=None):
            asked.append(query.copy())
            return super().sample(batch_size, query)

    buffer = MemoryReplayBuffer(30, BOX, ACTION, "cpu", 3, memory=Asked)
    rows = fill(buffer, steps=2, n=3)
    for _ in range(4):
        buffer.sample(1)
    assert np.array_equal(asked, rows[[3, 4, 5, 3], 5:8].astype(np.float32))


class Recorder(BaseCallback):
    """Compares the buffer's query with what the model acts on next."""

    def __init__(self):
        super().__init__()
        self.right = []

    def _on_step(self):
        return True

    def _on_rollout_start(self):
        query = self.model.replay_buffer._query
        if query is not None:
            self.right.append(np.allclose(query, self.locals_of_model(), atol=1e-5))

    def locals_of_model(self):
        env = self.model.get_vec_normalize_env()
        return self.model._last_obs if env is None else self.model._last_original_obs


@pytest.mark.parametrize("normalise", [False, True])
def test_the_callback_makes_the_query_exact_at_the_end_of_an_episode(normalise):
    for callback, exact in (([], False), ([QueryCallback()], True)):
        env = DummyVecEnv([partial(Counting, last=4, base=base) for base in (0, 5)])
        model = model_of(TD3, VecNormalize(env) if normalise else env)
        recorder = Recorder()
        model.learn(60, callback=[*callback, recorder])
        assert all(recorder.right) == exact
        assert any(recorder.right)


def test_observations_are_stored_raw_and_normalised_on_the_way_out():
    env = VecNormalize(DummyVecEnv([lambda: Counting(last=7)]))
    model = model_of(TD3, env)
    model.learn(100)
    buffer = model.replay_buffer
    assert set(np.unique(buffer.sample(100).rewards)) <= {1, 2, 3, 4, 5, 6, 7}
    buffer.memory.greedy = 1.0  # the same draw twice
    raw, scaled = buffer.sample(16), buffer.sample(16, env)
    assert np.allclose(env.normalize_obs(raw.observations.numpy()), scaled.observations, atol=1e-6)
    assert np.allclose(env.normalize_reward(raw.rewards.numpy()), scaled.rewards, atol=1e-6)


def test_dict_observations_come_back_as_they_were():
    space = Wares.observation_space
    space.seed(0)
    theirs = DictReplayBuffer(50, space, ACTION, "cpu", 2)
    ours = MemoryReplayBuffer(50, space, ACTION, "cpu", 2, greedy=0.5, seed=0)
    seen = set()
    for step in range(10):
        many = [[space.sample() for _ in range(2)] for _ in range(2)]
        obs, after = ({key: np.stack([o[key] for o in two]) for key in space} for two in many)
        step_data = (np.zeros((2, 2)), np.full(2, float(step)), np.zeros(2, bool), [{}, {}])
        ours.add(obs, after, *step_data)
        theirs.add(obs, after, *step_data)
        seen |= {tuple(np.hstack([obs[k][i].ravel() for k in space])) for i in range(2)}
    one, other = ours.sample(40), theirs.sample(40)
    for mine, their in (
        (one.observations, other.observations),
        (one.next_observations, other.next_observations),
    ):
        assert list(mine) == list(their)
        for key in mine:
            assert mine[key].shape == their[key].shape
            assert mine[key].dtype == their[key].dtype
    rows = np.hstack([one.observations[key].numpy().reshape(40, -1) for key in space])
    assert {tuple(row) for row in rows} <= seen
    assert type(one) is type(other)


@pytest.mark.parametrize("memory", ["lser", "per"])
def test_a_saved_buffer_continues_with_the_same_batches(tmp_path, memory):
    model = model_of(TD3, bazaar(), MemoryReplayBuffer, memory=memory)
    model.learn(60, callback=TDErrorCallback())
    model.save_replay_buffer(tmp_path / "buffer.pkl")
    first = model.replay_buffer.sample(20)
    model.load_replay_buffer(tmp_path / "buffer.pkl")
    again = model.replay_buffer.sample(20)
    assert np.array_equal(stacked(first), stacked(again))
    model.learn(40, reset_num_timesteps=False, callback=TDErrorCallback())
    assert model.replay_buffer.size() == 100


def test_what_cannot_work_is_refused_with_the_reason():
    for knobs, reason in (
        ({"optimize_memory_usage": True}, "optimize_memory_usage=True"),
        ({"memory": "locality"}, "unknown memory 'locality'; known: lser, .*uniform"),
        ({"memory": 7}, "memory must be a name"),
        ({"params": 7}, "params must be a LocalityParams"),
        ({"bitz": 3}, "unknown parameter 'bitz'; did you mean bits"),
        ({"bits": 0}, "bits"),
        ({"n_steps": 3}, "unknown parameter 'n_steps'"),
    ):
        with pytest.raises(ValueError, match=reason):
            MemoryReplayBuffer(10, BOX, ACTION, "cpu", **knobs)
    with pytest.raises(ValueError, match="must be a Box.*FlattenObservation"):
        MemoryReplayBuffer(10, spaces.Text(3), ACTION, "cpu")
    with pytest.raises(ValueError, match="actions"):
        MemoryReplayBuffer(10, BOX, spaces.Discrete(2**25), "cpu")
    with pytest.raises(ValueError, match="replay_buffer_class=MemoryReplayBuffer"):
        model_of(TD3, Counting(), None).learn(5, callback=QueryCallback())


def test_a_buffer_pickles_without_the_model_it_serves():
    model = model_of(TD3, Counting(), MemoryReplayBuffer, memory="per")
    model.learn(40, callback=TDErrorCallback())
    model.replay_buffer.td_errors = lambda data: data
    assert pickle.loads(pickle.dumps(model.replay_buffer)).td_errors is None

"""Our memories inside Stable-Baselines3, with the real library."""

import pickle
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import DDPG, DQN, SAC, TD3
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import lser
from lser.adapters.sb3 import MemoryReplayBuffer, QueryCallback, TDErrorCallback
from lser.catalogue import MEMORIES

torch.set_num_threads(1)

BOX = spaces.Box(-10, 10, (3,), np.float32)
ACTION = spaces.Box(-1, 1, (2,), np.float32)
DIALS = {
    "items": 100,
    "features": 4,
    "topics": 5,
    "slate": 5,
    "demographics": (2, 4),
    "sparsity": 0.05,
    "state_dependence": 0.3,
}


class Counting(gym.Env):
    """Observation t after t steps; leaves after `last` steps, or is cut off after `limit`."""

    observation_space = BOX
    action_space = ACTION

    def __init__(self, last=100, limit=100, base=0):
        self.last, self.limit, self.base, self.t = last, limit, base, 0

    def observe(self):
        return np.full(3, self.base + self.t / 10, np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observe(), {}

    def step(self, action):
        self.t += 1
        return self.observe(), float(self.t), self.t == self.last, self.t == self.limit, {}


class Wanting(Counting):
    """The goal, a reward of 3 or 6, is the last component of an observation."""

    def observe(self):
        seen = super().observe()
        seen[-1] = 1.0 if self.t < 4 else 0.5
        return seen


class Wares(gym.Env):
    """A Dict of numbers and categories."""

    observation_space = spaces.Dict(
        {
            "taste": spaces.Box(-5, 5, (2, 2), np.float32),
            "shelf": spaces.Discrete(4),
            "flags": spaces.MultiBinary(2),
            "kinds": spaces.MultiDiscrete([3, 2]),
        }
    )
    action_space = ACTION

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.t = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.t += 1
        return self.observation_space.sample(), float(self.t), self.t == 5, False, {}


def fill(buffer, steps=20, n=1, seed=0):
    """Random vector steps into `buffer`; returns them stacked, one row per transition."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(steps):
        obs, after = rng.normal(size=(2, n, 3)).astype(np.float32)
        action = rng.uniform(-1, 1, (n, 2)).astype(np.float32)
        reward = rng.normal(size=n).astype(np.float32)
        done = rng.random(n) < 0.3
        infos = [{"TimeLimit.truncated": bool(cut)} for cut in rng.random(n) < 0.5]
        buffer.add(obs, after, action, reward, done, infos)
        cut = np.array([info["TimeLimit.truncated"] for info in infos])
        rows.append(np.hstack([obs, action, after, (done & ~cut)[:, None], reward[:, None]]))
    return np.vstack(rows)


def stacked(samples):
    return np.hstack([part.numpy() for part in samples[:5]])


def model_of(algorithm, env, buffer=MemoryReplayBuffer, **knobs):
    return algorithm(
        "MultiInputPolicy" if isinstance(env.observation_space, spaces.Dict) else "MlpPolicy",
        env,
        buffer_size=1000,
        learning_starts=20,
        batch_size=16,
        policy_kwargs={"net_arch": [16, 16]},
        replay_buffer_class=buffer,
        replay_buffer_kwargs=knobs,
        seed=3,
    )


def bazaar(n=1, **dials):
    return DummyVecEnv([partial(gym.make, "lser/Bazaar-v0", **DIALS, **dials)] * n)


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


@pytest.mark.parametrize("algorithm", [DDPG, TD3, SAC])
def test_continuous_algorithms_learn_from_several_users_at_once(algorithm):
    model = model_of(algorithm, bazaar(n=3), bits=6, greedy=0.5)
    model.learn(60, callback=QueryCallback())
    assert model.replay_buffer.size() == 20
    assert model.replay_buffer.memory.stats()["draws"] > 0


@pytest.mark.parametrize("memory", [*MEMORIES, "toy_memory:NewestReplay"])
def test_every_memory_trains_by_the_name_it_has_everywhere(memory):
    knobs = {"goals": (3.0, 6.0)} if memory == "her" else {}
    env = DummyVecEnv([partial(Wanting, last=7)] * 2)
    model = model_of(TD3, env, memory=memory, **knobs)
    before = model.actor.state_dict()["mu.0.weight"].clone()
    model.learn(60, callback=[QueryCallback(), TDErrorCallback()])
    assert model.replay_buffer.size() == 30
    assert not torch.equal(before, model.actor.state_dict()["mu.0.weight"])
    assert isinstance(model.replay_buffer.memory, MEMORIES[memory].load())


def test_a_variants_name_sets_its_knobs_and_params_and_knobs_are_heard():
    def params(**given):
        return MemoryReplayBuffer(10, BOX, ACTION, "cpu", **given).memory.params

    settings = lser.LocalityReplay.Params(bits=7, greedy=0.5)
    assert params(memory="reward-top").codes == "constant"
    assert params(memory="lser-p", params=settings, bits=3) == lser.LocalityReplay.Params(
        bits=3, greedy=0.5, store="fifo"
    )
    assert params(memory="toy_memory:NewestReplay", span=2).span == 2
    assert params(memory=lser.PrioritizedReplay, alpha=0.1).alpha == 0.1


def test_td_errors_reach_a_memory_of_somebody_elses():
    model = model_of(TD3, Counting(), memory="toy_memory:NewestReplay")
    model.learn(40, callback=TDErrorCallback())
    assert len(model.replay_buffer.memory.told) >= model._n_updates - 1


def test_a_class_that_keeps_the_protocol_and_no_more_will_do():
    class Plain:
        """Without seed and Params."""

        def __init__(self, capacity, observation_dim, action_dim, *, bits):
            self.inner = lser.LocalityReplay(capacity, observation_dim, action_dim, bits=bits)
            self.capacity = capacity
            self.extend, self.sample = self.inner.extend, self.inner.sample
            self.told = 0

        def __len__(self):
            return len(self.inner)

        def update(self, ids, td_errors):
            self.told += 1

    model = model_of(TD3, Counting(), memory=Plain, bits=3)
    model.learn(40, callback=TDErrorCallback())
    assert model.replay_buffer.memory.told >= model._n_updates - 1 > 0
    with pytest.raises(ValueError, match="Plain has no Params"):
        MemoryReplayBuffer(10, BOX, ACTION, "cpu", memory=Plain, params=3)


def test_dict_observations_train():
    model = model_of(SAC, DummyVecEnv([Wares, Wares]))
    model.learn(60, callback=QueryCallback())
    assert model.replay_buffer.size() == 30


def test_dqn_gets_its_discrete_actions_back_as_integers():
    model = model_of(DQN, bazaar(actions="discrete"), bits=6)
    model.learn(100)
    actions = model.replay_buffer.sample(50).actions
    assert actions.dtype == torch.int64
    assert actions.shape == (50, 1)
    assert 0 <= actions.min() <= actions.max() < DIALS["items"]


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


def test_the_seed_is_the_models_unless_given():
    batches = []
    for seed in (None, None, 5):
        knobs = {} if seed is None else {"seed": seed}
        model = model_of(TD3, Counting(), MemoryReplayBuffer, memory="uniform", **knobs)
        fill(model.replay_buffer)
        batches.append(stacked(model.replay_buffer.sample(16)))
    assert np.array_equal(batches[0], batches[1])
    assert not np.array_equal(batches[0], batches[2])


@pytest.mark.parametrize("algorithm", [DDPG, TD3, SAC, DQN])
def test_td_errors_reach_the_memory_after_each_gradient_step(algorithm):
    reported = []

    class Told(lser.PrioritizedReplay):
        def update(self, ids, td_errors):
            reported.append(np.asarray(td_errors))
            super().update(ids, td_errors)

    env = bazaar(actions="discrete" if algorithm is DQN else "continuous")
    model = model_of(algorithm, env, MemoryReplayBuffer, memory=Told)
    model.learn(60, callback=TDErrorCallback())
    assert len(reported) >= model._n_updates - 1 > 0
    assert all(errors.shape == (16,) and np.isfinite(errors).all() for errors in reported)


def test_td_errors_are_target_minus_value():
    model = model_of(TD3, Counting(), MemoryReplayBuffer, memory="per")
    fill(model.replay_buffer)
    callback = TDErrorCallback()
    callback.init_callback(model)
    data = model.replay_buffer.sample(8)
    with torch.no_grad():
        action = model.actor_target(data.next_observations)
        a, b = model.critic_target(data.next_observations, action)
        target = data.rewards + (1 - data.dones) * 0.99 * torch.minimum(a, b)
        c, d = model.critic(data.observations, data.actions)
    expected = (target - (c + d) / 2)[:, 0]
    assert np.allclose(callback.td_errors(data), expected, atol=1e-6)


def test_a_memory_without_the_td_errors_it_needs_says_so_once():
    model = model_of(TD3, Counting(), MemoryReplayBuffer, memory="per")
    with pytest.warns(UserWarning, match="callback=TDErrorCallback") as caught:
        model.learn(60)
    assert len(caught) == 1
    assert "memory='per'" in str(caught[0].message)
    model_of(TD3, Counting(), memory="der", prioritized=False).learn(60)  # warns of nothing


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


def click_rate(model, users=300, pages=8):
    env = gym.make_vec("lser/Bazaar-v0", num_envs=users, **DIALS)
    env.action_space.seed(1)
    obs, _ = env.reset(seed=9)
    clicks = shown = 0
    for _ in range(pages):
        action = model.predict(obs, deterministic=True)[0] if model else env.action_space.sample()
        obs, _, _, _, info = env.step(action)
        clicks, shown = clicks + info["clicks"].sum(), shown + info["shown"].sum()
    return clicks / shown


@pytest.mark.slow
def test_ddpg_learns_a_small_bazaar_clearly_better_than_random():
    model = DDPG(
        "MlpPolicy",
        bazaar(n=4),
        buffer_size=10_000,
        learning_starts=200,
        batch_size=64,
        gamma=0.9,
        policy_kwargs={"net_arch": [32, 32]},
        action_noise=NormalActionNoise(np.zeros(4), np.full(4, 0.3)),
        replay_buffer_class=MemoryReplayBuffer,
        replay_buffer_kwargs={"bits": 6, "greedy": 0.9},
        seed=0,
    )
    model.learn(4000, callback=QueryCallback())
    assert click_rate(model) > 1.8 * click_rate(None)

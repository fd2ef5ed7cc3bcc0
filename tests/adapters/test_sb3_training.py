"""Stable-Baselines3 learns from our memories: every algorithm, every memory, TD errors."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import torch
from sb3_worlds import ACTION, BOX, Counting, Wares, bazaar, fill, model_of, stacked
from small_shop import DIALS
from stable_baselines3 import DDPG, DQN, SAC, TD3
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import DummyVecEnv

import lser
from lser.adapters.sb3 import MemoryReplayBuffer, QueryCallback, TDErrorCallback
from lser.catalogue import MEMORIES

torch.set_num_threads(1)


class Wanting(Counting):
    """The goal, a reward of 3 or 6, is the last component of an observation."""

    def observe(self):
        seen = super().observe()
        seen[-1] = 1.0 if self.t < 4 else 0.5
        return seen


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

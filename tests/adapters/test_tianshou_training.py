"""Tianshou learns from our memories: every memory, TD errors, targets."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import torch
from counting import NEEDS_ROWS
from small_shop import DIALS
from tianshou.data import Batch, Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou_worlds import OFFERED, Counting, algorithm, counting, filled, steps

import lser
from lser.adapters.tianshou import MemoryReplayBuffer, QueryCollector

torch.set_num_threads(1)


@pytest.mark.parametrize("memory", OFFERED)
def test_every_memory_trains(memory):
    buffer = MemoryReplayBuffer(memory, 60, 2)
    algo = algorithm(Counting())
    before = [p.clone() for p in algo.policy.parameters()]
    train(buffer, 60, algo=algo)
    assert len(buffer) == len(buffer.memory) == 60
    assert any(not torch.equal(a, b) for a, b in zip(before, algo.policy.parameters(), strict=True))


@pytest.mark.parametrize(("memory", "knobs", "why"), NEEDS_ROWS)
def test_a_memory_that_needs_rows_of_its_own_is_refused_with_the_reason(memory, knobs, why):
    with pytest.raises(ValueError, match=f"memory='{memory}' cannot be used with Tianshou.*{why}"):
        MemoryReplayBuffer(memory, 10, **knobs)


def test_prioritized_replay_gets_td_errors_and_gives_weights():
    buffer = filled("per", alpha=1.0, beta=1.0)
    batch, slots = buffer.sample(16)
    assert batch.weight.tolist() == [1.0] * 16  # all newcomers count the same
    buffer.update_weight(np.arange(60), torch.where(torch.arange(60) == 7, 50.0, 0.1))
    batch, slots = buffer.sample(200)
    assert (slots == 7).mean() > 0.8
    assert batch.weight.min() < 0.1 < batch.weight.max() == 1.0
    assert "weight" not in buffer[:].get_keys()


def test_training_reports_td_errors_to_memories_that_hear_and_to_no_others():
    buffer = MemoryReplayBuffer("toy_memory:NewestReplay", 200, 2)
    train(buffer)
    assert len(buffer.memory.told) >= 50
    assert all(errors.shape == (64,) for errors in buffer.memory.told)
    deaf = filled()
    assert not hasattr(deaf, "update_weight")
    assert "weight" not in deaf.sample(4)[0].get_keys()


def discrete(memory):
    """A buffer of transitions whose observations are numbers of categories."""
    buffer, step = MemoryReplayBuffer(memory, 10, 2), steps(2)
    step.obs, step.obs_next = np.array([1, 2]), np.array([2, 0])
    buffer.add(step)
    return buffer


def test_a_memory_without_locality_takes_numbers_of_categories():
    batch, _ = discrete("per").sample(8)
    assert batch.obs.dtype == np.int64
    assert set(batch.obs.tolist()) <= {1, 2}


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: MemoryReplayBuffer("lser", 0), ValueError, "total_size"),
        (lambda: MemoryReplayBuffer("lser", 10, 0), ValueError, "buffer_num"),
        (lambda: MemoryReplayBuffer("lser", 10, bits=99), ValueError, "bits"),
        (lambda: MemoryReplayBuffer("lser", 10, stack_num=4), ValueError, "stack_num"),
        (lambda: MemoryReplayBuffer("lser", 10).sample(4), ValueError, "the buffer is empty"),
        (lambda: filled().prev(np.arange(3)), ValueError, "frame stacking"),
        (lambda: filled().dropnull(), ValueError, "taken out"),
        (lambda: filled().add(Batch(obs=np.zeros((2, 3)))), ValueError, "lacks.*obs_next"),
        (lambda: filled(n=3).add(steps(2)), ValueError, "3 environments .buffer_num=3"),
        (lambda: MemoryReplayBuffer("lsr", 10), ValueError, "did you mean"),
        (lambda: MemoryReplayBuffer(10, 4), ValueError, "memory must be a name"),
        (lambda: discrete("lser"), ValueError, "one-hot"),
    ],
)
def test_what_cannot_work_is_refused_with_its_reason(make, error, words):
    with pytest.raises(error, match=words):
        make()


def train(buffer, env_steps=100, envs=None, algo=None):
    envs = counting(0, 5, last=7) if envs is None else envs
    algo = algorithm(Counting()) if algo is None else algo
    collector = QueryCollector(algo, envs, buffer, exploration_noise=True)
    collector.reset()
    collector.collect(n_step=40, random=True)
    algo.run_training(
        OffPolicyTrainerParams(
            training_collector=collector,
            max_epochs=1,
            epoch_num_steps=env_steps,
            collection_step_num_env_steps=len(envs),
            update_step_num_gradient_steps_per_sample=1 / len(envs),
            batch_size=64,
            verbose=False,
            show_progress=False,
        )
    )
    return algo


def test_n_step_returns_are_refused_by_name():
    with pytest.raises(ValueError, match="n_step_return_horizon=1"):
        train(
            MemoryReplayBuffer("lser", 100, 2), algo=algorithm(Counting(), n_step_return_horizon=3)
        )


def test_targets_bootstrap_through_time_limits_only():
    algo = algorithm(Counting())
    for ends, bootstraps in (({"last": 7}, False), ({"limit": 7}, True)):
        buffer = MemoryReplayBuffer("lser", 100, 2, encoder=lser.ConstantCode(), greedy=1.0)
        collector = Collector(algo, counting(0, 5, **ends), buffer)
        collector.reset()
        collector.collect(n_step=28, random=True)
        batch, slots = buffer.sample(4)  # the best: the last step of each session
        assert (batch.rew == 7).all()
        returns = algo._preprocess_batch(batch, buffer, slots).returns.flatten()
        assert bool((returns != 7).all()) == bootstraps


def click_rate(algo, episodes=150):
    """Clicks per item shown in fresh sessions; of random actions without an algorithm."""
    env = DummyVectorEnv([partial(gym.make, "lser/Bazaar-v0", **DIALS)] * 4)
    env.seed(99)
    acting = algorithm(env.workers[0].env) if algo is None else algo
    collector = Collector(acting, env, VectorReplayBuffer(10_000, 4))
    collector.reset()
    stats = collector.collect(n_episode=episodes, random=algo is None)
    return stats.returns.sum() / stats.lens.sum() / DIALS["slate"]


@pytest.mark.slow
def test_ddpg_learns_a_small_bazaar_clearly_better_than_random():
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002  Tianshou's exploration noise draws from it
    envs = DummyVectorEnv([partial(gym.make, "lser/Bazaar-v0", **DIALS)] * 4)
    envs.seed(0)
    algo = algorithm(envs.workers[0].env)
    train(MemoryReplayBuffer("lser", 10_000, 4, bits=6, greedy=0.9), 4000, envs, algo)
    assert click_rate(algo) > 1.8 * click_rate(None)

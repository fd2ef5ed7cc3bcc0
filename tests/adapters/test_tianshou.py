"""Our memories inside Tianshou, with the real library."""

import pickle
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import torch
from tianshou.algorithm import DDPG
from tianshou.algorithm.modelfree.ddpg import ContinuousDeterministicPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Batch, Collector, ReplayBufferManager, VectorReplayBuffer
from tianshou.data.collector import EpisodeRolloutHookMCReturn
from tianshou.env import DummyVectorEnv
from tianshou.exploration import GaussianNoise
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorDeterministic, ContinuousCritic

import lser
from lser.adapters.tianshou import MemoryReplayBuffer, QueryCollector
from lser.catalogue import MEMORIES

torch.set_num_threads(1)

WIDTH = 3
DIALS = {
    "items": 100,
    "features": 4,
    "topics": 5,
    "slate": 5,
    "demographics": (2, 4),
    "sparsity": 0.05,
    "state_dependence": 0.3,
}
WITH_ROWS = {"aer", "der", "der-uniform", "her"}
OFFERED = [*sorted(set(MEMORIES) - WITH_ROWS), "toy_memory:NewestReplay"]
FIELDS = ("obs", "act", "rew", "obs_next", "terminated", "truncated", "done")


class Counting(gym.Env):
    """Observation base + t / 10 after t steps; ends after `last` steps, cut off after `limit`."""

    observation_space = gym.spaces.Box(-10, 10, (WIDTH,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, last=100, limit=100, base=0):
        self.last, self.limit, self.base, self.t = last, limit, base, 0

    def observe(self):
        return np.full(WIDTH, self.base + self.t / 10, np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observe(), {}

    def step(self, action):
        self.t += 1
        info = {"t": self.t}
        return self.observe(), float(self.t), self.t == self.last, self.t == self.limit, info


def steps(n=1, seed=0):
    """One transition of each of `n` environments."""
    rng = np.random.default_rng(seed)
    terminated, truncated = rng.random((2, n)) < 0.2
    return Batch(
        obs=rng.normal(size=(n, WIDTH)).astype(np.float32),
        act=rng.uniform(-1, 1, (n, 2)).astype(np.float32),
        rew=rng.normal(size=n).astype(np.float32).astype(float),
        obs_next=rng.normal(size=(n, WIDTH)).astype(np.float32),
        terminated=terminated,
        truncated=truncated,
        info=Batch(note=rng.integers(1000, size=n)),
    )


def rows(batch):
    done = np.logical_or(batch.terminated, batch.truncated)
    parts = [batch.obs, batch.act, batch.rew, batch.obs_next, batch.terminated, batch.truncated]
    columns = [np.asarray(p, float).reshape(len(batch.rew), -1) for p in (*parts, done)]
    return [row.tobytes() for row in np.hstack([*columns, batch.info.note[:, None]])]


def filled(memory="lser", n=2, blocks=30, size=1000, **knobs):
    knobs = {"bits": 4, **knobs} if memory == "lser" else knobs
    buffer = MemoryReplayBuffer(memory, size, n, **knobs)
    for seed in range(blocks):
        buffer.add(steps(n, seed))
    return buffer


def algorithm(env, **options):
    seen, action = env.observation_space.shape, env.action_space.shape
    actor = ContinuousActorDeterministic(
        preprocess_net=Net(state_shape=seen, hidden_sizes=[32]),
        action_shape=action,
        hidden_sizes=[32],
    )
    both = Net(state_shape=seen, action_shape=action, hidden_sizes=[32], concat=True)
    policy = ContinuousDeterministicPolicy(
        actor=actor, action_space=env.action_space, exploration_noise=GaussianNoise(sigma=0.3)
    )
    return DDPG(
        policy=policy,
        policy_optim=AdamOptimizerFactory(lr=1e-3),
        critic=ContinuousCritic(preprocess_net=both, hidden_sizes=[32]),
        critic_optim=AdamOptimizerFactory(lr=1e-3),
        **{"gamma": 0.9, "tau": 0.01, **options},
    )


def counting(*bases, **ends):
    return DummyVectorEnv([partial(Counting, base=base, **ends) for base in bases])


@pytest.mark.parametrize("n", [1, 3])
def test_transitions_come_out_as_they_went_in_with_all_their_fields(n):
    buffer = MemoryReplayBuffer("lser", 200, n, bits=4)
    assert isinstance(buffer, ReplayBufferManager)
    given = set()
    for seed in range(40):
        given |= set(rows(steps(n, seed)))
        buffer.add(steps(n, seed))
    batch, slots = buffer.sample(64)
    assert set(rows(batch)) <= given
    assert len(set(rows(batch))) > 3
    assert len(buffer) == 40 * n
    assert set(rows(buffer[:])) == given
    np.testing.assert_array_equal(buffer.rew[slots], batch.rew)


@pytest.mark.parametrize("memory", OFFERED)
def test_every_memory_gives_back_what_it_was_given(memory):
    buffer, held = MemoryReplayBuffer(memory, 40, 2), {}
    for seed in range(40):
        batch = steps(2, seed)
        held |= dict(zip(buffer.add(batch)[0].tolist(), rows(batch), strict=True))
    batch, slots = buffer.sample(32)
    assert rows(batch) == [held[slot] for slot in slots.tolist()]
    assert rows(buffer[:]) == [held[slot] for slot in range(40)]


@pytest.mark.parametrize("memory", OFFERED)
def test_every_memory_trains(memory):
    buffer = MemoryReplayBuffer(memory, 60, 2)
    algo = algorithm(Counting())
    before = [p.clone() for p in algo.policy.parameters()]
    train(buffer, 60, algo=algo)
    assert len(buffer) == len(buffer.memory) == 60
    assert any(not torch.equal(a, b) for a, b in zip(before, algo.policy.parameters(), strict=True))


@pytest.mark.parametrize(
    ("memory", "knobs", "why"),
    [
        ("aer", {}, "needs rows of its own"),
        ("der", {}, "needs rows of its own"),
        ("der-uniform", {}, "needs rows of its own"),
        ("her", {}, "goals need rows"),
        ("ser", {"strategy": "coverage"}, "strategy='coverage' needs rows"),
    ],
)
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


@pytest.mark.parametrize("order", ["reward", "return"])
def test_slots_and_draws_are_those_of_the_memory_itself(order):
    knobs = {"bits": 5, "seed": 3, "order": order, "greedy": 0.5}
    buffer, memory = (
        MemoryReplayBuffer("lser", 40, 3, **knobs),
        lser.LocalityReplay(40, 3, 2, **knobs),
    )
    refused = 0
    for seed in range(60):
        batch = steps(3, seed)
        memory.extend(
            batch.obs, batch.act, batch.rew, batch.obs_next, batch.terminated, batch.truncated
        )
        refused += int(np.sum(buffer.add(batch)[0] < 0))
        query = np.random.default_rng(seed).normal(size=3).astype(np.float32)
        buffer.set_query(query)
        theirs, ours = memory.sample(16, query=query), buffer.sample(16)[0]
        np.testing.assert_array_equal(ours.obs, theirs.observation)
        np.testing.assert_array_equal(ours.rew, theirs.reward)
        np.testing.assert_array_equal(ours.truncated, theirs.truncated)
    assert refused > 0


def test_codes_learnt_from_the_data_are_refiled_from_the_arrays():
    knobs = {"bits": 5, "features": "standardised", "warmup": 30, "greedy": 1.0}
    buffer, memory = (
        MemoryReplayBuffer("lser", 100, 3, **knobs),
        lser.LocalityReplay(100, 3, 2, **knobs),
    )
    for seed in range(20):
        b = steps(3, seed)
        memory.extend(b.obs, b.act, b.rew, b.obs_next, b.terminated, b.truncated)
        buffer.add(b)
    query = np.array([0.3, -0.2, 1.0], np.float32)
    buffer.set_query(query)
    theirs = memory.sample(16, query=query)
    np.testing.assert_array_equal(buffer.sample(16)[0].obs, theirs.observation)


def test_the_collector_counts_episodes_and_keeps_ends_and_limits_apart():
    env = counting(0, 5, last=7)
    buffer = MemoryReplayBuffer("lser", 1000, 2)
    collector = Collector(algorithm(Counting()), env, buffer)
    collector.reset()
    stats = collector.collect(n_step=40, random=True)
    assert stats.lens.tolist() == [7] * 4
    assert stats.returns.tolist() == [28.0] * 4
    data = buffer[:]
    np.testing.assert_array_equal(data.terminated, data.rew == 7)
    assert not data.truncated.any()
    np.testing.assert_allclose(data.obs_next[:, 0] - data.obs[:, 0], 0.1, atol=1e-5)
    cut = MemoryReplayBuffer("lser", 1000, 2)
    collector = Collector(algorithm(Counting()), counting(0, 5, limit=4), cut)
    collector.reset()
    assert collector.collect(n_episode=6, random=True).lens.tolist() == [4] * 6
    np.testing.assert_array_equal(cut[:].truncated, cut[:].rew == 4)
    assert not cut[:].terminated.any()


def test_lengths_and_returns_are_right_when_the_memory_refuses_and_replaces():
    buffer = MemoryReplayBuffer("lser", 6, 2)
    collector = Collector(algorithm(Counting()), counting(0, 5, last=7), buffer)
    collector.reset()
    stats = collector.collect(n_episode=8, random=True)
    assert stats.lens.tolist() == [7] * 8
    assert stats.returns.tolist() == [28.0] * 8
    assert len(buffer) == 6
    ended = buffer.get_buffer_indices(0, 0)
    assert len(ended) == 7
    assert (ended == -1).any()


def test_episodes_are_found_again_by_hooks():
    buffer = MemoryReplayBuffer("lser", 1000, 2)
    hook = EpisodeRolloutHookMCReturn(gamma=1.0)
    env = counting(0, 5, last=7)
    collector = Collector(algorithm(Counting()), env, buffer, on_episode_done_hook=hook)
    collector.reset()
    collector.collect(n_episode=4, random=True)
    data = buffer[:]
    np.testing.assert_allclose(data[hook.MC_RETURN_TO_GO_KEY] + data.rew * (data.rew - 1) / 2, 28)
    small = MemoryReplayBuffer("lser", 6, 2)
    collector = Collector(algorithm(Counting()), env, small, on_episode_done_hook=hook)
    collector.reset()
    with pytest.raises(ValueError, match="no longer held"):
        collector.collect(n_episode=8, random=True)


def test_the_query_is_the_latest_observation_of_each_environment_in_turn():
    buffer = filled(n=3)
    twin = pickle.loads(pickle.dumps(buffer))
    last = steps(3, 29).obs_next
    for user in (0, 1, 2, 0):
        twin.set_query(last[user])
        np.testing.assert_array_equal(buffer.sample(16)[1], twin.sample(16)[1])


def test_a_query_collector_asks_about_newcomers():
    asked = {}
    for kind in (Collector, QueryCollector):
        buffer = MemoryReplayBuffer("lser", 1000, 2)
        collector = kind(algorithm(Counting()), counting(0, 5, last=7), buffer)
        collector.reset()
        collector.collect(n_step=14, random=True)
        asked[kind] = buffer._query[:, 0].tolist()
    assert asked[Collector] == pytest.approx([0.7, 5.7])
    assert asked[QueryCollector] == pytest.approx([0.0, 5.0])


def saved(buffer, path):
    buffer.save_hdf5(str(path / "buffer.hdf5"))
    return MemoryReplayBuffer.load_hdf5(str(path / "buffer.hdf5")), pickle.loads(
        pickle.dumps(buffer)
    )


@pytest.mark.parametrize("order", ["reward", "return"])
def test_saved_and_loaded_it_gives_the_same_next_batches(tmp_path, order):
    buffer = filled(n=3, size=50, order=order)
    buffer.sample(16)
    others = saved(buffer, tmp_path)
    for seed in range(100, 110):
        wanted, at = buffer.sample(16)
        for other in others:
            found, slots = other.sample(16)
            assert rows(found) == rows(wanted)
            np.testing.assert_array_equal(slots, at)
        added = buffer.add(steps(3, seed))
        for other in others:
            for one, two in zip(other.add(steps(3, seed)), added, strict=True):
                np.testing.assert_array_equal(one, two)


def test_reset_it_starts_as_new():
    buffer, fresh = filled(n=2), MemoryReplayBuffer("lser", 1000, 2, bits=4)
    buffer.reset()
    assert len(buffer) == 0
    for seed in range(20):
        for one, two in zip(buffer.add(steps(2, seed)), fresh.add(steps(2, seed)), strict=True):
            np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(buffer.sample(16)[1], fresh.sample(16)[1])


def test_some_environments_may_be_ready_and_others_not():
    buffer = MemoryReplayBuffer("lser", 100, 3)
    step = steps(1)
    step.terminated[:], step.truncated[:], step.rew[:] = False, False, 1.0
    for ready in ([2], [0], [2]):
        buffer.add(step, buffer_ids=np.array(ready))
    step.terminated[:] = True
    _, returns, lengths, starts = buffer.add(step, buffer_ids=np.array([2]))
    assert (returns.tolist(), lengths.tolist(), starts.tolist()) == ([3.0], [3], [2])
    assert buffer.get_buffer_indices(2, 0).tolist() == [0, 2, 3]


def test_observations_may_be_dicts():
    buffer = MemoryReplayBuffer("lser", 100, 2)
    for seed in range(10):
        flat = steps(2, seed)
        for key in ("obs", "obs_next"):
            flat[key] = Batch(shelf=flat[key][:, :1], taste=flat[key][:, 1:])
        buffer.add(flat)
    assert buffer.memory.store.observation_dim == 3
    batch, slots = buffer.sample(8)
    np.testing.assert_array_equal(batch.obs.taste, buffer.obs.taste[slots])


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

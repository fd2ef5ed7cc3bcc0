"""Our memories inside Tianshou, with the real library."""

import pickle

import numpy as np
import pytest
import torch
from tianshou.data import Batch, Collector, ReplayBufferManager
from tianshou.data.collector import EpisodeRolloutHookMCReturn
from tianshou_worlds import OFFERED, Counting, algorithm, counting, filled, steps

import lser
from lser.adapters.tianshou import MemoryReplayBuffer, QueryCollector

torch.set_num_threads(1)


def rows(batch):
    done = np.logical_or(batch.terminated, batch.truncated)
    parts = [batch.obs, batch.act, batch.rew, batch.obs_next, batch.terminated, batch.truncated]
    columns = [np.asarray(p, float).reshape(len(batch.rew), -1) for p in (*parts, done)]
    return [row.tobytes() for row in np.hstack([*columns, batch.info.note[:, None]])]


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

"""What the memory behind TorchRL's buffer holds: its slots, its codes, and its files."""

import io
import pickle

import numpy as np
import pytest
import torch
from torchrl_parts import SIZE, WIDTH, block, buffer_of, draw, locality, rows

import lser
from lser.adapters.torchrl import memory_pair

torch.set_num_threads(1)


@pytest.mark.parametrize("order", ["reward", "return"])
@pytest.mark.parametrize("unseen", ["drop", "evict"])
def test_slots_and_draws_are_those_of_the_memory_itself(order, unseen):
    knobs = {"bits": 5, "seed": 3, "order": order, "unseen": unseen, "greedy": 0.5}
    rb = buffer_of("lser", 40, **knobs)
    memory = lser.LocalityReplay(40, WIDTH, SIZE, **knobs)
    refused = 0
    for seed in range(12):
        data = block(17, seed)
        at = {key: data["next", key].numpy()[:, 0] for key in ("reward", "terminated", "truncated")}
        ids = memory.extend(
            data["observation"].numpy(),
            data["action"].numpy(),
            at["reward"],
            data["next", "observation"].numpy(),
            at["terminated"],
            at["truncated"],
            streams=np.zeros(17, np.int64),
        )
        slots = rb.extend(data).numpy()
        assert not np.any((ids < 0) & (slots >= 0))
        refused += int(np.sum(slots < 0))
        query = torch.randn(WIDTH, generator=torch.Generator().manual_seed(seed))
        theirs, ours = memory.sample(16, query=query.numpy()), draw(rb, query)
        np.testing.assert_array_equal(ours["observation"].numpy(), theirs.observation)
        np.testing.assert_array_equal(ours["next", "reward"].numpy()[:, 0], theirs.reward)
    assert refused > 0
    assert len(rb) == 40


def test_codes_learnt_from_the_data_are_refiled_from_the_storage():
    knobs = {"bits": 5, "seed": 3, "features": "standardised", "warmup": 30, "greedy": 1.0}
    rb, memory = (
        buffer_of("lser", **knobs),
        lser.LocalityReplay(100, WIDTH, SIZE, **knobs),
    )
    for seed in range(4):
        data = block(15, seed)
        flags = [data["next", key].numpy()[:, 0] for key in ("terminated", "truncated")]
        reward = data["next", "reward"].numpy()[:, 0]
        after = data["next", "observation"].numpy()
        memory.extend(data["observation"].numpy(), data["action"].numpy(), reward, after, *flags)
        rb.extend(data)
    query = np.array([0.3, -0.2, 1.0], np.float32)
    theirs = memory.sample(16, query=query)
    np.testing.assert_array_equal(draw(rb, query)["observation"].numpy(), theirs.observation)


def test_returns_follow_the_trajectories_that_a_collector_names():
    rb = buffer_of("lser", order="return", discount=1.0, greedy=1.0, bits=1)
    data = block(4)
    data["observation"][:] = 1.0
    data["next", "reward"] = torch.tensor([[1.0], [5.0], [9.0], [0.0]])
    data["next", "done"] = torch.tensor([[False], [False], [True], [True]])
    data["collector", "traj_ids"] = torch.tensor([7, 8, 7, 8])  # returns 10, 5, 9, 0
    rb.extend(data)
    rewards = draw(rb, torch.ones(WIDTH), 4)["next", "reward"][:, 0]
    assert rewards.tolist() == [1.0, 9.0, 5.0, 0.0]


def test_the_samplers_state_is_plain_data():
    rb = locality()
    rb.extend(block(50))
    draw(rb, torch.zeros(WIDTH))
    file = io.BytesIO()
    torch.save(rb.sampler.state_dict(), file)
    file.seek(0)
    other, _ = memory_pair("lser", 100, WIDTH)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert len(other.memory) == 50


def test_a_refused_transition_gives_none_or_minus_one():
    rb = buffer_of("lser", 2, encoder=lser.ConstantCode())
    data = block(3)
    data["next", "reward"] = torch.tensor([[2.0], [1.0], [0.0]])
    assert rb.extend(data).tolist() == [0, 1, -1]
    assert rb.add(data[2].clone()) is None
    data["next", "reward"][2] = 3.0
    assert rb.add(data[2].clone()) == 1
    assert sorted(rb.storage[:]["next", "reward"][:, 0].tolist()) == [2.0, 3.0]
    assert rb.write_count == 3


def test_a_row_replaced_within_its_own_block_is_not_written():
    rb = buffer_of("reward-top", 1)
    data = block(3)
    data["next", "reward"] = torch.tensor([[0.0], [1.0], [2.0]])
    assert rb.extend(data).tolist() == [-1, -1, 0]
    assert rb.storage[:]["note"].tolist() == [int(data["note"][2])]


def copies(rb, path):
    """The buffer as saved in each of the three ways, with the trained index only."""
    one, two = locality(), locality()
    torch.save(rb.state_dict(), path / "state.pt")
    one.load_state_dict(torch.load(path / "state.pt", weights_only=False))
    rb.dumps(path / "dump")
    two.loads(path / "dump")
    return one, two, pickle.loads(pickle.dumps(rb))


def test_saved_and_loaded_it_gives_the_same_next_batches(tmp_path):
    rb = locality()
    rb.extend(block(150))
    draw(rb, torch.randn(2, WIDTH))
    others = copies(rb, tmp_path)
    for seed in range(3):
        wanted = rb.sample()
        for other in others:
            assert rows(other.sample()) == rows(wanted)
        slots = rb.extend(block(20, 10 + seed))
        for other in others:
            assert torch.equal(other.extend(block(20, 10 + seed)), slots)
            assert other.write_count == rb.write_count


def test_emptied_it_starts_as_new():
    rb = locality()
    rb.extend(block(50))
    rb.empty()
    assert len(rb) == len(rb.sampler.memory) == rb.write_count == 0
    fresh = locality()
    assert torch.equal(rb.extend(block(40, 1)), fresh.extend(block(40, 1)))
    query = torch.randn(WIDTH)
    assert rows(draw(rb, query)) == rows(draw(fresh, query))


def test_prioritized_replay_saved_and_loaded_gives_the_same_next_batch(tmp_path):
    rb, other, third = (buffer_of("per", 64) for _ in range(3))
    rb.extend(block(100))
    rb.update_priority(torch.arange(64), torch.rand(64))
    other.load_state_dict(rb.state_dict())
    rb.dumps(tmp_path)
    third.loads(tmp_path)
    wanted = rb.sample()
    assert rows(other.sample()) == rows(third.sample()) == rows(wanted)

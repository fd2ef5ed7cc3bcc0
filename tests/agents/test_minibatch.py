"""Batches on their way to a device: packed rows are taken apart to what critics read."""

import numpy as np
import torch
from agent_references import random_batch

from lser.agents.minibatch import (
    BatchShape,
    HostBatches,
    PackedBatches,
    UnpackedBatches,
    host_batches,
    minibatch,
)
from lser.replay.memories.uniform import UniformReplay

AGENTS, ROWS, SEEN, ACTED = 3, 8, 5, 2
DISCOUNTS = (0.0, 0.5, 0.99)


def both() -> tuple[HostBatches, HostBatches]:
    """The same batches laid out for critics, and packed."""
    made = []
    for packed in (False, True):
        shape = BatchShape(AGENTS, ROWS, SEEN, ACTED, 1, 2, packed)
        host = host_batches(shape, torch.zeros(shape.floats))
        for slot, discount in enumerate(DISCOUNTS):
            generator = torch.Generator().manual_seed(slot)
            host.fill(random_batch(ROWS, SEEN, ACTED, seed=slot), discount, generator, slot)
        host.numbers[:] = np.arange(2 * AGENTS).reshape(2, AGENTS)
        made.append(host)
    return made[0], made[1]


def test_unpacked_batches_are_those_laid_out_for_critics() -> None:
    plain, packed = both()
    assert type(packed) is PackedBatches
    expected = minibatch(plain.shape, plain.buffer)
    room = UnpackedBatches(packed.shape, torch.tensor(DISCOUNTS).view(-1, 1, 1))
    found = room.take(packed.buffer)
    for name in ("observation", "action", "next_observation", "reward", "discount", "weights"):
        assert torch.equal(getattr(found, name), getattr(expected, name)), name
    assert torch.equal(found.normals[0], expected.normals[0])
    assert torch.equal(room.numbers, torch.from_numpy(packed.numbers))
    assert np.array_equal(packed.rewards, plain.rewards)
    assert plain.rows(0) is None


def test_a_memory_puts_its_rows_where_they_are_wanted() -> None:
    twins = [UniformReplay(20, SEEN, ACTED, seed=1) for _ in range(2)]
    for memory in twins:
        memory.extend(*random_batch(16, SEEN, ACTED, seed=3)[:6])
    _, packed = both()
    rows = packed.rows(1)
    assert rows is not None
    twins[0].store.lend(rows)
    ours, theirs = (memory.sample(ROWS) for memory in twins)
    assert np.shares_memory(ours.observation, rows)
    for mine, its in zip(ours, theirs, strict=True):
        assert np.array_equal(mine, its)
    generator = torch.Generator().manual_seed(0)
    packed.fill(ours, 0.5, generator, 1)
    found = packed.buffer.clone()
    rows[:] = 0
    packed.fill(theirs, 0.5, torch.Generator().manual_seed(0), 1)  # copied: it lies elsewhere
    layout = packed.shape.layout
    one, other = (PackedBatches(packed.shape, buffer).rows(1) for buffer in (found, packed.buffer))
    assert one is not None
    assert other is not None
    assert np.array_equal(one[:, : layout.truncated], other[:, : layout.truncated])


def test_what_was_lent_serves_one_batch_of_its_size() -> None:
    memory = UniformReplay(20, SEEN, ACTED)
    memory.extend(*random_batch(16, SEEN, ACTED, seed=3)[:6])
    rows = np.zeros((ROWS, memory.store.layout.width), np.float32)
    memory.store.lend(rows)
    assert not np.shares_memory(memory.sample(ROWS + 1).observation, rows)
    assert not np.shares_memory(memory.sample(ROWS).observation, rows)
    assert not rows.any()

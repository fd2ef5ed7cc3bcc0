"""Blocks and buffers for the tests of TorchRL's adapter."""

import torch
from tensordict import TensorDict
from torchrl.data import (
    LazyTensorStorage,
    TensorDictReplayBuffer,
)

from lser.adapters.torchrl import memory_pair

WIDTH, SIZE = 3, 2


def block(n, seed=0):
    """N transitions with a field of their own."""
    g = torch.Generator().manual_seed(seed)
    terminated, truncated = torch.rand((2, n, 1), generator=g) < 0.2
    return TensorDict(
        {
            "observation": torch.randn((n, WIDTH), generator=g),
            "action": torch.rand((n, SIZE), generator=g),
            "note": torch.randint(1000, (n,), generator=g),
            "next": {
                "observation": torch.randn((n, WIDTH), generator=g),
                "reward": torch.randn((n, 1), generator=g),
                "terminated": terminated,
                "truncated": truncated,
                "done": terminated | truncated,
            },
        },
        [n],
    )


def buffer_of(memory, capacity=100, width=WIDTH, storage=None, options=None, **knobs):
    sampler, writer = memory_pair(memory, capacity, width, **knobs)
    storage = LazyTensorStorage(capacity) if storage is None else storage
    options = {"batch_size": 16, **(options or {})}
    return TensorDictReplayBuffer(storage=storage, sampler=sampler, writer=writer, **options)


def locality(storage=None, **options):
    return buffer_of("lser", storage=storage, options=options, bits=4, seed=1)


def draw(rb, query, n=None):
    rb.sampler.query = query
    return rb.sample() if n is None else batch_of(rb, n)


def batch_of(rb, n):
    """Another size than the buffer was made with, which it warns about once."""
    rb._batch_size = n
    return rb.sample()


def rows(td):
    parts = [td["observation"], td["action"], td["note"][:, None]]
    parts += [td["next", k] for k in ("observation", "reward", "terminated", "truncated")]
    return [row.tobytes() for row in torch.cat([p.float() for p in parts], 1).numpy()]

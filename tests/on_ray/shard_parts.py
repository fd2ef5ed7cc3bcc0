"""Sharded memories in this process, and blocks for them."""

import numpy as np

from lser.ray.rooms import HereRooms
from lser.ray.shards import ShardedReplay
from lser.testing import Subject

SHARED_CAPACITY = {
    "fills_up": "the capacity is divided, and codes are not",
    "holds_a_single_transition": "every shard holds one at least",
}


class Here(ShardedReplay):
    """In rooms of this process."""

    def __init__(self, *sizes, shards=2, rooms=None, **knobs):
        super().__init__(*sizes, shards=shards, rooms=rooms or HereRooms(shards), **knobs)


def block(rng, size, wide=6):
    seen, after = rng.normal(size=(2, size, wide)).astype(np.float32)
    action = rng.normal(size=(size, 2)).astype(np.float32)
    reward = rng.integers(0, 9, size).astype(np.float32)
    return seen, action, reward, after, rng.random(size) < 0.1, rng.random(size) < 0.1


def subject_of(kind, shards, **knobs):
    exceptions = SHARED_CAPACITY if shards > 1 else {}
    knobs = {"shards": shards, "bits": 3, **knobs}
    return Subject("sharded", kind, knobs, frozenset({"query"}), exceptions)

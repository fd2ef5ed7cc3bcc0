"""A bucket's entries stay a sorted list under random traffic, from one run to many blocks."""

import bisect
import random

import doors
import numpy as np
import pytest

from lser.replay.index import blocks
from lser.replay.index.index import BucketIndex, Rules
from lser.replay.index.layout import LEAST
from lser.replay.index.sorted import NEWEST


def test_order_keys_keep_the_order_of_floats():
    values = np.float32([-3e38, -1.5, -1e-40, 0, 1e-40, 1, 2.5, 3e38])
    keys = [blocks.order_key(v) for v in values]
    assert keys == sorted(keys)
    assert [blocks.key_value(k) for k in keys] == values.tolist()
    assert blocks.order_key(np.float32(-0.0)) == blocks.order_key(np.float32(0.0))


KEYS = {
    "ties": lambda rnd, count: rnd.choice([0.0, 1.0, -1.0]),
    "any": lambda rnd, count: rnd.gauss(0, 1),
    "rising": lambda rnd, count: float(count),
    "falling": lambda rnd, count: -float(count),
}


class Checked:
    """One bucket of an index and the sorted list that it should be, worst first."""

    def __init__(self, capacity, rnd):
        self.rnd = rnd
        self.ids = np.full(capacity, -1, np.int64)
        self.index = BucketIndex(self.ids, Rules(fifo=True))  # tracked: entries can be sought
        self.index.counts[0] = capacity  # any slot may be in use
        self.h = self.index.address
        self.bucket = doors.open_bucket(self.h, 7, LEAST)
        self.held, self.free = [], list(range(capacity))

    def make_room(self):
        while not doors.fits(self.h, self.bucket):
            self.index.make_room()

    def add(self, key, identity, slot, newer):
        value = np.float32(key)
        word = (blocks.order_key(value) << 32) | slot
        self.ids[slot] = identity
        doors.insert(self.h, self.bucket, word, newer)
        bisect.insort(self.held, (float(value), identity, slot))

    def add_newest(self, key, identity):
        slot = self.free.pop(self.rnd.randrange(len(self.free)))
        self.add(key, identity, slot, NEWEST)

    def remove_worst(self):
        doors.delete_worst(self.h, self.bucket)
        self.free.append(self.held.pop(0)[2])

    def remove_any(self, new_key=None):
        """Take one out, for good or to put it back under another key."""
        value, identity, slot = self.held.pop(self.rnd.randrange(len(self.held)))
        key = blocks.order_key(np.float32(value))
        doors.delete_entry(self.h, self.bucket, key, identity)
        if new_key is None:
            self.free.append(slot)
        else:
            self.add(new_key, identity, slot, identity)

    def compare(self):
        assert doors.in_order(self.h, self.bucket)
        expected = [slot for _, _, slot in reversed(self.held)]
        slots = np.empty(self.rnd.randint(1, len(expected)), np.int64)
        doors.best(self.h, self.bucket, slots)
        assert slots.tolist() == expected[: len(slots)]
        ranks = np.array(self.rnd.sample(range(len(expected)), len(slots)))
        wanted = [expected[rank] for rank in ranks]
        doors.by_rank(self.h, self.bucket, ranks)
        assert ranks.tolist() == wanted
        assert doors.worst(self.h, self.bucket) & blocks.SLOT == expected[-1]


@pytest.mark.parametrize("kind", KEYS)
def test_a_bucket_is_a_sorted_list(kind):
    rnd = random.Random(0)
    checked = Checked(40 * blocks.WIDE, rnd)
    largest = 0
    for count in range(6000):
        key, chance = KEYS[kind](rnd, count), rnd.random()
        grow = 0.7 if count % 2000 < 1200 else 0.3  # up to many blocks, and back to few
        checked.make_room()
        if not checked.held or (chance < grow and checked.free):
            checked.add_newest(key, count)
        elif chance < grow + 0.1:
            checked.remove_worst()
        else:
            checked.remove_any(new_key=key if chance < grow + 0.2 else None)
        if checked.held and count % 7 == 0:
            checked.compare()
        largest = max(largest, len(checked.held))
    assert largest > 5 * blocks.WIDE

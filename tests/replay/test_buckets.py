"""The pieces of the bucket index, each against a naive version under random traffic."""

import bisect
import random

import numpy as np
import pytest
from twin import jaccard

from lser.replay import Store, blocks, entries, header, index, ordered
from lser.replay.buckets import Buckets, Rules
from lser.replay.nearest import nearest_two


def test_order_keys_keep_the_order_of_floats():
    values = np.float32([-3e38, -1.5, -1e-40, 0, 1e-40, 1, 2.5, 3e38])
    keys = [entries.order_key(v) for v in values]
    assert keys == sorted(keys)
    assert [entries.key_value(k) for k in keys] == values.tolist()
    assert entries.order_key(np.float32(-0.0)) == entries.order_key(np.float32(0.0))


KEYS = {
    "ties": lambda rnd, count: rnd.choice([0.0, 1.0, -1.0]),
    "any": lambda rnd, count: rnd.gauss(0, 1),
    "rising": lambda rnd, count: float(count),
    "falling": lambda rnd, count: -float(count),
}


@pytest.mark.parametrize("kind", KEYS)
def test_a_bucket_is_a_sorted_list(kind):
    rnd = random.Random(0)
    capacity = 40 * blocks.WIDE
    store = Store(capacity, 1, 1)
    buckets = Buckets(store, Rules(fifo=True))  # tracked: entries can be sought
    h, held, free = buckets._h, [], list(range(capacity))
    bucket = index.open_bucket(h, 7, header.LEAST)
    for count in range(6000):
        key, n, op = KEYS[kind](rnd, count), len(held), rnd.random()
        grow = 0.7 if count % 2000 < 1200 else 0.3  # up to many blocks, and back to few
        while not blocks.fits(h, bucket):
            buckets._grow()
        if n == 0 or (op < grow and free):
            slot = free.pop(rnd.randrange(len(free)))
            word = (entries.order_key(np.float32(key)) << 32) | slot
            store.ids[slot] = count
            h[header.SIZE] = capacity  # any slot may be in use
            ordered.insert_newest(h, bucket, word, rnd.randrange(3))
            bisect.insort(held, (float(np.float32(key)), count, slot))
        elif op < grow + 0.1:
            ordered.delete_worst(h, bucket)
            free.append(held.pop(0)[2])
        else:
            value, name, slot = held.pop(rnd.randrange(n))
            ordered.delete_entry(h, bucket, entries.order_key(np.float32(value)), name)
            if op < grow + 0.2:  # goes back in under another key: not the newest
                word = (entries.order_key(np.float32(key)) << 32) | slot
                ordered.insert(h, bucket, word, name)
                bisect.insort(held, (float(np.float32(key)), name, slot))
            else:
                free.append(slot)
        if held and count % 7 == 0:
            assert ordered.in_order(h, bucket)
            slots = np.empty(rnd.randint(1, len(held)), np.int64)
            ordered.best(h, bucket, slots)
            expected = [entry[2] for entry in held[::-1]]
            assert slots.tolist() == expected[: len(slots)]
            ranks = np.array(rnd.sample(range(len(held)), len(slots)))
            wanted = [expected[rank] for rank in ranks]
            ordered.by_rank(h, bucket, ranks)
            assert ranks.tolist() == wanted
            worst = buckets._held[header.ARENA][ordered.worst(h, bucket)]
            assert worst & entries.SLOT == held[0][2]


def _filled(codes, capacity=None, **rules):
    store = Store(capacity or len(codes), 1, 1)
    buckets = Buckets(store, Rules(**rules))
    buckets.insert(np.zeros((len(codes), store.layout.width), np.float32), codes)
    return buckets


@pytest.mark.parametrize("bits", [1, 3, 8, 32])
def test_the_two_nearest_codes_follow_every_tie_rule(bits):
    rng = np.random.default_rng(bits)
    for trial in range(30):
        count = int(rng.integers(1, 3 if bits == 1 else 600))
        codes = rng.integers(2**bits, size=count, dtype=np.uint32)
        if trial % 3 == 0:
            codes &= rng.integers(2**bits, size=count, dtype=np.uint32)  # sparse: more ties
        buckets = _filled(codes)
        sizes = dict(zip(*np.unique(codes, return_counts=True), strict=True))
        occupied = {int(c): int(n) for c, n in sizes.items()}
        for query in [*rng.integers(2**bits, size=10).tolist(), 0]:
            if query in occupied:
                continue
            want = sorted(
                occupied,
                key=lambda c: (-jaccard(c, query), (c ^ query).bit_count(), -occupied[c], c),
            )[:2]
            got = nearest_two(buckets._h, query)
            table = buckets._held[header.BUCKETS]
            assert [int(table[b, header.CODE]) for b in got if b >= 0] == want


def test_memory_grows_with_occupied_codes_and_not_with_bits():
    buckets = _filled(np.array([0, 2**32 - 1, 5], np.uint32), capacity=100)
    assert sum(a.nbytes for p, a in buckets._held.items() if p != header.ROWS) < 20_000


def test_freed_runs_are_used_again():
    store = Store(64, 1, 1)
    buckets = Buckets(store, Rules(fifo=True))
    rng = np.random.default_rng(0)
    for _ in range(300):  # the traffic moves from one code to the next
        codes = np.full(64, rng.integers(2**32), np.uint32)
        buckets.insert(np.zeros((64, store.layout.width), np.float32), codes)
        buckets.check()
    assert buckets._h[header.ARENA_TOP] < 1024
    assert buckets._h[header.OCCUPIED] == 1


def _break_order(b):
    b._held[header.ARENA][[0, 1]] = b._held[header.ARENA][[1, 0]]


def _break_id(b):
    b._store.ids[0] = 99


def _break_list(b):
    b._held[header.LISTED_CODES][0] ^= 1


def _break_size(b):
    b._h[header.SIZE] += 1


def _break_arena(b):
    b._h[header.ARENA_TOP] += 2


def _break_table(b):
    b._held[header.TABLE][np.flatnonzero(b._held[header.TABLE] == -1)[0]] = 7 << 32


@pytest.mark.parametrize(
    "damage", [_break_order, _break_id, _break_list, _break_size, _break_arena, _break_table]
)
def test_check_finds_damage(damage):
    buckets = _filled(np.array([3, 3, 3, 4, 4], np.uint32), capacity=10)
    buckets.check()
    damage(buckets)
    with pytest.raises(ValueError, match="the bucket index is damaged"):
        buckets.check()

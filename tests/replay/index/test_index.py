"""The index as a whole: nearest codes, what it takes in memory, and that damage is found."""

import doors
import numpy as np
import pytest

from lser.replay.index.index import BucketIndex, Rules
from lser.replay.index.reference import jaccard


def _filled(codes, capacity=None, **rules):
    index = BucketIndex(np.full(capacity or len(codes), -1, np.int64), Rules(**rules))
    index.place(codes, np.zeros(len(codes), np.float32))
    return index


@pytest.mark.parametrize("bits", [1, 3, 8, 32])
def test_the_two_nearest_codes_follow_every_tie_rule(bits):
    rng = np.random.default_rng(bits)
    for trial in range(30):
        count = int(rng.integers(1, 3 if bits == 1 else 600))
        codes = rng.integers(2**bits, size=count, dtype=np.uint32)
        if trial % 3 == 0:
            codes &= rng.integers(2**bits, size=count, dtype=np.uint32)  # sparse: more ties
        index = _filled(codes)
        sizes = dict(zip(*np.unique(codes, return_counts=True), strict=True))
        occupied = {int(c): int(n) for c, n in sizes.items()}
        for query in [*rng.integers(2**bits, size=10).tolist(), 0]:
            if query in occupied:
                continue
            want = sorted(
                occupied,
                key=lambda c: (-jaccard(c, query), (c ^ query).bit_count(), -occupied[c], c),
            )[:2]
            got = doors.nearest_two(index.address, query)
            assert [int(index._held["buckets"]["code"][b]) for b in got if b >= 0] == want


def test_memory_grows_with_occupied_codes_and_not_with_bits():
    index = _filled(np.array([0, 2**32 - 1, 5], np.uint32), capacity=100)
    assert sum(array.nbytes for array in index._held.values()) < 20_000


def test_freed_runs_are_used_again():
    index = BucketIndex(np.full(64, -1, np.int64), Rules(fifo=True))
    rng = np.random.default_rng(0)
    for _ in range(300):  # the traffic moves from one code to the next
        codes = np.full(64, rng.integers(2**32), np.uint32)
        index.place(codes, np.zeros(64, np.float32))
        index.check()
    assert index._header["arena_top"] < 1024
    assert index._header["occupied"] == 1


def test_placing_gives_ids_that_lead_to_their_slots():
    index = BucketIndex(np.full(3, -1, np.int64), Rules())
    ids, slots = index.place(np.array([5, 5, 6, 7, 5], np.uint32), np.float32([1, 0, 2, 9, 0]))
    assert slots.tolist() == [0, 1, 2, -1, 1]  # 7 has no bucket; the last replaces the worst of 5
    assert ids.tolist() == [0 * 3 + 0, 1 * 3 + 1, 2 * 3 + 2, -1, 3 * 3 + 1]
    assert index.pick(5, 3, 1.0).tolist() == [0, 1, 0]


def _break_order(index):
    arena = index._held["arena"]
    arena[[0, 1]] = arena[[1, 0]]


def _break_id(index):
    index._held["ids"][0] = 99


def _break_list(index):
    index._held["listed_codes"][0] ^= 1


def _break_size(index):
    index._header["size"] += 1


def _break_arena(index):
    index._header["arena_top"] += 2


def _break_table(index):
    table = index._held["table"]
    table[np.flatnonzero(table == -1)[0]] = 7 << 32


@pytest.mark.parametrize(
    "damage", [_break_order, _break_id, _break_list, _break_size, _break_arena, _break_table]
)
def test_check_finds_damage(damage):
    index = _filled(np.array([3, 3, 3, 4, 4], np.uint32), capacity=10)
    index.check()
    damage(index)
    with pytest.raises(ValueError, match="the bucket index is damaged"):
        index.check()


def test_capacities_that_do_not_fit_half_a_word_are_refused():
    ids = np.broadcast_to(np.int64(-1), 2**31)
    with pytest.raises(ValueError, match=r"capacity must be below 2\*\*31, got 2147483648"):
        BucketIndex(ids, Rules())

"""The store keeps what it is given, refuses what it cannot keep, and never repeats an id."""

import numpy as np
import pytest
import torch
from traffic import block_of

from lser.replay import Store

RNG = np.random.default_rng(0)
NAMES = ("observation", "action", "reward", "next_observation", "terminated", "truncated")


def test_a_batch_returns_the_fields_that_were_put_in():
    store = Store(8, 3, 2)
    block = block_of(RNG, 5)
    ids = store.append(store.pack(block))
    batch = store.batch(np.array([3, 0]))
    for name, field in zip(NAMES, block, strict=True):
        np.testing.assert_array_equal(getattr(batch, name), field[[3, 0]])
    assert batch.ids.tolist() == ids[[3, 0]].tolist()
    assert batch.weights.tolist() == [1, 1]
    assert batch.terminated.dtype == bool


def test_the_float_fields_of_a_batch_are_views_of_one_gather():
    store = Store(8, 3, 2)
    store.append(store.pack(block_of(RNG, 5)))
    batch = store.batch(np.arange(4))
    assert batch.observation.base is batch.reward.base is batch.next_observation.base


@pytest.mark.parametrize("sizes", [(3, 4, 2), (7, 1), (25,), (0, 5), (5, 5, 5, 1)])
def test_a_ring_holds_the_newest_whatever_the_blocks(sizes):
    store, written = Store(5, 3, 2), []
    for size in sizes:
        rows = store.pack(block_of(RNG, size))
        ids = store.append(rows)
        written += list(zip(ids.tolist(), rows.tolist(), strict=True))
    kept = dict(written[-5:])
    assert len(store) == len(kept)
    for name, row in written:
        slot = int(store.slots([name])[0])
        assert (slot >= 0) == (name in kept)
        if slot >= 0:
            assert store.rows[slot].tolist() == row


def test_ids_that_were_never_given_have_no_slot():
    store = Store(5, 3, 2)
    store.append(store.pack(block_of(RNG, 3)))
    held = store.ids[:3]
    assert store.slots(held).tolist() == [0, 1, 2]
    never = [-1, 3 * 5 + 3, held[0] + 5, held[1] + 1, 10**12]
    assert store.slots(never).tolist() == [-1] * 5


def test_put_writes_chosen_slots_under_new_ids():
    store = Store(5, 3, 2)
    rows = store.pack(block_of(RNG, 2))
    assert store.put(np.array([4, 1]), rows).tolist() == [0 * 5 + 4, 1 * 5 + 1]
    assert store.put(np.array([1]), rows[:1]).tolist() == [2 * 5 + 1]
    assert (len(store), store.written, store.ids.tolist()) == (2, 3, [-1, 11, -1, -1, 4])


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.float16])
def test_numbers_of_other_kinds_and_layouts_are_taken(dtype):
    store = Store(5, 3, 2)
    block = block_of(RNG, 4)
    want = store.pack(block)
    observation = np.asfortranarray(block[0].astype(dtype))
    got = store.pack((observation, block[1].tolist(), block[2].astype(np.float64), *block[3:]))
    np.testing.assert_array_equal(got, want)
    block[1].flags.writeable = False
    np.testing.assert_array_equal(store.pack(block), want)
    np.testing.assert_array_equal(store.pack((*block[:4], block[4].astype(int), block[5])), want)


def _bad(index, value):
    block = list(block_of(RNG, 4))
    block[index] = value
    return block


@pytest.mark.parametrize(
    ("index", "value", "words"),
    [
        (0, np.zeros((4, 2)), r"observation has shape \(4, 2\)"),
        (0, np.zeros(3), r"\(3,\), expected \(4, 3\); a single one .*, observation\[None\]"),
        (1, np.zeros((3, 2)), r"action has shape \(3, 2\), expected \(4, 2\)"),
        (2, np.zeros((4, 1)), r"reward has shape \(4, 1\), expected \(4\)"),
        (2, 1.0, r"reward has shape \(\)"),
        (3, np.zeros((4, 4)), "next_observation has shape"),
        (4, np.zeros(5, bool), "terminated has shape"),
        (5, np.full(4, 0.5), "truncated must hold booleans, got .*0.5"),
        (0, np.full((4, 3), np.nan), r"observation\[0, 0\] = nan"),
        (1, np.full((4, 2), np.inf), r"action\[0, 0\] = inf"),
        (2, np.array([0, 0, 0, -np.inf]), r"reward\[3\] = -inf"),
        (2, np.array([0, 1e39, 0, 0]), r"reward\[1\] = 1e\+39 is not finite in float32"),
        (3, np.full((4, 3), np.nan, np.float32), r"next_observation\[0, 0\] = nan"),
        (0, [["a", "b", "c"]] * 4, "observation is not an array of numbers"),
        (0, np.zeros((4, 3), complex), "observation is not an array of numbers"),
        (2, None, "reward is not an array of numbers"),
        (0, [[1.0], [1.0, 2.0]], "observation is not an array of numbers"),
        (0, np.zeros((5, 3)), r"observation has shape \(5, 3\), expected \(4, 3\)"),
        (2, np.zeros(5), r"reward has shape \(5,\), expected \(4\)"),
        (2, np.ma.array(np.zeros(4), mask=[0, 0, 1, 0]), "reward is not.*masked"),
        (4, np.ma.array(np.zeros(4, bool), mask=[0, 0, 1, 0]), "terminated is not.*masked"),
        (0, torch.zeros((4, 3), requires_grad=True), "observation is not.*requires grad"),
    ],
)
def test_a_bad_block_is_refused_by_name_and_value(index, value, words):
    with pytest.raises(ValueError, match=words):
        Store(5, 3, 2).pack(_bad(index, value))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"capacity": 0}, "capacity must be >= 1, got 0"),
        ({"capacity": 2.5}, "capacity must be an integer, got 2.5"),
        ({"capacity": True}, "capacity must be an integer, got True"),
        ({"observation_dim": 0}, "observation_dim must be >= 1, got 0"),
        ({"action_dim": -1}, "action_dim must be >= 1, got -1"),
        ({"storage": "disk"}, "storage must be one of 'memory', 'memmap', 'none', got 'disk'"),
        ({"storage": "memmap"}, "path=None"),
        ({"path": "x"}, "path='x' is only for"),
    ],
)
def test_bad_settings_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        Store(**{"capacity": 5, "observation_dim": 3, "action_dim": 2, **settings})


def test_a_store_rebuilt_from_a_living_one_shares_nothing_with_it():
    store = Store(4, 3, 2)
    store.append(store.pack(block_of(RNG, 4)))
    other = Store.from_state(store.state())
    before = store.rows.copy()
    other.append(other.pack(block_of(RNG, 3)))
    np.testing.assert_array_equal(store.rows, before)


def test_a_memmap_keeps_its_rows_in_a_new_file(tmp_path):
    path = tmp_path / "rows"
    store = Store(5, 3, 2, storage="memmap", path=path)
    rows = store.pack(block_of(RNG, 4))
    store.append(rows)
    store.rows.flush()
    on_disk = np.fromfile(path, np.float32).reshape(5, -1)
    np.testing.assert_array_equal(on_disk[:4], rows)
    with pytest.raises(ValueError, match="exists; the rows need a new file"):
        Store(5, 3, 2, storage="memmap", path=path)

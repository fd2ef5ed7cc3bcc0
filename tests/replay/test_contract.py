"""One contract, every memory: what a training loop may rely on whichever it is given."""

from functools import partial

import numpy as np
import pytest

from lser.replay import (
    AttentiveReplay,
    ConstantCode,
    DynamicReplay,
    HindsightReplay,
    LocalityReplay,
    PrioritizedReplay,
    RandomCode,
    Replay,
    SelectiveReplay,
    UniformReplay,
    load_replay,
)

OBSERVATION, ACTION, CAPACITY = 4, 2, 40

MEMORIES = {
    "uniform": UniformReplay,
    "per": PrioritizedReplay,
    "der": partial(DynamicReplay, period=2),
    "der-uniform": partial(DynamicReplay, period=2, prioritized=False),
    "aer": partial(AttentiveReplay, anneal=20),
    "aer-raw": partial(AttentiveReplay, features="raw"),
    "ser": SelectiveReplay,
    "ser-surprise": partial(SelectiveReplay, strategy="surprise"),
    "ser-reward": partial(SelectiveReplay, strategy="reward"),
    "ser-coverage": partial(SelectiveReplay, strategy="coverage", probes=4),
    "her": HindsightReplay,
    "her-balanced": partial(HindsightReplay, balanced=True),
    "lser": partial(LocalityReplay, bits=2),
    "lser-return": partial(LocalityReplay, bits=2, order="return"),
    "lser-evict": partial(LocalityReplay, bits=8, unseen="evict"),
    "lser-p": partial(LocalityReplay, bits=2, store="fifo"),
    "lser-s": partial(LocalityReplay, bits=2, sampling="uniform"),
    "reward-top": lambda *sizes, **knobs: LocalityReplay(*sizes, **knobs, encoder=ConstantCode()),
    "random-code": lambda *sizes, **knobs: LocalityReplay(
        *sizes, **knobs, encoder=RandomCode(bits=2, seed=1)
    ),
}
# Zones are for copies of successful sessions, so ordinary traffic does not fill every slot.
ZONED = {"der", "der-uniform"}
# A block is one fragment (DER), one draw of keys before its probes (coverage), one draw of codes;
# and returns are known when the whole block is in.
DRAWN_BY_BLOCK = {"der", "der-uniform", "ser-coverage", "random-code"}
BLOCKS_DIFFER = DRAWN_BY_BLOCK | {"ser-reward", "lser-return"}

NEED_A_QUERY = {"lser", "lser-return", "lser-evict", "lser-p", "reward-top", "random-code"}
USE_A_QUERY = {"aer", "aer-raw"}
USE_TD_ERRORS = {"per", "der", "ser-surprise"}


@pytest.fixture(params=list(MEMORIES))
def name(request):
    return request.param


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def make(name, capacity=CAPACITY, seed=3):
    return MEMORIES[name](capacity, OBSERVATION, ACTION, seed=seed)


def blocks_of(rng, count, size=8, first=0):
    """Blocks for any memory: the last component is a goal, the first action a serial number."""
    for number in range(count):
        observation, following = rng.normal(size=(2, size, OBSERVATION)).astype(np.float32)
        observation[:, -1] = rng.integers(1, 11, size) / 10
        following[:, -1] = rng.integers(1, 11, size) / 10
        action = rng.normal(size=(size, ACTION)).astype(np.float32)
        action[:, 0] = first + number * size + np.arange(size)
        reward = rng.integers(0, 11, size).astype(np.float32)
        yield observation, action, reward, following, rng.random(size) < 0.1, rng.random(size) < 0.1


def filled(name, rng, count=12, **knobs):
    """A memory after some life: additions, draws and feedback. Also every block and its ids."""
    replay = make(name, **knobs)
    blocks, ids = list(blocks_of(rng, count)), []
    for block in blocks:
        ids.append(replay.extend(*block))
        batch = replay.sample(16, block[0][0])
        replay.update(batch.ids, rng.normal(size=16))
    return replay, [np.concatenate(column) for column in zip(*blocks, strict=True)], ids


def snapshot(replay):
    config, arrays = replay.state()
    return repr(config), {name: array.copy() for name, array in arrays.items()}


def same(left, right):
    return left[0] == right[0] and all(
        np.array_equal(left[1][name], right[1][name]) for name in left[1] | right[1]
    )


def same_batch(left, right):
    return all(np.array_equal(x, y) for x, y in zip(left, right, strict=True))


def test_it_keeps_the_protocol(name):
    assert isinstance(make(name), Replay)


@pytest.mark.parametrize("count", [CAPACITY - 1, CAPACITY, CAPACITY + 1])
def test_it_holds_up_to_its_capacity(name, count, rng):
    replay = make(name)
    for block in blocks_of(rng, count, size=1):
        replay.extend(*block)
    held = min(count, CAPACITY)
    assert replay.capacity == CAPACITY
    assert 0 < len(replay) <= CAPACITY if name in ZONED else len(replay) == held


def test_a_memory_of_one_transition_holds_the_newest_or_the_best(name, rng):
    if name in ZONED:
        pytest.skip("its shards need two slots each")
    replay = make(name, capacity=1)
    for block in blocks_of(rng, 5):
        replay.extend(*block)
        batch = replay.sample(3, block[0][0])
        replay.update(batch.ids, np.ones(3))
        assert len(set(batch.ids.tolist())) == len(replay) == 1


def test_a_block_larger_than_the_memory_fits(name, rng):
    replay = make(name)
    (block,) = blocks_of(rng, 1, size=3 * CAPACITY)
    ids = replay.extend(*block)
    assert len(ids) == 3 * CAPACITY
    assert len(replay) <= CAPACITY
    assert len(replay.sample(5, block[0][0]).ids) == 5


def test_an_empty_block_changes_nothing(name, rng):
    replay, _, _ = filled(name, rng)
    before = snapshot(replay)
    (block,) = blocks_of(rng, 1, size=0)
    assert replay.extend(*block).shape == (0,)
    assert same(before, snapshot(replay))


@pytest.mark.parametrize("size", [1, 7, 3 * CAPACITY])
def test_a_batch_has_exactly_the_size_asked_for(name, size, rng):
    replay, columns, _ = filled(name, rng)
    batch = replay.sample(size, columns[0][0])
    shapes = [(size, OBSERVATION), (size, ACTION), (size,), (size, OBSERVATION), *[(size,)] * 4]
    dtypes = [np.float32] * 4 + [np.bool_] * 2 + [np.int64, np.float32]
    assert [field.shape for field in batch] == shapes
    assert [field.dtype for field in batch] == dtypes


def test_it_samples_without_a_query_or_says_what_it_needs(name, rng):
    replay, _, _ = filled(name, rng)
    if name in NEED_A_QUERY:
        with pytest.raises(ValueError, match="query"):
            replay.sample(9)
    else:
        assert len(replay.sample(9).ids) == 9


def test_only_live_transitions_come_back(name, rng):
    replay, columns, ids = filled(name, rng)
    observation, action, _, following, terminated, truncated = columns
    known = np.concatenate(ids)
    serial_of = dict(zip(known.tolist(), range(len(known)), strict=True))
    drawn = set()
    for query in observation:
        batch = replay.sample(20, query)
        serials = batch.action[:, 0].astype(int)
        assert np.array_equal(batch.action, action[serials])
        assert np.array_equal(batch.observation[:, :-1], observation[serials, :-1])
        assert np.array_equal(batch.next_observation[:, :-1], following[serials, :-1])
        assert np.array_equal(batch.terminated, terminated[serials])
        assert np.array_equal(batch.truncated, truncated[serials])
        ours = np.isin(batch.ids, known)  # copies in DER's zones have ids of their own
        assert [serial_of[i] for i in batch.ids[ours].tolist()] == serials[ours].tolist()
        drawn.update(batch.ids.tolist())
    assert drawn <= set(replay.state().arrays["ids"].tolist())
    assert len(drawn) <= len(replay)


def test_feedback_on_evicted_transitions_is_ignored(name, rng):
    replay, _, ids = filled(name, rng, count=30)
    gone = np.setdiff1d(np.concatenate(ids), replay.state().arrays["ids"])
    unknown = np.array([-1, 10**12])
    before = snapshot(replay)
    replay.update(np.concatenate((gone, unknown)), np.full(len(gone) + 2, 1e9))
    assert len(gone)
    assert same(before, snapshot(replay))


def test_the_same_seed_gives_the_same_batches(name):
    batches = []
    for _ in range(2):
        replay, columns, _ = filled(name, np.random.default_rng(5))
        batches.append([replay.sample(16, query) for query in columns[0][:10]])
    assert all(map(same_batch, *batches))


def test_saved_and_loaded_it_goes_on_the_same(name, rng, tmp_path):
    replay, columns, _ = filled(name, rng)
    replay.save(tmp_path / "memory")
    loaded = load_replay(tmp_path / "memory")
    assert same(snapshot(replay), snapshot(loaded))
    for block in blocks_of(rng, 20, first=len(columns[0])):
        left, right = replay.sample(16, block[0][0]), loaded.sample(16, block[0][0])
        assert same_batch(left, right)
        errors = rng.normal(size=16)
        for memory in (replay, loaded):
            memory.update(left.ids, errors)
            memory.extend(*block)
    assert same(snapshot(replay), snapshot(loaded))


def test_an_empty_memory_can_be_saved(name, rng, tmp_path):
    make(name).save(tmp_path / "memory")
    loaded = load_replay(tmp_path / "memory")
    assert len(loaded) == 0
    for block in blocks_of(rng, 2):
        loaded.extend(*block)
    assert len(loaded) >= 16  # DER's zones may hold copies besides


FIELDS = ("observation", "action", "reward", "next_observation", "terminated", "truncated")


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("field", range(4))
def test_numbers_that_are_not_finite_are_refused(name, field, wrong, rng):
    replay, _, _ = filled(name, rng, count=6)
    before = snapshot(replay)
    (block,) = blocks_of(rng, 1)
    block[field].flat[-1] = wrong
    with pytest.raises(ValueError, match=FIELDS[field]):
        replay.extend(*block)
    assert same(before, snapshot(replay))


@pytest.mark.parametrize("field", range(6))
def test_wrong_shapes_are_refused(name, field, rng):
    replay, _, _ = filled(name, rng, count=6)
    before = snapshot(replay)
    (block,) = blocks_of(rng, 1)
    broken = list(block)
    broken[field] = np.concatenate((block[field], block[field]), axis=-1)
    with pytest.raises(ValueError, match=FIELDS[field]):
        replay.extend(*broken)
    assert same(before, snapshot(replay))


@pytest.mark.parametrize("size", [0, -1, 2.5])
def test_bad_batch_sizes_are_refused(name, size, rng):
    replay, columns, _ = filled(name, rng, count=6)
    before = snapshot(replay)
    with pytest.raises(ValueError, match="batch_size"):
        replay.sample(size, columns[0][0])
    assert same(before, snapshot(replay))


def test_an_empty_memory_does_not_sample(name):
    with pytest.raises(ValueError, match="empty"):
        make(name).sample(1, np.zeros(OBSERVATION))


@pytest.mark.parametrize("capacity", [0, -3, 1.5])
def test_bad_capacities_are_refused(name, capacity):
    with pytest.raises(ValueError, match="capacity"):
        make(name, capacity=capacity)


@pytest.mark.parametrize("query", [np.zeros(OBSERVATION + 1), np.full(OBSERVATION, np.nan)])
def test_a_bad_query_is_refused_or_not_looked_at(name, query, rng):
    replay, _, _ = filled(name, rng, count=6)
    before = snapshot(replay)
    if name in NEED_A_QUERY | USE_A_QUERY:
        with pytest.raises(ValueError, match="query"):
            replay.sample(4, query)
        assert same(before, snapshot(replay))
    else:
        assert len(replay.sample(4, query).ids) == 4


@pytest.mark.parametrize(("ids", "errors"), [([0], [np.nan]), ([0, 1], [1.0]), ([0.5], [1.0])])
def test_bad_feedback_is_refused_or_not_looked_at(name, ids, errors, rng):
    replay, _, _ = filled(name, rng, count=3)
    before = snapshot(replay)
    if name in USE_TD_ERRORS:
        with pytest.raises(ValueError, match=r"ids|td_errors"):
            replay.update(ids, errors)
    else:
        replay.update(ids, errors)
    assert same(before, snapshot(replay))


def test_blocks_of_n_equal_n_single_additions(name, rng):
    if name in BLOCKS_DIFFER:
        pytest.skip("draws or returns per block")
    whole, single = make(name), make(name)
    streams = np.arange(8) % 3  # several steps of a stream in one block
    for block in blocks_of(rng, 12):
        whole.extend(*block, streams)
        for i in range(8):
            single.extend(*(column[i : i + 1] for column in block), streams[i : i + 1])
        left, right = (memory.sample(16, block[0][0]) for memory in (whole, single))
        assert same_batch(left, right)


def test_stats_are_plain_numbers_and_exploring_can_stop(name, rng):
    replay, columns, _ = filled(name, rng)
    replay.stop_exploring()
    assert len(replay.sample(4, columns[0][0]).ids) == 4
    assert all(type(value) is float for value in replay.stats().values())
    assert replay.stats()["size"] == len(replay)

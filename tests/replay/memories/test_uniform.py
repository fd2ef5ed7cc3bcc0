"""The uniform memory is a ring whose transitions are equally likely."""

import numpy as np
import pytest
from scipy import stats
from traffic import block_of, same_batch

from lser.replay import UniformReplay, load_replay

RNG = np.random.default_rng(0)


def filled(capacity=10, count=25, **settings):
    replay = UniformReplay(capacity, 3, 2, **settings)
    replay.extend(*block_of(RNG, count))
    return replay


def test_draws_are_uniform_over_the_newest():
    writes = filled().sample(20_000).ids // 10
    counts = np.bincount(writes, minlength=25)
    assert (counts[:15] == 0).all()
    assert stats.chisquare(counts[15:]).pvalue > 1e-3


def test_equal_seeds_and_calls_give_equal_batches():
    replay = UniformReplay(10, 3, 2, seed=4)
    other = UniformReplay(10, 3, 2, seed=4)
    block = block_of(RNG, 7)
    replay.extend(*block)
    other.extend(*block, streams=np.arange(7))
    assert same_batch(replay.sample(6), other.sample(6, query=np.zeros(3)))


def test_a_saved_memory_continues_with_the_same_batches(tmp_path):
    replay = filled()
    replay.sample(3)
    replay.save(tmp_path / "memory")
    loaded = load_replay(tmp_path / "memory")
    assert len(loaded) == 10
    assert loaded.stats() == replay.stats()
    block = block_of(RNG, 4)
    assert loaded.extend(*block).tolist() == replay.extend(*block).tolist()
    assert same_batch(loaded.sample(50), replay.sample(50))


@pytest.mark.parametrize("size", [0, -1, 1.5, True])
def test_a_bad_batch_size_is_refused(size):
    with pytest.raises(ValueError, match=f"batch_size must be .*{size}"):
        filled().sample(size)


def test_an_empty_memory_cannot_be_sampled():
    with pytest.raises(ValueError, match="batch_size=3: the memory is empty"):
        UniformReplay(10, 3, 2).sample(3)


def test_bad_input_changes_nothing():
    replay = filled(seed=1)
    before = replay.state()
    rows, ids = before.arrays["rows"].copy(), before.arrays["ids"].copy()
    block = list(block_of(RNG, 3))
    block[2] = np.array([0.0, np.nan, 0.0])
    with pytest.raises(ValueError, match="reward"):
        replay.extend(*block)
    after = replay.state()
    assert after.config == before.config
    np.testing.assert_array_equal(after.arrays["rows"], rows)
    np.testing.assert_array_equal(after.arrays["ids"], ids)

"""LSER saved, loaded, in a file, given bad input, and after very many operations."""

import numpy as np
import pytest
from traffic import block_of, contents_of, same_batch

from lser.replay import E2LSH, ConstantCode, LocalityReplay, RandomCode, SimHash, load_replay

RNG = np.random.default_rng(0)
ENCODERS = {
    "simhash": lambda: SimHash(3, bits=5, seed=3, features="standardised", warmup=60),
    "e2lsh": lambda: E2LSH(3, functions=2, seed=1),
    "constant": ConstantCode,
    "random": lambda: RandomCode(bits=4, seed=2),
}
OPTIONS = (
    {},
    {"unseen": "evict", "greedy_per": "item"},
    {"store": "fifo", "random_from": "memory"},
    {"order": "return", "fill": "uniform"},
    {"order": "return", "store": "fifo", "sampling": "uniform"},
)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("options", OPTIONS)
def test_a_saved_memory_continues_exactly(tmp_path, encoder, options):
    replay = LocalityReplay(60, 3, 2, greedy=0.5, encoder=ENCODERS[encoder](), **options)
    for step in range(30):
        if step in (0, 2, 15, 29):
            replay.save(tmp_path / "memory")
            other = load_replay(tmp_path / "memory")
        block, asked = block_of(RNG, 5), RNG.standard_normal(3)
        assert other.extend(*block).tolist() == replay.extend(*block).tolist()
        other.check()
        assert same_batch(replay.sample(9, asked), other.sample(9, asked))
    assert contents_of(other) == contents_of(replay)
    assert other.stats() == replay.stats()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"capacity": 0}, "capacity must be >= 1, got 0"),
        ({"bits": 0}, "bits must be from 1 to 32, got 0"),
        ({"bits": 33}, "bits must be from 1 to 32, got 33"),
        ({"greedy": 1.5}, r"greedy must be in \[0, 1\], got 1.5"),
        ({"greedy": float("nan")}, "greedy"),
        ({"discount": -1}, r"discount must be in \[0, 1\], got -1"),
        ({"seed": -3}, "seed must be >= 0, got -3"),
        ({"unseen": "keep"}, "unseen must be one of 'drop', 'evict', got 'keep'"),
        ({"order": "age"}, "order must be one of"),
        ({"greedy_per": "day"}, "greedy_per must be one of"),
        ({"random_from": "x"}, "random_from must be one of"),
        ({"fill": None}, "fill must be one of"),
        ({"store": "lifo"}, "store must be one of"),
        ({"sampling": ""}, "sampling must be one of"),
        ({"features": "whitened"}, "features must be one of"),
    ],
)
def test_bad_settings_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        LocalityReplay(**{"capacity": 9, "observation_dim": 3, "action_dim": 2, **settings})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, np.zeros(3)), "batch_size must be >= 1, got 0"),
        ((2.0, np.zeros(3)), "batch_size must be an integer, got 2.0"),
        ((2, None), "query=None"),
        ((2, np.zeros(2)), r"query has shape \(2,\), expected \(3\)"),
        ((2, np.zeros((1, 3))), r"query has shape \(1, 3\)"),
        ((2, np.array([0, np.nan, 0])), r"query\[1\] = nan"),
        ((2, "abc"), "query is not an array of numbers"),
    ],
)
def test_a_bad_draw_is_refused_and_changes_nothing(arguments, words):
    replay = LocalityReplay(9, 3, 2, greedy=0.5)
    replay.extend(*block_of(RNG, 6))
    before = replay.state().config
    with pytest.raises(ValueError, match=words):
        replay.sample(*arguments)
    assert replay.state().config == before


def test_an_empty_memory_cannot_be_sampled():
    with pytest.raises(ValueError, match="the memory is empty"):
        LocalityReplay(9, 3, 2).sample(3, np.zeros(3))


@pytest.mark.parametrize("index", range(6))
def test_a_bad_block_is_refused_and_changes_nothing(index):
    replay = LocalityReplay(9, 3, 2, order="return")
    replay.extend(*block_of(RNG, 6))
    before, config = contents_of(replay), replay.state().config
    block = list(block_of(RNG, 4))
    for bad in (np.full(np.shape(block[index]), np.nan), block[index][:3], "abc"):
        wrong = [*block[:index], bad, *block[index + 1 :]]
        with pytest.raises(ValueError):
            replay.extend(*wrong)
    with pytest.raises(ValueError, match="streams"):
        replay.extend(*block, streams=[1, 2])
    assert contents_of(replay) == before
    assert replay.state().config == config


def test_a_memmap_memory_is_the_same_memory(tmp_path):
    replay = LocalityReplay(50, 3, 2, storage="memmap", path=tmp_path / "rows")
    plain = LocalityReplay(50, 3, 2)
    for _ in range(20):
        block, asked = block_of(RNG, 6), RNG.standard_normal(3)
        assert replay.extend(*block).tolist() == plain.extend(*block).tolist()
        assert same_batch(replay.sample(4, asked), plain.sample(4, asked))
    replay.save(tmp_path / "memory")
    with pytest.raises(ValueError, match="rows_path must name a file"):
        load_replay(tmp_path / "memory")
    with pytest.raises(ValueError, match="holds the rows of a memory that is in use"):
        load_replay(tmp_path / "memory", rows_path=tmp_path / "rows")
    loaded = load_replay(tmp_path / "memory", rows_path=tmp_path / "other")
    assert contents_of(loaded) == contents_of(plain)
    plain.save(tmp_path / "plain")
    with pytest.raises(ValueError, match="not a memmap"):
        load_replay(tmp_path / "plain", rows_path=tmp_path / "third")


@pytest.mark.parametrize(
    "options",
    [{}, {"unseen": "evict", "bits": 14}, {"store": "fifo"}, {"greedy": 0.5, "fill": "uniform"}],
)
def test_a_quarter_of_a_million_operations_leave_the_index_sound(options):
    rng = np.random.default_rng(5)
    replay = LocalityReplay(5000, 6, 1, **{"bits": 8, **options})
    done = 0
    while done < 250_000:
        n = int(rng.integers(1, 400))
        observation = rng.standard_normal((n, 6), np.float32) + rng.standard_normal(6, np.float32)
        reward = (rng.integers(0, 4, n) + rng.random()).astype(np.float32)
        flags = np.zeros(n, bool)
        replay.extend(observation, observation[:, :1], reward, observation, flags, flags)
        for k in range(3):
            replay.sample(int(rng.integers(1, 200)), observation[k % n])
        done += n + 3
        if rng.random() < 0.05:
            replay.check()
    replay.check()

"""Random numbers inside kernels: published values, ranges, distributions."""

import numpy as np
import pytest
from scipy import stats

from lser.compiled import kernel
from lser.random import below, distinct, next_bits, normal_at, unit, unit_at, word_at

KEYS = np.random.default_rng(0).integers(2**64, size=100, dtype=np.uint64)


@kernel
def table(keys: np.ndarray, columns: int) -> tuple[np.ndarray, np.ndarray]:
    units, normals = np.empty((len(keys), columns)), np.empty((len(keys), columns))
    for i in range(len(keys)):
        for j in range(columns):
            units[i, j], normals[i, j] = unit_at(keys[i], j), normal_at(keys[i], j)
    return units, normals


def test_the_words_of_a_stream_are_those_of_splitmix64():
    """The first outputs for the seed 1234567, as its reference implementation prints them."""
    words = [int(word_at(np.uint64(1234567), index)) for index in range(5)]
    state = np.array([1234567], np.uint64)
    assert [int(next_bits(state)) for _ in words] == words
    assert words == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_a_number_depends_on_its_key_and_index_alone():
    wide, narrow = table(KEYS, 200), table(KEYS[::-1], 50)
    for all_numbers, some in zip(wide, narrow, strict=True):
        np.testing.assert_array_equal(all_numbers[::-1, :50], some)


def test_units_are_uniform_and_normals_normal():
    units, normals = table(KEYS, 200)
    assert units.min() >= 0
    assert units.max() < 1
    assert stats.kstest(units.ravel(), "uniform").pvalue > 1e-3
    assert stats.kstest(normals.ravel(), "norm").pvalue > 1e-3
    for numbers in (units, normals):  # neither rows nor columns go together
        assert abs(np.corrcoef(numbers[:-1].ravel(), numbers[1:].ravel())[0, 1]) < 0.03
        assert abs(np.corrcoef(numbers[:, :-1].ravel(), numbers[:, 1:].ravel())[0, 1]) < 0.03
    assert abs(np.corrcoef(units.ravel(), normals.ravel())[0, 1]) < 0.03


def test_integers_below_a_bound_are_uniform():
    state = np.array([3], np.uint64)
    draws = [below(state, 7) for _ in range(7000)]
    assert stats.chisquare(np.bincount(draws, minlength=7)).pvalue > 1e-3
    assert below(state, 1) == 0
    assert 0 <= below(state, 2**32 - 1) < 2**32 - 1


def test_units_in_turn_are_those_by_counter():
    state = np.array([5], np.uint64)
    assert [unit(state) for _ in range(4)] == [unit_at(np.uint64(5), i) for i in range(4)]


@pytest.mark.parametrize(("n", "count"), [(5, 3), (40, 39), (3, 3), (2, 6), (1000, 1)])
def test_distinct_integers_are_distinct_and_all_equally_likely(n, count):
    state, held = np.array([9], np.uint64), np.zeros(n)
    rounds = 2000
    for _ in range(rounds):
        picks = np.full(count, -1, np.int64)
        drawn = distinct(state, n, picks)
        assert drawn == min(n, count)
        assert len(set(picks[:drawn].tolist())) == drawn
        held[picks[:drawn]] += 1
    expected = rounds * min(n, count) / n
    assert np.abs(held - expected).max() <= 5 * np.sqrt(expected)

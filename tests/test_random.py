"""Random numbers inside kernels: published values, ranges, distributions."""

import numpy as np
from scipy import stats

from lser.compiled import kernel
from lser.random import normal_at, unit_at, word_at

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

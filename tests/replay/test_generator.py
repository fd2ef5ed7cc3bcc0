"""Kernels draw from a generator what its own methods would, and leave it where these would."""

import numpy as np
import pytest

from lser.compiled import kernel
from lser.replay.generator import NO_INTEGERS, NO_POINTS, address_of, draw_numbers, next_word

SIZES = [1, 2, 3, 7, 1000, 50_000, 2**31 + 1, 3 * 2**30, 2**32 - 1, 2**32, 2**32 + 1]
SIZES += [2**38, 2**62 + 1, 2**63 - 1]  # half of the words, or of the halves, are refused for some


@kernel
def words(generator: int, out: np.ndarray) -> None:
    for i in range(len(out)):
        out[i] = next_word(generator)


@pytest.mark.parametrize("n", SIZES)
def test_draws_are_those_of_the_methods(n):
    rng, twin = np.random.default_rng(n), np.random.default_rng(n)
    draws = np.zeros(1, np.int64)
    for count in (1, 5, 200, 33):  # odd ones leave half of a word to the next
        slots, points = np.empty(count, np.int64), np.empty(2 * count)
        draw_numbers(address_of(rng), n, slots, points, draws)
        np.testing.assert_array_equal(slots, twin.integers(n, size=count))
        np.testing.assert_array_equal(points, twin.random(2 * count))
        assert rng.bit_generator.state == twin.bit_generator.state
    assert draws[0] == 4


def test_a_single_slot_is_that_of_a_scalar_draw():
    rng, twin = np.random.default_rng(3), np.random.default_rng(3)
    slot, draws = np.empty(1, np.int64), np.zeros(1, np.int64)
    for n in (5, 1, 8):
        draw_numbers(address_of(rng), n, slot, NO_POINTS, draws)
        assert slot[0] == twin.integers(n)
    assert rng.bit_generator.state == twin.bit_generator.state


def test_words_are_the_raw_ones():
    rng, twin = np.random.default_rng(4), np.random.default_rng(4)
    found = np.empty(9, np.uint64)
    words(address_of(rng), found)
    np.testing.assert_array_equal(found, twin.bit_generator.random_raw(9))
    assert rng.bit_generator.state == twin.bit_generator.state


def test_drawing_nothing_counts_and_leaves_the_generator():
    rng, draws = np.random.default_rng(5), np.zeros(1, np.int64)
    before = rng.bit_generator.state
    draw_numbers(address_of(rng), 10, NO_INTEGERS, NO_POINTS, draws)
    assert draws[0] == 1
    assert rng.bit_generator.state == before

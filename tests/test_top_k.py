"""Slates against a full sort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lser.top_k import top_k


@given(
    n=st.integers(1, 5),
    m=st.integers(1, 300),
    share=st.floats(0, 1),
    levels=st.sampled_from([1, 2, 5, 1000]),
    seed=st.integers(0, 2**32 - 1),
)
def test_top_k_equals_a_stable_sort_with_and_without_ties(n, m, share, levels, seed):
    scores = np.random.default_rng(seed).integers(0, levels, (n, m)).astype(np.float32)
    k = 1 + int(share * (m - 1))
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(top_k(scores, k), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_selection_from_many_items_equals_the_sort(dtype):
    scores = np.random.default_rng(0).standard_normal((7, 20_000)).astype(dtype)
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :10]
    np.testing.assert_array_equal(top_k(scores, 10), expected)


def test_equal_scores_go_to_the_lower_index():
    assert top_k(np.zeros((1, 70)), 3).tolist() == [[0, 1, 2]]


def test_items_of_a_slate_are_distinct():
    chosen = top_k(np.zeros((4, 200), np.float32), 50)
    assert all(len(set(row)) == 50 for row in chosen.tolist())

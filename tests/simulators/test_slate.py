"""Slates against a full sort, and scores against sums written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lser.simulators import slate
from lser.simulators.slate import score, top_k


def sorted_top_k(scores, k):
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


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
    np.testing.assert_array_equal(top_k(scores, k), sorted_top_k(scores, k))


def test_selection_from_many_items_equals_the_sort():
    scores = np.random.default_rng(0).standard_normal((7, 20_000))
    np.testing.assert_array_equal(top_k(scores, 10), sorted_top_k(scores, 10))


def test_equal_scores_go_to_the_lower_index():
    for m in (3, slate.SELECT_FROM + 3):
        assert top_k(np.zeros((1, m)), 3).tolist() == [[0, 1, 2]]


def test_items_of_a_slate_are_distinct():
    chosen = top_k(np.zeros((4, 200), np.float32), 50)
    assert all(len(set(row)) == 50 for row in chosen.tolist())


@pytest.mark.parametrize("k", [0, -1, 6])
def test_a_slate_longer_than_the_items_or_empty_is_an_error(k):
    with pytest.raises(ValueError, match=rf"k must be in 1\.\.5, got {k}"):
        top_k(np.zeros((2, 5)), k)


def test_scores_of_shared_and_of_own_candidates_are_inner_products():
    rng = np.random.default_rng(0)
    weights, shared, own = rng.random((3, 4)), rng.random((6, 4)), rng.random((3, 6, 4))
    np.testing.assert_allclose(score(weights, shared), np.einsum("nd,md->nm", weights, shared))
    np.testing.assert_allclose(score(weights, own), np.einsum("nd,nmd->nm", weights, own))


def test_a_slate_holds_the_items_the_weights_point_at():
    items = np.eye(4)
    weights = np.array([[0.1, 0.9, -1.0, 0.5]])
    assert slate.slate(weights, items, 2).tolist() == [[1, 3]]


@pytest.mark.parametrize("shape", [(6, 3), (6,), (2, 6, 4)])
def test_items_that_do_not_fit_the_weights_are_an_error(shape):
    with pytest.raises(ValueError, match="do not fit"):
        score(np.zeros((3, 4)), np.zeros(shape))

"""The item index: exact against a naive twin, faiss against exact, large catalogues."""

import sys
import tracemalloc

import numpy as np
import pytest

from lser.simulators.bazaar import Params
from lser.simulators.bazaar.simulator import Bazaar
from lser.simulators.bazaar.world import World
from lser.simulators.item_index import EXACT_UP_TO, ExactIndex, FaissIndex, build_index


def vectors(rows: int, seed: int, d: int = 8) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, d)).astype(np.float32)


@pytest.mark.parametrize("k", [1, 7, 50])
def test_the_scan_finds_what_a_full_sort_finds(k: int) -> None:
    items, weights = vectors(50, 0), vectors(30, 1)
    found = ExactIndex(items).search(weights, k)
    np.testing.assert_array_equal(
        found, np.argsort(-(weights @ items.T), axis=1, kind="stable")[:, :k]
    )


def test_ties_go_to_the_lower_index() -> None:
    items = np.ones((6, 3), np.float32)
    np.testing.assert_array_equal(ExactIndex(items).search(items[:2], 4), [[0, 1, 2, 3]] * 2)


def test_the_scan_in_blocks_equals_the_scan_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    items, weights = vectors(40, 0), vectors(25, 1)
    whole = ExactIndex(items).search(weights, 5)
    monkeypatch.setattr("lser.simulators.item_index._SCORES_AT_ONCE", 100)
    np.testing.assert_array_equal(ExactIndex(items).search(weights, 5), whole)


def test_auto_scans_small_catalogues_and_indexes_large_ones() -> None:
    pytest.importorskip("faiss")
    assert isinstance(build_index(vectors(100, 0), "auto"), ExactIndex)
    assert isinstance(build_index(vectors(EXACT_UP_TO + 1, 0), "auto"), FaissIndex)
    assert isinstance(build_index(vectors(EXACT_UP_TO + 1, 0), "exact"), ExactIndex)


def test_faiss_finds_nearly_all_of_the_best_items() -> None:
    pytest.importorskip("faiss")
    world = World(Params(items=50_000))
    weights = np.random.default_rng(0).uniform(-1, 1, (100, 8)).astype(np.float32)
    exact = ExactIndex(world.features).search(weights, 10)
    found = FaissIndex(world.features).search(weights, 10)
    recall = np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(exact, found, strict=True)])
    assert recall > 0.9


def test_without_faiss_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match="pip install faiss-cpu"):
        FaissIndex(vectors(100, 0))


@pytest.mark.slow
def test_a_million_items_work_and_random_ctr_holds() -> None:
    pytest.importorskip("faiss")
    bazaar = Bazaar(Params(items=1_000_000))
    rng = np.random.default_rng(0)
    users = bazaar.arrive(rng, 2_000)
    action = rng.uniform(-1, 1, (2_000, 8)).astype(np.float32)
    outcome = bazaar.step(users, action, rng)
    assert outcome.info["slate"].max() > 900_000
    ctr = outcome.reward / bazaar.params.slate
    error = ctr.std() / np.sqrt(len(ctr))
    assert abs(ctr.mean() - bazaar.params.sparsity) < 0.1 * bazaar.params.sparsity + 4 * error


def test_memory_grows_linearly_in_items() -> None:
    def peak(items: int) -> int:
        tracemalloc.start()
        World(Params(items=items)).features.sum()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(80_000) < 2.2 * peak(40_000)


def test_memory_grows_linearly_in_users() -> None:
    bazaar = Bazaar(Params())

    def peak(users: int) -> int:
        rng = np.random.default_rng(0)
        batch = bazaar.arrive(rng, users)
        action = rng.uniform(-1, 1, (users, 8)).astype(np.float32)
        tracemalloc.start()
        bazaar.step(batch, action, rng)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(10)  # compiles
    assert peak(80_000) < 2.2 * peak(40_000)


def test_an_index_that_finds_too_few_items_says_so() -> None:
    index = FaissIndex(vectors(500, 0), probes=1)
    with pytest.raises(RuntimeError, match="found fewer than 400 items; use index='exact'"):
        index.search(vectors(2, 1), 400)

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lser.replay.generator import address_of
from lser.replay.sum_tree import SumTree


def naive_find(priorities, point):
    """The slot under a point of the line of stacked priorities."""
    mass, chosen = point * priorities.sum(), -1
    for slot in np.flatnonzero(priorities):
        chosen = slot
        if mass < priorities[slot]:
            break
        mass -= priorities[slot]
    return chosen


writes = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 1000)), min_size=1, max_size=60)


@settings(max_examples=150, deadline=None)
@given(capacity=st.integers(1, 700), traffic=writes, points=st.lists(st.integers(0, 999)))
def test_it_agrees_with_a_plain_array_under_random_traffic(capacity, traffic, points):
    tree, plain = SumTree(capacity), np.zeros(capacity)
    for i in range(0, len(traffic), 7):  # whole numbers add without rounding: ties are exact
        slots = np.array([slot % capacity for slot, _ in traffic[i : i + 7]])
        values = np.array([float(value) for _, value in traffic[i : i + 7]])
        tree.set(slots, values)
        for slot, value in zip(slots, values, strict=True):
            plain[slot] = value
    assert np.array_equal(tree.priorities, plain)
    assert tree.total == plain.sum()
    if plain.any():
        at = np.array(points, dtype=float) / 1000
        assert tree.find(at).tolist() == [naive_find(plain, point) for point in at]


def test_slots_without_priority_are_never_found():
    rng = np.random.default_rng(0)
    tree = SumTree(1000)
    chosen = rng.choice(1000, 20, replace=False)
    tree.set(chosen, rng.random(20) * 1e-9 + 1e-12)
    points = np.concatenate((rng.random(10_000), [0.0, np.nextafter(1.0, 0.0)]))
    assert set(tree.find(points).tolist()) <= set(chosen.tolist())


def test_a_draw_from_a_generator_is_that_of_its_uniforms_and_is_counted():
    rng, twin = np.random.default_rng(1), np.random.default_rng(1)
    tree, draws = SumTree(300), np.zeros(1, np.int64)
    tree.set(np.arange(300), np.random.default_rng(2).random(300))
    for size in (1, 7, 64):
        found = tree.draw_from(address_of(rng), size, 0.4, draws)
        for mine, plain in zip(found, tree.draw(twin.random(size), 0.4), strict=True):
            np.testing.assert_array_equal(mine, plain)
    assert draws.tolist() == [3]
    assert rng.bit_generator.state == twin.bit_generator.state


def test_rounding_does_not_build_up():
    rng = np.random.default_rng(0)
    tree = SumTree(500)
    for _ in range(300):
        tree.set(rng.integers(500, size=100), rng.random(100) * 10.0 ** rng.integers(-6, 6, 100))
    assert tree.total == pytest.approx(tree.priorities.sum(), rel=1e-12)


def test_one_priority_may_be_set_for_many_slots():
    tree = SumTree(9)
    tree.set(np.arange(9), 2.0)
    assert tree.total == 18.0


def test_its_priorities_cannot_be_written_past_it():
    with pytest.raises(ValueError, match="read-only"):
        SumTree(3).priorities[0] = 1.0


def test_a_capacity_below_one_is_refused():
    with pytest.raises(ValueError, match="capacity must be at least 1, got 0"):
        SumTree(0)

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lser.compiled import kernel
from lser.random import below
from lser.replay import AttentiveReplay
from lser.replay.memories.attention import cosine as of_cosine
from lser.replay.memories.attention import features_of
from lser.replay.memories.sketch import bound, new_sketches, sketch_rows

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
# Few values, so that rows repeat, lie in one line, have no direction, or differ in the last bits.
NEAR = st.sampled_from([0.0, 1.0, 1.0 + 2**-12, 1.0 + 2**-20, -1.0, 2.0, 300.0, 1e-30, 1e30])


def filled(rng, count=200, dim=5, **knobs):
    replay = AttentiveReplay(count, dim, 1, seed=4, **knobs)
    # Features of different means and scales, one of them constant.
    observation = rng.normal(size=(count, dim)) * [1, 10, 0.1, 0, 3][:dim] + [0, 50, 0, 7, 1][:dim]
    observation = observation.astype(np.float32)
    flags = np.zeros(count, dtype=bool)
    zero = np.zeros((count, 1))
    replay.extend(observation, zero, zero[:, 0], observation, flags, flags)
    return replay, observation.astype(np.float64)


def standardise(observation, by):
    deviation = by.std(axis=0)
    return (observation - by.mean(axis=0)) * np.where(
        deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0
    )


def cosine(left, right):
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right)
    return np.divide(left @ right, lengths, out=np.zeros(len(left)), where=lengths > 0)


def candidates_of(generator, stored, count):
    """The slots that a memory with this generator draws next."""
    state = np.array([generator.bit_generator.random_raw() >> 1], dtype=np.uint64)
    return np.array([below(state, stored) for _ in range(count)])


@pytest.mark.parametrize("features", ["raw", "standardised"])
def test_it_keeps_the_candidates_nearest_by_cosine(features):
    rng = np.random.default_rng(0)
    replay, observation = filled(rng, features=features)
    generator = np.random.default_rng(4)  # the memory's own, by its seed
    for _ in range(20):
        query = observation[rng.integers(200)] + rng.normal(size=5) * 0.1
        drawn = candidates_of(generator, 200, 64)
        batch = replay.sample(16, query)
        table, target = observation, query
        if features == "standardised":
            table, target = standardise(observation, observation), standardise(query, observation)
        best = np.sort(cosine(table[drawn], target))[::-1][:16]
        slots = batch.ids % 200
        assert np.isin(slots, drawn).all()
        assert np.sort(cosine(table[slots], target))[::-1] == pytest.approx(best, abs=1e-12)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(1, 40), st.integers(1, 12), st.sampled_from([FLOATS, NEAR]))
def test_the_choice_is_that_of_brute_force_whatever_the_observations(data, dim, size, values):
    replay = AttentiveReplay(24, dim, 1, seed=7, features="raw")
    rows = data.draw(arrays(np.float32, (30, dim), elements=values))  # the first 6 get lost
    for block in np.split(rows, [13]):
        zero, flags = np.zeros((len(block), 1)), np.zeros(len(block), dtype=bool)
        replay.extend(block, zero, zero[:, 0], block, flags, flags)
    held = np.concatenate((rows[24:], rows[6:24])).astype(np.float64)
    query = data.draw(arrays(np.float32, dim, elements=values))
    batch = replay.sample(size, query)
    drawn = candidates_of(np.random.default_rng(7), 24, 4 * size)
    best = np.sort(cosine(held[drawn], query.astype(np.float64)))[::-1][:size]
    ours = batch.ids % 24
    assert (np.bincount(ours, None, 24) <= np.bincount(drawn, None, 24)).all()
    chosen = np.sort(cosine(held[ours], query.astype(np.float64)))[::-1]
    assert chosen == pytest.approx(best, rel=0, abs=1e-12)


@kernel
def judged(rows, stored, count, mean, squares, query, seed, candidates, slots):
    """`attend` without sketches: the cosines of all candidates, from their rows."""
    state, drawn = np.full(1, seed, np.uint64), np.empty(candidates, np.int64)
    shift, scale, direction = features_of(count[0], mean, squares, query)
    cosines = np.empty(candidates)
    for i in range(candidates):
        drawn[i] = below(state, stored)
        found = of_cosine(rows[drawn[i]], shift, scale, direction)
        cosines[i] = found if abs(found) <= 2.0 else 0.0
    least = np.partition(cosines, candidates - len(slots))[candidates - len(slots)]
    ties = len(slots) - np.sum(cosines > least)
    kept = 0
    for i in range(candidates):
        tied = cosines[i] == least and ties > 0
        if cosines[i] > least or tied:
            slots[kept] = drawn[i]
            kept += 1
            ties -= tied


def observations(name, rng, dim):
    """400 observations of a kind that may be hard on a sketch."""
    x = rng.standard_normal((400, dim))
    match name:
        case "one-hot":
            x = np.eye(dim)[rng.integers(dim, size=400)]
        case "constant":
            x[:] = 3.0
        case "huge":
            x *= 1e37
        case "tiny":
            x *= 1e-40
        case "far away":
            x += 1e4
        case "mixed scales":
            x *= 10.0 ** rng.integers(-20, 20, dim)
        case "rows of mixed scales":
            x *= 10.0 ** rng.integers(-30, 30, (400, 1))
        case "almost equal":
            x = 1 + 1e-6 * x
    return x.astype(np.float32)


KINDS = ("normal", "one-hot", "constant", "huge", "tiny", "far away", "mixed scales")


@pytest.mark.parametrize("features", ["raw", "standardised"])
@pytest.mark.parametrize("name", [*KINDS, "rows of mixed scales", "almost equal"])
def test_sketches_never_decide_what_is_drawn(name, features):
    rng = np.random.default_rng(2)
    for dim in (1, 7, 32, 91):
        rows = observations(name, rng, dim)
        replay = AttentiveReplay(400, dim, 1, features=features)
        zero, flags = np.zeros((400, 1)), np.zeros(400, dtype=bool)
        replay.extend(rows, zero, zero[:, 0], rows, flags, flags)
        generator = np.random.default_rng(0)
        for query in rows[:12]:
            seed = generator.bit_generator.random_raw() >> 1
            size = int(rng.integers(1, 40))
            slots = np.empty(size, np.int64)
            parts = replay._moments.parts
            judged(replay.store.rows, 400, *parts, query, seed, 4 * size, slots)
            assert (replay.sample(size, query).ids % 400).tolist() == slots.tolist()


def test_sketches_spare_most_rows():
    """The bounds hold the cosine, and are narrow."""
    rng = np.random.default_rng(2)
    rows = observations("normal", rng, 91)
    sketches, slots = new_sketches(400, 91), np.arange(400)
    sketch_rows(sketches, 0, rows, 91)
    assert sketches.ctypes.data % 64 == 0
    low, high = np.empty((2, 400), np.float32)
    one, direction = np.ones(91), rows[0] / np.linalg.norm(rows[0].astype(np.float64))
    bound(sketches, slots, 0 * one, one, direction, low, high)
    right = cosine(rows.astype(np.float64), direction)
    assert (low <= right).all()
    assert (right <= high).all()
    assert (high - low).max() < 0.01


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8])
def test_bounds_are_those_of_each_sketch_however_many_there_are(count):
    rng = np.random.default_rng(2)
    rows, slots = observations("normal", rng, 91), rng.integers(400, size=count)
    sketches = new_sketches(400, 91)
    sketch_rows(sketches, 0, rows, 91)
    shift, scale, direction = rng.normal(size=91), np.ones(91), np.full(91, 91**-0.5)
    low, high = np.empty((2, count), np.float32)
    bound(sketches, slots, shift, scale, direction, low, high)
    right = cosine(rows[slots] - shift, direction)
    assert (low <= right).all()
    assert (right <= high).all()
    assert (high - low).max() < 0.02


def test_candidates_that_differ_in_the_fifth_digit_are_told_apart():
    rng = np.random.default_rng(3)
    rows = (1 + 1e-5 * rng.normal(size=(1000, 20))).astype(np.float32)
    for features in ("raw", "standardised"):
        replay = AttentiveReplay(1000, 20, 1, features=features)
        zero, flags = np.zeros((1000, 1)), np.zeros(1000, dtype=bool)
        replay.extend(rows, zero, zero[:, 0], rows, flags, flags)
        table, target = rows.astype(np.float64), rows[5].astype(np.float64)
        if features == "standardised":
            table, target = standardise(table, table), standardise(target, table)
        drawn = candidates_of(np.random.default_rng(0), 1000, 256)
        best = np.sort(np.argsort(-cosine(table[drawn], target), kind="stable")[:64])
        assert (replay.sample(64, rows[5]).ids % 1000).tolist() == drawn[best].tolist()


@pytest.mark.parametrize("query", [[0.0, 0.0], [1.0, 2.0]])
def test_ties_go_to_the_candidates_drawn_first(query):
    replay = AttentiveReplay(50, 2, 1, features="raw")
    rows, zero, flags = np.ones((50, 2)), np.zeros((50, 1)), np.zeros(50, dtype=bool)
    replay.extend(rows, zero, zero[:, 0], rows, flags, flags)
    drawn = candidates_of(np.random.default_rng(0), 50, 40)
    assert (replay.sample(10, query).ids % 50).tolist() == drawn[:10].tolist()


def test_candidates_fall_to_the_batch_over_the_first_draws():
    rng = np.random.default_rng(0)
    replay, observation = filled(rng, candidates=4.0, anneal=10)
    factors = []
    for _ in range(12):
        factors.append(replay.stats()["candidates"])
        replay.sample(8, observation[0])
    assert factors == pytest.approx([4 - 0.3 * min(i, 10) for i in range(12)])


@pytest.mark.parametrize("annealed", [True, False])
def test_draws_are_uniform_at_the_end_and_without_a_query(annealed):
    rng = np.random.default_rng(0)
    replay, observation = filled(rng, count=20, anneal=1)
    if annealed:
        replay.sample(1, observation[0])
    counts = np.zeros(20)
    for _ in range(500):
        batch = replay.sample(8, observation[0] if annealed else None)
        counts += np.bincount(batch.ids % 20, None, 20)
    assert counts.min() > 140  # 200 expected, deviation 14
    assert counts.max() < 260


def test_statistics_cover_what_was_added_and_is_gone():
    rng = np.random.default_rng(1)
    replay = AttentiveReplay(10, 2, 1)
    rows = rng.normal(size=(50, 2)).astype(np.float32)
    for i in range(0, 50, 5):
        zero, flags = np.zeros((5, 1)), np.zeros(5, dtype=bool)
        replay.extend(rows[i : i + 5], zero, zero[:, 0], rows[i : i + 5], flags, flags)
    arrays = replay.state().arrays
    assert arrays["moments_mean"] == pytest.approx(rows.mean(axis=0), abs=1e-6)
    assert arrays["moments_squares"] / 50 == pytest.approx(rows.var(axis=0), rel=1e-5)


@pytest.mark.parametrize(
    ("knob", "value"), [("candidates", 0.5), ("anneal", 0), ("features", "centred")]
)
def test_bad_knobs_are_refused_by_name_and_value(knob, value):
    with pytest.raises(ValueError, match=rf"{knob}.*{value}"):
        AttentiveReplay(4, 1, 1, **{knob: value})

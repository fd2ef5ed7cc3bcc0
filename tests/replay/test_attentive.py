import numpy as np
import pytest

from lser.replay import AttentiveReplay


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
    return left @ right / (np.linalg.norm(left, axis=1) * np.linalg.norm(right))


@pytest.mark.parametrize("features", ["raw", "standardised"])
def test_it_keeps_the_candidates_nearest_by_cosine(features):
    rng = np.random.default_rng(0)
    replay, observation = filled(rng, features=features)
    candidates = np.random.default_rng(4)  # the memory's own draws, by its seed
    for _ in range(20):
        query = observation[rng.integers(200)] + rng.normal(size=5) * 0.1
        drawn = candidates.integers(200, size=64)
        batch = replay.sample(16, query)
        table, target = observation, query
        if features == "standardised":
            table, target = standardise(observation, observation), standardise(query, observation)
        best = np.sort(cosine(table[drawn], target))[::-1][:16]
        assert np.isin(batch.ids, drawn).all()
        assert np.sort(cosine(table[batch.ids], target))[::-1] == pytest.approx(best, abs=1e-5)


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
        counts += np.bincount(replay.sample(8, observation[0] if annealed else None).ids, None, 20)
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

import numpy as np
import pytest
from scipy.stats import chisquare

from lser.replay import PrioritizedReplay


def filled(count, capacity=None, **knobs):
    replay = PrioritizedReplay(capacity or count, 1, 1, **knobs)
    column = np.arange(count, dtype=np.float32)[:, None]
    flags = np.zeros(count, dtype=bool)
    ids = replay.extend(column, column, column[:, 0], column, flags, flags)
    return replay, ids


def test_draws_follow_priority_to_the_power_of_alpha():
    replay, ids = filled(10, alpha=0.6)
    errors = np.array([0.0, 0.1, -0.5, 1.0, -2.0, 3.0, 5.0, 0.01, 8.0, -1.0])
    replay.update(ids, errors)
    expected = (np.abs(errors) + 1e-6) ** 0.6
    counts = np.zeros(10)
    for _ in range(3000):  # one at a time, so that draws are independent
        counts[replay.sample(1).ids % 10] += 1
    keep = expected / expected.sum() * 3000 > 5
    share = expected[keep] / expected[keep].sum() * counts[keep].sum()
    assert chisquare(counts[keep], share).pvalue > 0.001
    assert counts[~keep].sum() < 15


def test_a_batch_takes_one_draw_from_each_equal_share_of_the_total():
    replay, ids = filled(4, alpha=1.0, offset=1e-12)
    replay.update(ids, [1.0, 2.0, 4.0, 1.0])
    for _ in range(50):
        assert np.bincount(replay.sample(8).ids % 4).tolist() == [1, 2, 4, 1]


@pytest.mark.parametrize("draws", [0, 50, 100, 500])
def test_weights_are_the_closed_form_over_the_largest_of_the_batch(draws):
    replay, ids = filled(6, alpha=0.7, beta=0.4, anneal=100)
    errors = np.array([0.2, -1.0, 3.0, 0.5, 2.0, 7.0])
    replay.update(ids, errors)
    for _ in range(draws):
        replay.sample(1)
    priority = (np.abs(errors) + 1e-6) ** 0.7
    beta = 0.4 + 0.6 * min(draws / 100, 1.0)
    assert replay.stats()["beta"] == pytest.approx(beta)
    batch = replay.sample(64)
    weights = (6 * priority / priority.sum()) ** -beta
    drawn = weights[batch.ids % 6]
    assert batch.weights == pytest.approx(drawn / drawn.max(), rel=1e-6)


def test_new_transitions_get_the_largest_priority_seen():
    replay, ids = filled(3, capacity=10, alpha=1.0)
    replay.update(ids, [0.5, 9.0, 0.25])
    replay.update(ids[1:2], [1.0])  # seen, though nobody has it any more
    flags = np.zeros(1, dtype=bool)
    replay.extend([[3.0]], [[3.0]], [3.0], [[3.0]], flags, flags)
    priorities = replay.state().arrays["priorities"]
    assert priorities[:4] == pytest.approx([0.5, 1.0, 0.25, 9.0], rel=1e-5)


def test_the_last_of_several_errors_for_one_transition_counts():
    replay, ids = filled(2, alpha=1.0)
    replay.update([ids[0], ids[0]], [5.0, 0.5])
    assert replay.state().arrays["priorities"][0] == pytest.approx(0.5, rel=1e-5)


def test_late_feedback_does_not_reach_the_transition_that_took_the_place():
    replay, ids = filled(4, capacity=4)
    column = np.arange(4, dtype=np.float32)[:, None]
    flags = np.zeros(4, dtype=bool)
    replay.extend(column, column, column[:, 0], column, flags, flags)
    before = replay.state().arrays["priorities"].copy()
    replay.update(ids, [100.0] * 4)
    assert np.array_equal(replay.state().arrays["priorities"], before)


@pytest.mark.parametrize(
    ("knob", "value"), [("alpha", -0.1), ("beta", 1.5), ("anneal", 0), ("offset", 0.0)]
)
def test_bad_knobs_are_refused_by_name_and_value(knob, value):
    with pytest.raises(ValueError, match=rf"{knob}.*{value}"):
        PrioritizedReplay(4, 1, 1, **{knob: value})

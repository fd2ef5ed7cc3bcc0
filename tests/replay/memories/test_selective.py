import numpy as np
import pytest
from scipy.stats import chisquare

from lser.replay import SelectiveReplay


def add(replay, observation, reward=None, ended=None, streams=None):
    observation = np.asarray(observation, dtype=np.float32)
    count = len(observation)
    reward = np.zeros(count) if reward is None else reward
    ended = np.zeros(count, dtype=bool) if ended is None else ended
    zero = np.zeros((count, 1))
    flags = np.zeros(count, dtype=bool)
    return replay.extend(observation, zero, reward, observation, flags, ended, streams)


def parts(replay):
    """The newest and the long-term transitions, by the numbers of their writes."""
    arrays = replay.state().arrays
    writes = arrays["ids"] // replay.capacity
    _, newest, _, kept = arrays["places_counts"]
    ring, heap = arrays["places_ring"][:newest], arrays["places_heap"][:kept]
    return set(writes[ring].tolist()), set(writes[heap].tolist())


@pytest.mark.parametrize("strategy", ["distribution", "surprise", "reward", "coverage"])
def test_the_newest_half_is_first_in_first_out(strategy):
    replay = SelectiveReplay(20, 2, 1, strategy=strategy)
    rng = np.random.default_rng(0)
    for step in range(60):
        add(replay, rng.normal(size=(1, 2)), rng.random(1))
        newest, kept = parts(replay)
        assert newest == set(range(max(step - 9, 0), step + 1))
        assert len(kept) == min(max(step + 1 - 10, 0), 10)
        assert not newest & kept


def test_every_transition_of_the_past_is_kept_with_the_same_probability():
    counts = np.zeros(40)
    for seed in range(1000):
        replay = SelectiveReplay(20, 1, 1, seed=seed)
        for _ in range(5):
            add(replay, np.zeros((10, 1)))
        counts[list(parts(replay)[1])] += 1
    assert counts.sum() == 10_000
    # Fixed sample sizes spread less than independent draws: a low p-value would still be a fault.
    assert chisquare(counts).pvalue > 0.001


def test_the_most_surprising_are_kept():
    replay = SelectiveReplay(20, 1, 1, strategy="surprise")
    rng = np.random.default_rng(0)
    errors = rng.normal(size=100)
    for i in range(100):
        ids = add(replay, np.zeros((1, 1)))
        replay.update(ids, errors[i : i + 1])
    past = np.argsort(-np.abs(errors[:90]))[:10]
    assert parts(replay)[1] == set(past.tolist())


def test_a_new_error_changes_the_rank_in_the_long_term():
    replay = SelectiveReplay(4, 1, 1, strategy="surprise")
    for i in range(4):
        ids = add(replay, np.zeros((1, 1)))
        replay.update(ids, [i + 1.0])
        if i == 1:
            (second,) = ids
    replay.update([second], [0.1])  # 0 and 1 are long-term; 1 was the more surprising
    add(replay, np.zeros((1, 1)))  # pushes out 2
    assert parts(replay)[1] == {0, 2}


def test_the_largest_returns_are_kept():
    replay = SelectiveReplay(8, 1, 1, strategy="reward", discount=0.5)
    # Two streams in turn; stream 0 earns only at its end, stream 1 never.
    for step in range(4):
        add(replay, np.zeros((2, 1)), [8.0 * (step == 3), 0.0], [step == 3] * 2)
    for _ in range(4):
        add(replay, np.zeros((1, 1)), [0.5], [True], [2])
    # Returns of ids 0, 2, 4, 6: 1, 2, 4, 8; all of stream 1: 0.
    assert parts(replay)[1] == {0, 2, 4, 6}


def test_returns_reach_what_has_already_left_the_newest():
    replay = SelectiveReplay(4, 1, 1, strategy="reward", discount=1.0)
    for step in range(4):  # one session; its first two steps have left when it ends
        add(replay, np.zeros((1, 1)), [-5.0 * (step == 3)], [step == 3])
    ranks = replay.state().arrays["places_rank"]
    assert ranks.tolist() == [5.0] * 4


def test_those_with_the_fewest_neighbours_are_kept():
    rng = np.random.default_rng(0)
    replay = SelectiveReplay(40, 2, 1, strategy="coverage", radius=0.3, probes=100)
    crowd = rng.normal(size=(200, 2)) * 0.05
    lonely = np.array([[3, 3], [-3, 3], [3, -3], [-3, -3], [0, 4]])
    everyone = np.concatenate((crowd[:100], lonely, crowd[100:]))
    for i in range(0, len(everyone), 5):
        add(replay, everyone[i : i + 5])
    assert set(range(100, 105)) <= parts(replay)[1]


def test_neighbours_are_counted_as_by_brute_force():
    rng = np.random.default_rng(0)
    replay = SelectiveReplay(20, 3, 1, strategy="coverage", radius=0.8, probes=50)
    seen = rng.normal(size=(60, 3)).astype(np.float32)
    for i in range(60):
        kept = sorted(parts(replay)[1])
        add(replay, seen[i : i + 1])
        leaving = i - 10
        if leaving < 1:
            continue
        scaled = seen / seen[: i + 1].std(axis=0)
        distance = np.sqrt(((scaled[kept] - scaled[leaving]) ** 2).mean(axis=1))
        arrays = replay.state().arrays
        rank = arrays["places_rank"][: i + 1][arrays["ids"] // 20 == leaving]  # none where not kept
        assert rank == pytest.approx([-(distance < 0.8).mean()] * len(rank))


def test_a_batch_takes_half_from_each_part():
    replay = SelectiveReplay(20, 1, 1)
    add(replay, np.zeros((10, 1)))
    assert set((replay.sample(50).ids // 20).tolist()) <= set(
        range(10)
    )  # nothing in the long term yet
    add(replay, np.zeros((30, 1)))
    newest, kept = parts(replay)
    ids = replay.sample(64).ids // 20
    assert np.isin(ids, list(newest)).sum() == 32
    assert np.isin(ids, list(kept)).sum() == 32
    assert np.isin(replay.sample(7).ids // 20, list(newest)).sum() == 4


def test_both_parts_are_drawn_from_uniformly():
    replay = SelectiveReplay(10, 1, 1)
    add(replay, np.zeros((25, 1)))
    counts = {i: 0 for part in parts(replay) for i in part}
    for i in (replay.sample(5000).ids // 10).tolist():
        counts[i] += 1
    assert chisquare(list(counts.values())).pvalue > 0.001


@pytest.mark.parametrize(
    ("knob", "value"), [("strategy", "best"), ("discount", 1.1), ("radius", 0.0), ("probes", 0)]
)
def test_bad_knobs_are_refused_by_name_and_value(knob, value):
    with pytest.raises(ValueError, match=rf"{knob}.*{value}"):
        SelectiveReplay(4, 1, 1, **{knob: value})

import numpy as np
import pytest
from scipy.stats import chisquare

from lser.replay import DynamicReplay
from lser.replay.memories.zones import RunningQuantile, Zone


def add(replay, reward, ended, serial=0.0):
    reward = np.asarray(reward, dtype=np.float32)
    count = len(reward)
    observation = np.full((count, 1), serial, dtype=np.float32)
    flags = np.zeros(count, dtype=bool)
    ended = np.broadcast_to(ended, count)
    return replay.extend(observation, np.zeros((count, 1)), reward, observation, flags, ended)


def session(replay, rewards, serial=0.0):
    for step, reward in enumerate(rewards):
        add(replay, [reward], step == len(rewards) - 1, serial)


def zone_rows(replay):
    """The observations in the zones of all shards, by session."""
    arrays = replay.state().arrays
    rows, held = arrays["rows"], arrays["priorities"] > 0
    found = []
    for shard in replay.shards:
        for offset, steps in shard.zone.sessions:
            slots = shard.zone.first + offset + np.arange(steps)
            assert held[slots].all()
            found.append(rows[slots, 0].tolist())
    return found


def test_zones_are_never_overwritten_by_ordinary_traffic():
    replay = DynamicReplay(80, 1, 1, shards=2, zone=0.2, period=1, quantile=0.9)
    session(replay, [1.0, 0.0, 1.0], serial=5.0)
    zones = zone_rows(replay)
    assert zones == [[5.0, 5.0, 5.0]]
    for _ in range(500):  # sessions without an end: ordinary traffic only
        add(replay, [0.0] * 4, False)
    assert zone_rows(replay) == zones
    observations = {float(o) for _ in range(40) for o in replay.sample(100).observation[:, 0]}
    assert observations == {0.0, 5.0}


def test_only_sessions_at_or_above_the_quantile_reach_a_zone():
    replay = DynamicReplay(400, 1, 1, period=1, quantile=0.9, window=1000)
    rng = np.random.default_rng(0)
    scores = []
    for serial in range(200):
        score = float(np.float32(rng.random()))
        scores.append(score)
        session(replay, [score, score], serial)
    taken = {int(rows[0]) for rows in zone_rows(replay)}
    bars = [np.quantile(scores[: i + 1], 0.9, method="inverted_cdf") for i in range(200)]
    good = {i for i in range(200) if scores[i] >= bars[i]}
    assert taken
    assert taken <= good


def test_a_zone_takes_one_session_each_period():
    replay = DynamicReplay(4000, 1, 1, period=10, quantile=0.0)
    for serial in range(95):
        session(replay, [1.0], serial)
    assert len(zone_rows(replay)) == 9
    assert replay.stats()["sessions"] == 95
    assert replay.stats()["in_zones"] == 9
    assert len(replay) == 95 + 9


def test_zones_hold_whole_sessions():
    replay = DynamicReplay(100, 1, 1, shards=1, zone=0.1, period=1, quantile=0.0)
    for serial in range(50):
        session(replay, [1.0] * (1 + serial % 7), serial)
        for rows in zone_rows(replay):
            assert rows == [rows[0]] * (1 + int(rows[0]) % 7)
    alive = (replay.state().arrays["priorities"] > 0).sum()
    assert len(replay) == alive == 90 + replay.stats()["in_zones"]


def test_a_session_larger_than_a_zone_stays_out():
    replay = DynamicReplay(100, 1, 1, shards=1, zone=0.1, period=1, quantile=0.0)
    session(replay, [1.0] * 11)
    assert zone_rows(replay) == []


def test_draws_follow_priorities_within_a_random_shard():
    replay = DynamicReplay(80, 1, 1, shards=2, zone=0.1, alpha=0.5, fragment=1)
    ids = add(replay, np.zeros(30), False)
    errors = np.random.default_rng(0).random(30) + 0.1
    replay.update(ids, errors)
    shard = ids % 80 // 40
    counts = np.zeros(30)
    for _ in range(6000):
        counts[replay.sample(1).ids // 80] += 1
    priority = (errors + 1e-6) ** 0.5
    share = np.array([priority[i] / priority[shard == shard[i]].sum() / 2 for i in range(30)])
    assert chisquare(counts, share * 6000).pvalue > 0.001


def test_weights_are_the_closed_form_within_the_shard():
    replay = DynamicReplay(40, 1, 1, shards=1, zone=0.1, alpha=0.5, beta=0.4)
    ids = add(replay, np.zeros(8), False)
    errors = np.arange(1.0, 9.0)
    replay.update(ids, errors)
    batch = replay.sample(64)
    priority = (errors + 1e-6) ** 0.5
    weights = (8 * priority / priority.sum()) ** -0.4
    drawn = weights[batch.ids // 40]
    assert batch.weights == pytest.approx(drawn / drawn.max(), rel=1e-6)


def test_unprioritized_draws_are_uniform_in_a_shard():
    replay = DynamicReplay(40, 1, 1, shards=1, prioritized=False)
    ids = add(replay, np.zeros(10), False)
    replay.update(ids, np.arange(10.0))
    batch = replay.sample(10)
    assert sorted((batch.ids // 40).tolist()) == list(range(10))  # one from each equal share
    assert (batch.weights == 1).all()


def test_the_running_quantile_agrees_with_numpy():
    rng = np.random.default_rng(0)
    running, seen = RunningQuantile(0.9, 50), []
    for score in rng.integers(0, 20, 300) / 20:
        seen = [*seen, score][-50:]
        expected = score >= np.quantile(seen, 0.9, method="inverted_cdf")
        assert running.reaches(score) == expected


def test_a_zone_empties_the_sessions_that_a_new_one_touches():
    zone = Zone(first=100, size=10)
    assert zone.make_room(4)[0].tolist() == [100, 101, 102, 103]
    assert zone.make_room(5)[0].tolist() == [104, 105, 106, 107, 108]
    slots, emptied = zone.make_room(2)  # does not fit behind: starts again
    assert slots.tolist() == [100, 101]
    assert emptied.tolist() == [100, 101, 102, 103]
    assert zone.sessions == [(4, 5), (0, 2)]


def test_a_capacity_too_small_for_its_shards_is_refused():
    with pytest.raises(ValueError, match="capacity=7 is too small for shards=4"):
        DynamicReplay(7, 1, 1)


@pytest.mark.parametrize(
    ("knob", "value"),
    [("alpha", -1.0), ("beta", 2.0), ("shards", 0), ("zone", 1.5), ("quantile", -0.1), ("pool", 0)],
)
def test_bad_knobs_are_refused_by_name_and_value(knob, value):
    with pytest.raises(ValueError, match=rf"{knob}.*{value}"):
        DynamicReplay(40, 1, 1, **{knob: value})

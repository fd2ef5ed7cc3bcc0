import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from lser.replay import HindsightReplay
from lser.replay.memories.links import later, link, new_links


def add(replay, goal, reward, terminated=False, truncated=False, streams=None):
    """One block; observations hold the size before and the goal, next ones 100 and any goal."""
    reward = np.asarray(reward, dtype=np.float32)
    count = len(reward)
    shown = np.broadcast_to(goal, count) * scale_of(replay)
    first = replay.stats()["size"] + np.arange(count)
    observation = np.stack((first, shown), axis=1)
    following = np.stack((np.full(count, 100.0), replay.goals[0] * np.ones(count)), axis=1)
    flags = (np.broadcast_to(terminated, count), np.broadcast_to(truncated, count))
    return replay.extend(observation, np.zeros((count, 1)), reward, following, *flags, streams)


def scale_of(replay):
    return replay.shown[-1] / replay.goals[-1]


def goals_drawn(replay, write, draws=4000):
    """The goals that copies of one transition, by the number of its write, are given."""
    batch = replay.sample(draws)
    shown = batch.observation[batch.ids // replay.capacity == write, -1]
    return {round(float(g / scale_of(replay)), 3) for g in shown}


def test_relabelled_by_hand():
    # One session with 0, 3, 7 and 12 clicks under goal 5; goals 1 to 10; every copy relabelled.
    replay = HindsightReplay(10, 2, 1, ratio=1.0)
    for reward in (0, 3, 7, 12):
        add(replay, 5, [reward])
    # Later steps reach: 0 -> own goal 5, 3 -> 3, 7 -> 7, 12 -> 10.
    assert goals_drawn(replay, 0) == {5, 3, 7, 10}
    assert goals_drawn(replay, 1) == {3, 7, 10}
    assert goals_drawn(replay, 2) == {7, 10}
    assert goals_drawn(replay, 3) == {10}
    batch = replay.sample(1000)
    goal = batch.observation[:, -1] * 10
    raw = np.array([0, 3, 7, 12])[batch.ids // 10]
    assert np.array_equal(batch.reward, raw >= np.round(goal))
    assert np.array_equal(batch.next_observation[:, -1], batch.observation[:, -1])
    assert (batch.next_observation[:, 0] == 100).all()


def test_without_relabelling_the_reward_is_whether_the_own_goal_was_reached():
    replay = HindsightReplay(30, 2, 1, ratio=0.0)
    for goal in range(1, 11):  # tenths are not exact in float32; the comparison is
        add(replay, goal, [goal - 1, goal, goal + 1], True)
    batch = replay.sample(2000)
    writes = batch.ids // 30
    assert np.array_equal(batch.reward, writes % 3 >= 1)
    assert np.allclose(batch.observation[:, -1] * 10, writes // 3 + 1)


@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_goals_never_cross_the_end_of_a_session(end):
    replay = HindsightReplay(10, 2, 1, ratio=1.0)
    add(replay, 5, [1])
    add(replay, 5, [2], **{end: True})
    add(replay, 5, [9])
    assert goals_drawn(replay, 0) == {1, 2}
    assert goals_drawn(replay, 1) == {2}


def test_goals_never_cross_from_one_stream_to_another():
    replay = HindsightReplay(10, 2, 1, ratio=1.0)
    add(replay, 5, [1, 4])
    add(replay, 5, [2, 6])
    add(replay, 5, [9], streams=[7])
    add(replay, 5, [8, 3], streams=[1, 0])
    assert goals_drawn(replay, 0) == {1, 2, 3}
    assert goals_drawn(replay, 1) == {4, 6, 8}
    assert goals_drawn(replay, 4) == {9}


def test_later_steps_are_equally_likely():
    replay = HindsightReplay(10, 2, 1, ratio=1.0)
    for reward in range(1, 6):
        add(replay, 5, [reward])
    batch = replay.sample(20_000)
    goals = np.round(batch.observation[batch.ids // 10 == 1, -1] * 10).astype(int)
    assert chisquare(np.bincount(goals)[2:]).pvalue > 0.001


def test_the_share_of_relabelled_copies_is_the_ratio():
    replay = HindsightReplay(4, 2, 1)
    add(replay, 5, [3.0] * 4, True)
    relabelled = np.round(replay.sample(10_000).observation[:, -1] * 10) == 3
    assert relabelled.mean() == pytest.approx(0.8, abs=0.02)


def test_stored_data_never_changes():
    replay = HindsightReplay(20, 2, 1, ratio=1.0)
    for reward in (0, 3, 7, 12):
        add(replay, 5, [reward] * 4)
    before = replay.state().arrays["rows"].copy()
    for _ in range(50):
        batch = replay.sample(64)
        batch.observation[:] = 0.0
        batch.reward[:] = -1.0
    assert np.array_equal(replay.state().arrays["rows"], before)


def test_goals_may_be_any_thresholds_and_scale():
    replay = HindsightReplay(4, 2, 1, goals=(-0.5, 0.25, 1.5), goal_scale=2.0, ratio=1.0)
    add(replay, 1.5, [0.3])
    assert goals_drawn(replay, 0) == {0.25}
    assert replay.sample(1).observation[0, -1] == 0.5


def test_an_observation_without_a_goal_is_refused():
    replay = HindsightReplay(4, 2, 1)
    with pytest.raises(ValueError, match=r"goal_scale.*got 5.0"):
        replay.extend([[0.0, 5.0]], [[0.0]], [1.0], [[0.0, 5.0]], [False], [False])
    assert len(replay) == 0


def test_balanced_batches_are_half_rewarded():
    replay = HindsightReplay(100, 2, 1, balanced=True)
    rng = np.random.default_rng(0)
    for _ in range(40):
        rewards = (rng.random(5) < 0.1) * rng.random(5)
        add(replay, 3.3, rewards)  # no goals: the last component is any number
        if replay.stats()["rewarded"]:
            batch = replay.sample(20)
            assert (batch.reward > 0).sum() == 10
    held = replay.state().arrays["rows"][:, 3] > 0
    assert replay.stats()["rewarded"] == held.sum()


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_a_balanced_memory_with_one_class_draws_from_it(reward):
    replay = HindsightReplay(10, 2, 1, balanced=True)
    add(replay, 1, [reward] * 3)
    assert (replay.sample(7).reward == reward).all()


rows = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=120)


@settings(max_examples=100, deadline=None)
@given(capacity=st.integers(1, 25), rows=rows, point=st.floats(0, 1, exclude_max=True))
def test_links_agree_with_lists_of_sessions_under_random_traffic(capacity, rows, point):
    links, sessions, last = new_links(capacity), [], {}
    for identity, (stream, end) in enumerate(rows):
        previous = last.pop(stream, -1)
        link(links, np.array([identity]), np.array([previous]), np.zeros(1, np.int64))
        held = [session for session in sessions if previous in session]
        if previous > identity - capacity and held:
            held[0].append(identity)
        else:
            sessions.append([identity])
        if not end:
            last[stream] = identity
        sessions = [[i for i in session if i > identity - capacity] for session in sessions]
        sessions = [session for session in sessions if session]
    assert capacity - links.unused[0] == len(sessions)
    for session in sessions:
        for i, identity in enumerate(session):
            expected = session[i + int(point * (len(session) - i))]
            found = np.empty(1, dtype=np.int64)
            later(
                links.steps, links.length, np.array([identity % capacity]), np.array([point]), found
            )
            assert links.steps[found[0], 0] == expected


@pytest.mark.parametrize(
    ("knob", "value"), [("goals", ()), ("goals", (2, 1)), ("ratio", 1.5), ("goal_scale", 0.0)]
)
def test_bad_knobs_are_refused_by_name(knob, value):
    with pytest.raises(ValueError, match=knob):
        HindsightReplay(4, 1, 1, **{knob: value})

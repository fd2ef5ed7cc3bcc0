import numpy as np
import pytest

from lser.catalogue import MEMORIES
from lser.replay.sessions import Sessions, discounted_returns, stream_labels
from lser.testing import subject
from lser.testing.traffic import blocks_of


def follow(sessions, streams, ids, reward, ended):
    over = sessions.follow(
        np.array(streams), np.array(ids), np.array(reward, np.float32), np.array(ended, bool)
    )
    return [(session.ids.tolist(), session.reward.tolist()) for session in over]


def test_a_session_is_handed_over_when_it_ends():
    sessions = Sessions(limit=10)
    assert follow(sessions, [0, 1], [0, 1], [0.5, 1.0], [False, False]) == []
    assert follow(sessions, [0, 1], [2, 3], [0.0, 2.0], [False, True]) == [([1, 3], [1.0, 2.0])]
    assert follow(sessions, [1, 0], [4, 5], [3.0, 4.0], [False, True]) == [
        ([0, 2, 5], [0.5, 0.0, 4.0])
    ]


def test_a_block_may_hold_several_steps_and_sessions_of_one_stream():
    ended = [False, True, False, True]
    over = follow(Sessions(limit=10), [7] * 4, range(4), [1, 2, 3, 4], ended)
    assert over == [([0, 1], [1.0, 2.0]), ([2, 3], [3.0, 4.0])]


def test_a_session_without_an_end_is_handed_over_at_the_limit():
    over = follow(Sessions(limit=2), [0] * 5, range(5), [0] * 5, [False] * 5)
    assert [ids for ids, _ in over] == [[0, 1], [2, 3]]


def test_open_sessions_survive_a_round_through_arrays():
    sessions = Sessions(limit=10)
    follow(sessions, [3, 5, 3], [0, 1, 2], [0.5, 1.0, 2.0], [False] * 3)
    loaded = Sessions.from_arrays(10, sessions.arrays())
    for copy in (sessions, loaded):
        over = follow(copy, [5, 3], [3, 4], [0, 0], [True, True])
        assert [ids for ids, _ in over] == [[1, 3], [0, 2, 4]]


def test_returns_by_hand():
    reward = np.array([1, 0, 4], dtype=np.float32)
    assert discounted_returns(reward, 0.5).tolist() == [2.0, 2.0, 4.0]


def test_row_i_is_stream_i_unless_said_otherwise():
    assert stream_labels(None, 3).tolist() == [0, 1, 2]
    assert stream_labels([4, 4, 9], 3).tolist() == [4, 4, 9]


@pytest.mark.parametrize("streams", [[1, 2], [0.5, 1.0, 2.0], 3])
def test_streams_that_do_not_fit_are_refused(streams):
    with pytest.raises(ValueError, match="streams must be 3 integers"):
        stream_labels(streams, 3)


@pytest.mark.parametrize(
    ("streams", "words"),
    [
        (np.array([1, 2**63], np.uint64), "below 2.*9223372036854775808"),
        (np.ma.array([1, 2], mask=[1, 0]), "streams is not.*masked"),
        ([1.0, 2.0], "streams must be 2 integers"),
        ([1], "streams must be 2 integers"),
    ],
)
@pytest.mark.parametrize("name", MEMORIES)
def test_streams_that_name_nobody_are_refused_by_every_memory(name, streams, words):
    memory = subject(name).make(40)
    (block,) = blocks_of(np.random.default_rng(0), 1, size=2)
    with pytest.raises(ValueError, match=words):
        memory.extend(*block, streams)
    assert len(memory) == 0


@pytest.mark.parametrize("name", ["per", "der", "lser"])
def test_feedback_with_masked_entries_is_refused(name):
    memory = subject(name).make(40)
    (block,) = blocks_of(np.random.default_rng(0), 1, size=8)
    ids = memory.extend(*block)
    if name == "lser":
        memory.update(ids, np.ma.array(np.ones(8), mask=ids >= 0))  # it learns nothing from them
        return
    with pytest.raises(ValueError, match="td_errors is not.*masked"):
        memory.update(ids, np.ma.array(np.ones(8), mask=ids >= 0))

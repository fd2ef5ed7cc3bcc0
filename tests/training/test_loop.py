"""The training loop: order of query and store, number of updates, one query per user."""

import itertools

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from worlds import counting

from lser.agents.protocol import Learned
from lser.training.loop import Progress, train
from lser.types import Batch


class Diary:
    """A memory and an agent in one that write down what is asked of them."""

    capacity = 10**6

    def __init__(self):
        self.events = []
        self.stored = 0

    def __len__(self):
        return self.stored

    def extend(self, *block, streams=None):
        self.stored += len(block[0])
        self.events.append(("store", block[0].tolist()))

    def sample(self, batch_size, query=None):
        self.events.append(("query", query.tolist()))
        rows = np.zeros((batch_size, 2), np.float32)
        flags = np.zeros(batch_size, np.bool_)
        ids = np.zeros(batch_size, np.int64)
        return Batch(rows, rows[:, :1], rows[:, 0], rows, flags, flags, ids, rows[:, 0])

    def update(self, ids, td_errors):
        self.events.append(("feedback", len(ids)))

    def act(self, observation, *, explore=False):
        assert explore
        return np.zeros((len(observation), 1), np.float32)

    def learn(self, batch):
        return Learned({}, batch.weights)

    def end_sessions(self, done):
        self.events.append(("over", done.tolist()))


def diary(steps, **knobs):
    book = Diary()
    env = counting(AutoresetMode.SAME_STEP)
    records = list(itertools.islice(train(env, book, book, batch_size=4, **knobs), steps))
    return book, records


def queries(book):
    return [tuple(what) for kind, what in book.events if kind == "query"]


def test_the_query_comes_before_its_own_transition_is_stored():
    book, _ = diary(3, learning_starts=0)
    second = [event for event in book.events if event[0] in ("query", "store")][1:4]
    assert second == [
        ("query", [0.0, 1.0]),
        ("query", [100.0, 1.0]),
        ("store", [[0.0, 1.0], [100.0, 1.0]]),
    ]


def test_each_update_queries_with_a_different_user():
    book, _ = diary(4, learning_starts=0)
    assert len(set(queries(book))) == len(queries(book)) == 6


def test_more_updates_than_users_reach_back_to_earlier_observations():
    book, _ = diary(4, learning_starts=0, updates_per_step=2)
    last = queries(book)[-4:]
    assert len(set(last)) == 4


@pytest.mark.parametrize("rate", [0.25, 0.3, 1, 2.5])
def test_updates_per_step_may_be_a_fraction(rate):
    _, records = diary(41, learning_starts=0, updates_per_step=rate)
    assert records[-1].updates == pytest.approx(40 * 2 * rate, abs=1)


def test_learning_waits_for_enough_transitions():
    _, records = diary(8, learning_starts=6)
    assert [record.updates for record in records] == [0, 0, 0, 0, 2, 4, 6, 8]


def test_a_record_counts_steps_and_sessions():
    _, records = diary(6, learning_starts=0)
    assert [record.steps for record in records] == [2, 4, 6, 8, 10, 12]
    assert records[-1].sessions == 3 + 2


def test_a_given_progress_is_continued():
    progress = Progress()
    book, env = Diary(), counting(AutoresetMode.SAME_STEP)
    list(itertools.islice(train(env, book, book, batch_size=4, progress=progress), 3))
    steps = train(env, book, book, batch_size=4, progress=progress)
    assert next(steps).steps == 8


def test_the_agent_hears_of_ended_sessions():
    book, _ = diary(2, learning_starts=0)
    assert ("over", [True, False]) in book.events


def test_an_agent_that_observes_is_told_of_every_transition_once():
    class Told(Diary):
        def observe(self, transitions):
            self.events.append(("store", transitions.observation.tolist()))

    book, env = Told(), counting(AutoresetMode.SAME_STEP)
    list(itertools.islice(train(env, book, book, batch_size=4), 3))
    stored = [what for kind, what in book.events if kind == "store"]
    assert len(stored) == 6
    assert stored[::2] == stored[1::2]  # the memory's and the agent's


@pytest.mark.parametrize(("knob", "value"), [("batch_size", 0), ("updates_per_step", 0)])
def test_bad_knobs_are_named(knob, value):
    env = counting(AutoresetMode.SAME_STEP)
    with pytest.raises(ValueError, match=f"{knob} .* {value}"):
        train(env, Diary(), Diary(), **{knob: value})


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"batch_size": 0}, "batch_size must be >= 1, got 0"),
        ({"batch_size": 4.0}, "batch_size must be an integer, got 4.0"),
        ({"updates_per_step": 0.0}, "updates_per_step must be finite and > 0, got 0"),
        ({"updates_per_step": float("inf")}, "updates_per_step must be finite and > 0, got inf"),
        ({"learning_starts": -1}, "learning_starts must be >= 0, got -1"),
        ({"horizon": "week"}, "horizon must be one of 'continuing', 'session', got 'week'"),
    ],
)
def test_impossible_settings_are_refused_before_anybody_is_served(knobs, message):
    book = Diary()
    with pytest.raises(ValueError, match=message):
        train(counting(AutoresetMode.SAME_STEP), book, book, **knobs)
    assert book.events == []

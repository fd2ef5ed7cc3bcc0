import orjson
import pytest

from lser.online.joins import Joins
from lser.online.log import Event


class Feed:
    def __init__(self, window=10.0):
        self.joins, self.seq = Joins(window), 0

    def __call__(self, at, kind, id=None, **body):
        self.seq += 1
        closed = self.joins.fold(Event(self.seq, at, kind, id, orjson.dumps(body)))
        return [(d.id, sorted(d.clicked), d.reward) for d in closed]

    def decide(self, at, id, items=("a", "b", "c")):
        body = {"user": "u", "session": "s", "arm": "lser", "version": 1, "items": list(items)}
        return self(at, "decision", id, **body)


def test_feedback_in_the_window_counts_and_silence_is_no_click():
    feed = Feed()
    feed.decide(0, "p")
    feed.decide(1, "q")
    feed(2, "feedback", "1", decision="p", clicks=["a"])
    assert feed(10, "tick") == [("p", ["a"], 1.0)]
    assert feed(11, "tick") == [("q", [], 0.0)]


def test_parts_add_up_and_an_item_is_clicked_once():
    feed = Feed()
    feed.decide(0, "p")
    feed(1, "feedback", "1", decision="p", clicks=["a", "a"])
    feed(2, "feedback", "2", decision="p", clicks=["a", "b"], value=2.5)
    feed(3, "feedback", "3", decision="p", clicks=["never shown"])
    assert feed(10, "tick") == [("p", ["a", "b"], 4.5)]


def test_late_and_unknown_feedback_is_counted_and_changes_nothing():
    feed = Feed()
    feed.decide(0, "p")
    assert feed(10, "feedback", "1", decision="p", clicks=["a"]) == [("p", [], 0.0)]
    feed(11, "feedback", "2", decision="nobody's", clicks=["a"])
    assert feed.joins.late == 2
    assert len(feed.joins) == 0


def test_any_event_moves_the_time_and_pages_close_in_order():
    feed = Feed()
    for number in range(5):
        feed.decide(number, f"p{number}")
    assert [id for id, *_ in feed.decide(12.5, "last")] == ["p0", "p1", "p2"]


@pytest.mark.parametrize("cut", range(8))
def test_a_saved_join_goes_on_the_same(cut):
    def run(broken):
        feed, found = Feed(), []
        steps = [
            lambda: feed.decide(0, "p"),
            lambda: feed.decide(1, "q"),
            lambda: feed(2, "feedback", "1", decision="q", clicks=["b", "a"]),
            lambda: feed.decide(5, "r"),
            lambda: feed(9, "feedback", "2", decision="p", value=1.0),
            lambda: feed(11, "tick"),
            lambda: feed(30, "feedback", "3", decision="r", clicks=["c"]),
            lambda: feed(31, "tick"),
        ]
        for number, step in enumerate(steps):
            if number == cut and broken:
                other = Joins(1.0)
                other.load(orjson.loads(orjson.dumps(feed.joins.state())))
                feed.joins = other
            found += step()
        return found, feed.joins.late, feed.joins.closed

    assert run(broken=True) == run(broken=False)

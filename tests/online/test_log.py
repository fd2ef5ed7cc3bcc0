"""What every log promises, on SQLite and on PostgreSQL."""

import subprocess
import sys
import threading

import pytest

from lser.online.log import Entry, LogRefusedError


@pytest.fixture
def log(store):
    made = store.log("process")
    yield made
    made.close()


def entry(id, body=b"{}", kind="decision"):
    return Entry(kind, id, body)


def test_events_come_back_in_the_order_of_their_numbers(log, store):
    log.append(entry("a"), entry("b"))
    log.append(entry("c"))
    reader = store.reader()
    assert [(event.seq, event.id) for event in reader.read(0)] == [(1, "a"), (2, "b"), (3, "c")]
    assert [event.id for event in reader.read(1, limit=1)] == ["b"]
    assert log.head == reader.head() == 3
    reader.close()


def test_an_id_is_taken_once_and_the_first_body_stays(log):
    first = log.append(entry("a", b"1"))[0]
    again = log.append(entry("a", b"2"))[0]
    assert first.new
    assert not again.new
    assert again.event == first.event
    assert log.append(entry("a", b"3", kind="feedback"))[0].new  # another kind, another id
    assert (log.repeats, log.rows) == (1, 2)


def test_a_repeat_within_one_append_is_one_event(log):
    one, two = log.append(entry("a", b"1"), entry("a", b"2"))
    assert (one.new, two.new) == (True, False)
    assert two.event.body == b"1"


def test_events_without_an_id_may_repeat(log):
    assert all(r.new for r in log.append(Entry("tick", None, b"{}"), Entry("tick", None, b"{}")))


def test_threads_share_commits_and_nothing_is_lost(log, store):
    def write(thread):
        for number in range(200):
            log.append(entry(f"{thread}-{number}"))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reader = store.reader()
    ids = [event.id for event in reader.read(0, 10_000)]
    reader.close()
    assert len(ids) == len(set(ids)) == 1_600
    assert log.commits < 1_600


def test_watchers_see_new_events_in_order_before_the_answer(log):
    seen = []
    log.watch(lambda events: seen.extend(event.id for event in events))
    log.append(entry("a"), entry("a"), entry("b"))
    assert seen == ["a", "b"]


def test_a_watcher_that_fails_does_not_stop_the_log(log, caplog):
    log.watch(lambda events: 1 / 0)
    assert log.append(entry("a"))[0].new
    assert log.append(entry("b"))[0].new
    assert "a watcher of the log failed" in caplog.text


def test_a_closed_log_refuses(store):
    log = store.log("process")
    log.close()
    with pytest.raises(LogRefusedError, match="closed"):
        log.append(entry("a"))
    log.close()


def test_time_never_goes_back_over_restarts(store):
    times = []
    for _ in range(3):
        log = store.log("process")
        times += [log.append(Entry("tick", None, b""))[0].event.at for _ in range(3)]
        log.close()
    assert times == sorted(times)


def test_other_durabilities_are_refused(store):
    with pytest.raises(ValueError, match="durability must be process or power, got 'none'"):
        store.log("none")


def test_events_are_rewritten_and_dropped_together(log, store):
    log.append(entry("a"), entry("b", b"old"), entry("c"))
    log.rewrite({2: b"new"}, [1, 3])
    reader = store.reader()
    assert [(event.seq, event.id, event.body) for event in reader.read(0)] == [(2, "b", b"new")]
    assert log.append(entry("d"))[0].event.seq == 4
    reader.close()


def test_trimming_keeps_other_kinds_and_numbers_go_on(log, store):
    for number in range(20):
        log.append(entry(f"{number}"), Entry("items", None, b"{}"))
    assert log.trim(31, ("decision",)) == 15
    reader = store.reader()
    assert [event.seq for event in reader.of_kind("decision")] == [31, 33, 35, 37, 39]
    assert len(list(reader.of_kind("items"))) == 20
    assert log.append(entry("new"))[0].event.seq == 41
    reader.close()


def test_numbers_are_not_given_twice_after_everything_was_trimmed(store):
    log = store.log("process")
    log.append(entry("a"), entry("b"))
    log.trim(100, ("decision",))
    log.close()
    log = store.log("process")
    assert log.append(entry("c"))[0].event.seq == 3
    log.close()


def test_the_first_event_after_a_time_is_found(log, store):
    times = [log.append(entry(f"{n}"))[0].event.at for n in range(50)]
    reader = store.reader()
    for seq, at in enumerate(times, start=1):
        assert reader.first_after(at) <= seq
        assert reader.first_after(at) == times.index(at) + 1
    assert reader.first_after(times[-1] + 1) == 51
    assert reader.first_after(0.0) == 1
    reader.close()


WRITER = """
import sys
from lser.online.log import Entry
from lser.online.store import open_store
log = open_store(sys.argv[1]).log("process")
number = 0
while True:
    receipts = log.append(*(Entry("decision", f"{number}-{i}", b"x" * 300) for i in range(5)))
    print(*(r.event.id for r in receipts), flush=True)
    number += 1
"""


def test_what_was_acknowledged_survives_kill_9(store):
    """The parent's list of acknowledged ids is the judge."""
    acknowledged = set()
    for turn in range(3):
        code = WRITER.replace("number = 0", f"number = {turn}000000")
        process = subprocess.Popen(
            [sys.executable, "-c", code, store.address], stdout=subprocess.PIPE, text=True
        )
        for _ in range(20 + 37 * turn):
            acknowledged.update(process.stdout.readline().split())
        process.kill()
        rest = process.stdout.read().splitlines()
        for line in rest[:-1]:  # the last one may be torn
            acknowledged.update(line.split())
        process.stdout.close()
        process.wait()
    reader = store.reader()
    ids = [event.id for event in reader.read(0, 10**6)]
    reader.close()
    assert len(ids) == len(set(ids))
    assert acknowledged <= set(ids)
    assert len(acknowledged) > 300

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lser.online.log import Clock, Entry, LogRefusedError
from lser.online.sqlite_log import SqliteLog, check_version
from lser.online.sqlite_reader import FILE, SqliteReader


@pytest.fixture
def log(tmp_path):
    made = SqliteLog(tmp_path)
    yield made
    made.close()


def entry(id, body=b"{}", kind="decision"):
    return Entry(kind, id, body)


def test_events_come_back_in_the_order_of_their_numbers(log, tmp_path):
    log.append(entry("a"), entry("b"))
    log.append(entry("c"))
    reader = SqliteReader(tmp_path)
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


def test_threads_share_commits_and_nothing_is_lost(log, tmp_path):
    def write(thread):
        for number in range(200):
            log.append(entry(f"{thread}-{number}"))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reader = SqliteReader(tmp_path)
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


def test_time_never_goes_back_over_jumps_and_restarts(tmp_path):
    wall, steady = [1_000.0], [0.0]

    def clock(last):
        return Clock(last, lambda: wall[0], lambda: steady[0])

    times = []
    for jump in (0.0, -500.0, +5_000.0, -9_000.0):
        wall[0] += jump
        log = SqliteLog(tmp_path, clock=clock)
        for _ in range(3):
            steady[0] += 1.0
            wall[0] -= 50.0  # the wall clock runs backwards meanwhile
            times.append(log.append(Entry("tick", None, b""))[0].event.at)
        log.close()
    assert times == sorted(times)
    assert times[1] - times[0] == times[2] - times[1] == 1.0  # steady within a process


def test_a_full_disk_refuses_and_loses_nothing(log, tmp_path):
    log.append(entry("kept"))
    pages = log._connection.execute("pragma page_count").fetchone()[0]
    log._connection.execute(f"pragma max_page_count = {pages + 2}")
    taken = ["kept"]

    def fill():
        for number in range(10_000):
            log.append(entry(f"{number}", b"x" * 500))
            taken.append(f"{number}")

    with pytest.raises(LogRefusedError, match="full"):
        fill()
    log._connection.execute("pragma max_page_count = 1000000")
    log.append(entry("after"))  # space again: it goes on
    reader = SqliteReader(tmp_path)
    assert [event.id for event in reader.read(0, 10_000)] == [*taken, "after"]
    reader.close()
    assert log.refused == 1


def test_a_locked_log_refuses_and_goes_on(log, tmp_path):
    log._connection.execute("pragma busy_timeout = 50")
    other = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    other.execute("begin immediate")
    with pytest.raises(LogRefusedError, match="locked"):
        log.append(entry("a"))
    other.execute("rollback")
    other.close()
    assert log.append(entry("a"))[0].new


def test_a_second_writer_is_turned_away(log, tmp_path):
    with pytest.raises(ValueError, match="in use"):
        SqliteLog(tmp_path)


def test_a_closed_log_refuses(tmp_path):
    log = SqliteLog(tmp_path)
    log.close()
    with pytest.raises(LogRefusedError, match="closed"):
        log.append(entry("a"))
    log.close()


def test_an_old_sqlite_is_refused():
    with pytest.raises(ValueError, match=r"SQLite 3.31.0 or later, this Python has 3.8.2"):
        check_version((3, 8, 2))


@pytest.mark.parametrize(("durability", "level"), [("process", 1), ("power", 2)])
def test_durability_is_sqlite_s_synchronous_level(durability, level, tmp_path):
    log = SqliteLog(tmp_path, durability=durability)
    assert log._connection.execute("pragma synchronous").fetchone()[0] == level
    log.close()
    with pytest.raises(ValueError, match="durability"):
        SqliteLog(tmp_path, durability="none")


def test_trimming_keeps_other_kinds_and_numbers_go_on(log, tmp_path):
    for number in range(20):
        log.append(entry(f"{number}"), Entry("items", None, b"{}"))
    assert log.trim(31, ("decision",)) == 15
    reader = SqliteReader(tmp_path)
    assert [event.seq for event in reader.of_kind("decision")] == [31, 33, 35, 37, 39]
    assert len(list(reader.of_kind("items"))) == 20
    assert log.append(entry("new"))[0].event.seq == 41
    reader.close()


def test_numbers_are_not_given_twice_after_everything_was_trimmed(tmp_path):
    log = SqliteLog(tmp_path)
    log.append(entry("a"), entry("b"))
    log.trim(100, ("decision",))
    log.close()
    log = SqliteLog(tmp_path)
    assert log.append(entry("c"))[0].event.seq == 3
    log.close()


def test_rare_kinds_are_found_by_their_index(log, tmp_path):
    reader = SqliteReader(tmp_path)
    statement = (
        "explain query plan select seq, at, kind, id, body from event where kind not in "
        "('decision', 'feedback', 'tick') and kind = ? and seq > ? and seq <= ? order by seq"
    )
    plan = reader.rows(statement, ("items", 0, 9))
    assert any("event_kind" in str(row) for row in plan)
    reader.close()


def test_the_first_event_after_a_time_is_found(log, tmp_path):
    times = [log.append(entry(f"{n}"))[0].event.at for n in range(50)]
    reader = SqliteReader(tmp_path)
    for seq, at in enumerate(times, start=1):
        assert reader.first_after(at) <= seq
        assert reader.first_after(at) == times.index(at) + 1
    assert reader.first_after(times[-1] + 1) == 51
    assert reader.first_after(0.0) == 1
    reader.close()


def test_a_backup_is_whole_while_the_log_is_written(log, tmp_path):
    stop = threading.Event()

    def write():
        number = 0
        while not stop.is_set():
            log.append(entry(f"{number}", b"x" * 200))
            number += 1

    thread = threading.Thread(target=write)
    thread.start()
    reader = SqliteReader(tmp_path)
    copies = []
    for number in range(3):
        (tmp_path / f"copy{number}").mkdir()
        reader.backup(tmp_path / f"copy{number}" / FILE)
        copy = SqliteReader(tmp_path / f"copy{number}")
        copies.append([event.seq for event in copy.read(0, 100_000)])
        assert copy.rows("pragma integrity_check", ()) == [("ok",)]
        copy.close()
    stop.set()
    thread.join()
    reader.close()
    assert all(seqs == list(range(1, len(seqs) + 1)) for seqs in copies)


WRITER = """
import sys
from lser.online.log import Entry
from lser.online.sqlite_log import SqliteLog
log = SqliteLog(sys.argv[1])
number = 0
while True:
    receipts = log.append(*(Entry("decision", f"{number}-{i}", b"x" * 300) for i in range(5)))
    print(*(r.event.id for r in receipts), flush=True)
    number += 1
"""


def test_what_was_acknowledged_survives_kill_9(tmp_path):
    """The parent's list of acknowledged ids is the judge."""
    acknowledged = set()
    for turn in range(3):
        code = WRITER.replace("number = 0", f"number = {turn}000000")
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(20 + 37 * turn):
            acknowledged.update(process.stdout.readline().split())
        process.kill()
        rest = process.stdout.read().splitlines()
        for line in rest[:-1]:  # the last one may be torn
            acknowledged.update(line.split())
        process.stdout.close()
        process.wait()
    reader = SqliteReader(Path(tmp_path))
    ids = [event.id for event in reader.read(0, 10**6)]
    reader.close()
    assert len(ids) == len(set(ids))
    assert acknowledged <= set(ids)
    assert len(acknowledged) > 300

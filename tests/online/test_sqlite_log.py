"""What is SQLite's own about the log in a folder."""

import sqlite3
import threading

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


def test_rare_kinds_are_found_by_their_index(log, tmp_path):
    reader = SqliteReader(tmp_path)
    statement = (
        "explain query plan select seq, at, kind, id, body from event where kind not in "
        "('decision', 'feedback', 'tick') and kind = ? and seq > ? and seq <= ? order by seq"
    )
    plan = reader.rows(statement, ("items", 0, 9))
    assert any("event_kind" in str(row) for row in plan)
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


def committed(log, *tasks):
    """The receipts of tasks that are one commit."""
    found, done = {}, threading.Event()

    def answer(place):
        def note(receipts, error):
            found[place] = error or receipts
            if len(found) == len(tasks):
                done.set()

        return note

    log.submit([(task, answer(place)) for place, task in enumerate(tasks)])
    assert done.wait(60)
    return [found[place] for place in range(len(tasks))]


@pytest.mark.parametrize("more", [0, 200])  # one statement, and more than one takes in
def test_a_group_of_new_and_repeated_ids_keeps_its_order(log, tmp_path, more):
    log.append(entry("old", b"first"))
    seen = []
    log.watch(seen.extend)
    commits = log.commits
    fresh = [entry(f"x{n}") for n in range(more)]
    clean = committed(log, [entry("a"), entry(None)], fresh, [entry("b")])
    mixed = committed(log, [entry("c")], [entry("old", b"again"), entry(None), entry("c")])
    assert log.commits == commits + 2
    assert [r.new for task in (*clean, *mixed) for r in task] == [
        *[True] * (3 + more), True, False, True, False,
    ]  # fmt: skip
    assert mixed[1][0].event.body == b"first"
    assert mixed[1][2].event == mixed[0][0].event
    reader = SqliteReader(tmp_path)
    assert reader.read(1) == seen
    assert [event.id for event in seen] == ["a", None, *(e.id for e in fresh), "b", "c", None]
    assert [event.seq for event in seen] == sorted({event.seq for event in seen})
    reader.close()


def test_no_entries_are_an_empty_answer(log):
    assert log.append() == []


@pytest.mark.parametrize("name", ["a?mode=rwc", "b#c", "d%20e"])
def test_a_folder_may_have_any_name(name, tmp_path):
    log = SqliteLog(tmp_path / name)
    try:
        log.append(Entry("settings", "1", b"{}"))
        reader = SqliteReader(tmp_path / name)
        assert reader.head() == 1
        reader.close()
    finally:
        log.close()
    assert [path.name for path in tmp_path.iterdir()] == [name]

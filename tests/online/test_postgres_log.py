"""What is PostgreSQL's own about the log: several writers, broken connections, the lease."""

import threading
import time

import pytest

psycopg = pytest.importorskip("psycopg")

from lser.online.log import Entry, LeaseLostError, LogRefusedError  # noqa: E402
from lser.online.postgres import store as postgres_store  # noqa: E402
from lser.online.postgres.link import Link, shown  # noqa: E402
from lser.online.postgres.log import Appender  # noqa: E402
from lser.online.store import open_store  # noqa: E402
from waiting import until  # noqa: E402


def entry(id, body=b"{}", kind="decision"):
    return Entry(kind, id, body)


@pytest.fixture
def logs(database):
    """Two servers' ways to one log, each with what its watcher saw."""
    made, seen = [database.log("process") for _ in range(2)], [[], []]
    for log, events in zip(made, seen, strict=True):
        log.watch(events.extend)
        log.follow(0)
    yield made, seen
    for log in made:
        log.close()


def test_a_learner_that_is_there_before_the_shop_waits_for_it(database):
    with pytest.raises(
        FileNotFoundError, match="holds no log"
    ):  # what the learner's process awaits
        database.lease()


def test_servers_see_one_another_s_events_in_the_log_s_order(logs):
    (one, two), (first, second) = logs

    def write(log, name):
        for number in range(60):
            log.append(entry(f"{name}{number}"), Entry("tick", None, b"{}"))

    threads = [threading.Thread(target=write, args=pair) for pair in ((one, "a"), (two, "b"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(lambda: len(first) == len(second) == 240)
    assert first == second
    assert [event.seq for event in first] == list(range(1, 241))
    assert [event.at for event in first] == sorted(event.at for event in first)


def test_an_id_is_taken_once_by_all_servers_and_missed_by_none(logs):
    (one, two), (_, second) = logs
    two.idle = 1e6  # it hears of others by its own commits only
    logged = one.append(entry("a", b"1"))[0]
    until(lambda: two._queue.empty())
    again = two.append(entry("a", b"2"))[0]
    assert (again.new, again.event) == (False, logged.event)
    assert [event.id for event in second].count("a") == 1


def test_cut_connections_lose_nothing_and_write_nothing_twice(postgres, logs, database):
    """Events without ids too: a group that is sent again is known by its number."""
    (one, two), (first, second) = logs
    stop, told = threading.Event(), []

    def write(log, name):
        number = 0
        while not stop.is_set():
            body = f"{name}{number}".encode()
            if log.append(Entry("tick", None, body), entry(f"{name}{number}"))[0].new:
                told.append(body)
            number += 1

    threads = [
        threading.Thread(target=write, args=(log, f"{place}-{name}-"))
        for place, log in enumerate((one, two))
        for name in "abc"
    ]
    for thread in threads:
        thread.start()
    for _ in range(12):
        time.sleep(0.1)
        postgres.cut()
    stop.set()
    for thread in threads:
        thread.join()
    reader = database.reader()
    bodies = [event.body for event in reader.of_kind("tick")]
    ids = [event.id for event in reader.of_kind("decision")]
    reader.close()
    assert sorted(bodies) == sorted(told)
    assert len(ids) == len(set(ids)) == len(bodies) > 20
    until(lambda: len(first) == len(second) == 2 * len(bodies))
    assert first == second
    assert one._link.breaks + two._link.breaks > 0


def test_a_group_whose_answer_was_lost_is_answered_from_the_log(logs, database):
    class Deaf(Link):
        """Breaks after the work is done, once."""

        def __call__(self, work):
            if not self.breaks:
                super().__call__(work)
                self._drop()
                self.breaks = 1
            return super().__call__(work)

    link = Deaf(database.address)
    rows = Appender(link).send([Entry("tick", None, b"1"), entry("a")], 5.0, 0)
    link.close()
    assert [row[0] for row in rows] == [-1, -2]  # both new, though it was sent twice
    reader = database.reader()
    assert len(reader.read(0)) == 2
    reader.close()


def test_a_group_out_of_turn_is_refused(logs, database):
    link = Link(database.address)
    appender = Appender(link)
    appender.send([entry("a")], 5.0, None)
    appender.send([entry("b")], 5.0, None)
    appender._batch = 0  # as a lost connection's statement might arrive
    with pytest.raises(psycopg.Error, match="group 1, after group 2"):
        appender.send([entry("c")], 5.0, None)
    link.close()


def test_a_locked_log_refuses_and_goes_on(database):
    database.log("process").close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres_store, "WRITE_LIMIT", 0.2)
        log = database.log("process")
    with psycopg.connect(database.address) as other:
        other.execute("select * from head for update")
        with pytest.raises(LogRefusedError, match="timeout"):
            log.append(entry("a"))
    assert log.append(entry("a"))[0].new
    assert log.refused == 1
    log.close()


def test_a_full_disk_refuses_and_loses_nothing(database):
    log = database.log("process")
    log.append(entry("kept"))
    with psycopg.connect(database.address, autocommit=True) as other:
        other.execute(
            "create function full_disk() returns trigger language plpgsql as $$ begin "
            "raise exception 'could not extend file: No space left on device' "
            "using errcode = 'disk_full'; end $$"
        )
        other.execute(
            "create trigger full_disk before insert on event execute function full_disk()"
        )
        with pytest.raises(LogRefusedError, match="No space left"):
            log.append(entry("a"))
        other.execute("drop trigger full_disk on event")
    log.append(entry("after"))
    reader = database.reader()
    assert [(event.seq, event.id) for event in reader.read(0)] == [(1, "kept"), (2, "after")]
    reader.close()
    log.close()


def test_a_database_that_is_gone_refuses_after_a_while(database):
    log = database.log("process")
    log._link._patience = 0.3
    log._link._parameters["port"] = "1"
    log._link._drop()
    with pytest.raises(LogRefusedError, match="does not answer"):
        log.append(entry("a"))
    log.close()


def test_time_comes_from_the_database_and_is_steady(database, monkeypatch):
    log = database.log("process")
    before = log.append(Entry("tick", None, b""))[0].event.at
    monkeypatch.setattr(time, "time", lambda: 1e6)  # this machine's clock does not count
    assert log.append(Entry("tick", None, b""))[0].event.at >= before
    other = database.log("process")
    after = other.append(Entry("tick", None, b""))[0].event.at
    assert 0 <= after - before < 60
    log.close()
    other.close()


def test_one_learner_has_the_lease_and_a_second_takes_over(database, monkeypatch):
    monkeypatch.setattr(postgres_store, "LASTS", 60.0)
    monkeypatch.setattr(postgres_store, "RENEWED_EVERY", 0.1)
    database.log("process").close()
    first = database.lease()
    assert database.lease() is None

    def ends():
        with psycopg.connect(database.address) as other:
            return other.execute("select until from lease").fetchone()

    taken = ends()
    until(lambda: ends() > taken, "the renewal")
    assert database.lease() is None
    first._done.set()  # paused: nothing is renewed any more
    first._thread.join()
    with psycopg.connect(database.address, autocommit=True) as other:  # and a minute passes
        other.execute("update lease set until = until - interval '60 seconds'")
    second = []
    until(lambda: second.append(database.lease()) or second[-1] is not None)
    for write in (
        lambda: first.outbox.send("policy", "lser-1", b"{}"),
        lambda: first.shelf.save("learner", 1, {"a": 1}),
        lambda: first.shelf.report({"cursor": 9}),
        lambda: first.shelf.forget("learner", newest=1),
    ):
        with pytest.raises(LeaseLostError):
            write()
    assert database.shelf.latest("learner") is None
    second[-1].outbox.send("policy", "lser-1", b"{}")
    first.close()
    assert database.lease() is None  # the old one gives back nothing
    second[-1].close()
    third = database.lease()
    assert third.token == second[-1].token + 1
    third.close()


def test_who_lost_the_lease_finds_out(database, monkeypatch):
    monkeypatch.setattr(postgres_store, "RENEWED_EVERY", 0.1)
    database.log("process").close()
    lease = database.lease()
    assert lease.held()
    with psycopg.connect(database.address, autocommit=True) as other:
        other.execute("update lease set token = token + 1")
    until(lambda: not lease.held())
    lease.close()


def test_a_lease_from_a_clock_that_went_back_is_not_kept_for_ever(database):
    database.log("process").close()
    with psycopg.connect(database.address, autocommit=True) as other:
        other.execute("update lease set until = now() + interval '1 day'")
    lease = database.lease()
    assert lease is not None
    lease.close()


def test_commits_wait_for_the_disk_whatever_the_server_s_default(database):
    link = Link(database.address.replace("?options=", "?options=-csynchronous_commit%3Doff%20"))
    assert link(lambda c: c.execute("show synchronous_commit").fetchone()) == ("on",)
    link.close()


def test_passwords_are_not_shown():
    address = "postgresql://shop:secret@db.example:5433/shop?options=-csearch_path%3Da"
    assert shown(address) == "postgresql://shop@db.example:5433/shop"
    assert open_store(address).name == "postgresql://shop@db.example:5433/shop"
    with pytest.raises(ValueError, match="not the address of a database"):
        open_store("postgresql://[")


def test_a_log_of_a_later_release_is_left_alone(database):
    database.log("process").close()
    with psycopg.connect(database.address, autocommit=True) as other:
        other.execute("update head set version = 99")
    with pytest.raises(ValueError, match="the log has version 99; this release writes 1"):
        database.log("process")

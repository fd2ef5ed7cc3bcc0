"""What every store keeps beside the log, in a folder and in a database."""

import numpy as np
import pytest

from lser.online.log import Entry


@pytest.fixture
def shelf(store):
    store.log("process").close()
    return store.shelf


def test_a_tree_comes_back_and_is_replaced(shelf):
    shelf.save("policies/lser", 3, {"a": np.arange(4.0), "b": [1, "x", None]})
    found = shelf.load("policies/lser", 3)
    np.testing.assert_array_equal(found["a"], np.arange(4.0))
    assert found["b"] == [1, "x", None]
    shelf.save("policies/lser", 3, {"a": 2})
    assert shelf.load("policies/lser", 3) == {"a": 2}
    with pytest.raises(OSError):
        shelf.load("policies/lser", 4)
    with pytest.raises(OSError):
        shelf.load("policies/other", 3)


def test_the_newest_is_found_and_old_ones_are_forgotten(shelf):
    assert shelf.latest("learner") is None
    for number in range(1, 7):
        shelf.save("learner", number, {"n": number})
    assert shelf.latest("learner") == {"n": 6}
    shelf.forget("learner", newest=2, keep={2})
    for number in range(1, 7):
        if number in (2, 5, 6):
            assert shelf.load("learner", number) == {"n": number}
        else:
            with pytest.raises(OSError):
                shelf.load("learner", number)


def test_the_learner_s_word_is_kept(shelf):
    assert shelf.status() == {}
    shelf.report({"cursor": 3})
    shelf.report({"cursor": 4})
    assert shelf.status() == {"cursor": 4}


def test_a_store_without_a_log_says_so(store):
    assert not store.exists()
    with pytest.raises(FileNotFoundError, match="holds no log"):
        store.reader()
    log = store.log("process")
    log.append(Entry("settings", "1", b"{}"))
    assert store.exists()
    log.close()


def test_one_lease_at_a_time(store):
    log = store.log("process")
    lease = store.lease(log)
    assert lease.held()
    assert store.lease(log) is None
    lease.outbox.send("policy", "lser-1", b"{}")
    lease.outbox.send("policy", "lser-1", b"{}")
    store.take_in(log)
    reader = store.reader()
    assert [event.id for event in reader.of_kind("policy")] == ["lser-1"]
    reader.close()
    lease.close()
    again = store.lease(log)
    assert again is not None
    again.close()
    log.close()

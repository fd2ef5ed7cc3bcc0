"""Several recommenders over one log in PostgreSQL: one shop, whoever is asked."""

import threading

import numpy as np
import pytest

pytest.importorskip("psycopg")

from replays import Nowhere, state
from shops import Shoppers, catalogue, quick, visit

from lser.online import ConflictError, Recommender
from lser.online.learning import Learning
from lser.online.postgres import store as postgres_store
from waiting import until


@pytest.fixture
def pair(database, hands):
    """Two servers of one shop; neither learns by itself."""
    one = Recommender(catalogue(), database.address, features=2, settings=quick(), learner="off")
    two = Recommender.open(database.address, learner="off")
    yield one, two
    one.close()
    two.close()


def test_a_page_of_one_server_is_known_to_the_other(pair):
    one, two = pair
    page = one.recommend("u", [0.1, 0.2], 5, id="x")
    assert two.recommend("u", [9.0, 9.0], 3, id="x") == page
    with pytest.raises(ConflictError):
        two.recommend("v", [0.1, 0.2], 5, id="x")
    assert two.feedback("x", page.items[:1])
    assert not one.feedback("x", page.items[:1])  # joined once
    until(lambda: one.books.cursor == two.books.cursor)
    for shop in pair:
        assert shop.books.counts["decisions"] == 1
        assert shop.books.counts["clicks"] == 1
    seen = [shop.books.visitors.find("u").vectors for shop in pair]
    np.testing.assert_array_equal(*seen)


def test_items_and_settings_reach_every_server(pair):
    one, two = pair
    one.put_items(["new"], np.ones((1, 4)))
    two.change({"pace": 2.0})
    until(lambda: "new" in two.books.items.row and one.settings.pace == 2.0)
    one.remove_items([str(n) for n in range(60)])
    until(lambda: len(two.books.items) == 1)
    assert two.recommend("u", [0, 0], 5).items == ["new"]


def test_policies_are_published_through_the_database(pair, hands):
    one, two = pair
    visit(one, Shoppers(catalogue()), 60)
    hands.turn(0.3)
    assert one.learn() >= 60
    with pytest.raises(ValueError, match="has a learner already"):
        two.learn()
    [(arm, _)] = one.settings.arms
    version = one.books.arms.versions[arm].current
    assert version > 0
    until(lambda: (arm, version) in two._policies)
    assert two.recommend("u", [0, 0], 5).policy == f"{arm}-{version}"


def test_books_of_all_servers_are_the_same_fold(pair):
    shoppers = Shoppers(catalogue())
    threads = [
        threading.Thread(target=visit, args=(shop, shoppers, 60, 1_000 * place))
        for place, shop in enumerate(pair)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for shop in pair:
        shop.keeper._stop.set()  # no more ticks
        for thread in shop.keeper._threads:
            thread.join()
    until(lambda: pair[0].books.cursor == pair[1].books.cursor)
    first, second = (shop.books.state() for shop in pair)
    for name in ("vectors", "numbers"):
        np.testing.assert_array_equal(first["visitors"].pop(name), second["visitors"].pop(name))
    assert first == second
    assert first["counts"]["decisions"] == 120


def test_a_second_learner_takes_over_to_the_same_bits(database, hands, monkeypatch):
    monkeypatch.setattr(postgres_store, "LASTS", 0.6)
    settings = quick(snapshot_every=0.15)
    with Recommender(
        catalogue(), database.address, features=2, settings=settings, learner="off"
    ) as shop:
        visit(shop, Shoppers(catalogue()), 120)
        hands.turn(0.3)
        visit(shop, Shoppers(catalogue()), 40, start=120)
    first, reader = database.lease(), database.reader()
    learning = Learning(first.shelf, reader, first.outbox)
    learning.step(130)
    learning.save()
    learning.step(40)  # and is paused in the middle of something
    first._done.set()
    found = []
    until(lambda: found.append(database.lease()) or found[-1] is not None)
    second = found[-1]
    taken = Learning(second.shelf, reader, second.outbox)
    while taken.step(7):
        pass
    with pytest.raises(Exception, match="lease"):  # it wakes up, and cannot write
        learning.save()
    calm = Learning(Untouched(), reader, Nowhere())
    while calm.step(2_000):
        pass
    end = min(calm.cursor, taken.cursor)
    assert end == taken.cursor or calm.cursor > taken.cursor
    while calm.cursor < taken.cursor or taken.cursor < calm.cursor:
        calm.step()
        taken.step()
    assert state(taken) == state(calm)
    second.close()
    first.close()
    reader.close()


class Untouched:
    """A shelf that holds nothing and keeps nothing."""

    def save(self, room, number, tree):
        pass

    def load(self, room, number):
        raise FileNotFoundError

    def latest(self, room):
        return None

    def forget(self, room, *, newest, keep=()):
        pass

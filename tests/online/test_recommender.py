import threading

import numpy as np
import orjson
import pytest
from replays import Nowhere
from shops import Shoppers, catalogue, quick, visit

from lser.online import ConflictError, Recommender
from lser.online.arms import arm_of, unit
from lser.online.books import Books
from lser.online.folder_store import FolderShelf
from lser.online.items import Items, unpacked
from lser.online.learning import Learning
from lser.online.settings import Settings, parse_arms
from lser.online.sqlite_reader import SqliteReader
from waiting import until


@pytest.fixture
def shop(store):
    """A shop on SQLite and one on PostgreSQL: what follows holds on both."""
    made = Recommender(catalogue(), store, features=2, settings=quick(), learner="off")
    yield made
    made.close()


def events(shop, kind):
    reader = shop.store.reader()
    found = list(reader.of_kind(kind))
    reader.close()
    return found


@pytest.fixture(autouse=True)
def wait(hands):
    """Let the log's time pass, and have it noticed."""

    def passed(shop, seconds):
        hands.turn(seconds)
        shop.learn()

    return passed


def test_a_page_has_distinct_items_and_its_propensities(shop):
    page = shop.recommend("u", [0.1, 0.2], 7)
    assert len(set(page.items)) == len(page.items) == len(page.propensities) == 7
    assert all(0 < chance <= 1 for chance in page.propensities)
    assert page.arm == "lser-steady"


def test_a_retried_page_is_the_logged_one(shop):
    first = shop.recommend("u", [0.1, 0.2], 5, id="x")
    shop.remove_items(first.items)
    assert shop.recommend("u", [9.0, 9.0], 3, id="x") == first
    assert len(events(shop, "decision")) == 1
    with pytest.raises(ConflictError, match="another user"):
        shop.recommend("v", [0.1, 0.2], 5, id="x")


def test_the_observation_is_logged_as_used(shop):
    page = shop.recommend("u", [0.25, -1.0], 5)
    shop.feedback(page.id, page.items[:2])
    shop.recommend("u", None, 5)
    first, second = (orjson.loads(e.body) for e in events(shop, "decision"))
    seen = unpacked(second["observation"])
    assert first["layout"] == 1
    np.testing.assert_allclose(seen[:2], [0.25, -1.0])  # the last features, where none are given
    rows = [shop.books.items.row[item] for item in page.items[:2]]
    clicked = 0.3 * shop.books.items.vectors[rows].mean(axis=0)
    np.testing.assert_allclose(seen[2:6], clicked, rtol=1e-5)


def test_repeated_feedback_changes_nothing(shop):
    page = shop.recommend("u", [0, 0], 5)
    assert shop.feedback(page.id, page.items[:1])
    before = shop.books.visitors.find("u").vectors.copy()
    assert not shop.feedback(page.id, page.items[:1])
    np.testing.assert_array_equal(shop.books.visitors.find("u").vectors, before)
    assert shop.feedback(page.id, page.items[1:2])
    assert shop.feedback(page.id, value=2.0, id="mine")
    assert not shop.feedback(page.id, value=2.0, id="mine")
    assert shop.books.counts["clicks"] == 2


def test_late_feedback_is_logged_counted_and_not_learned(shop, wait):
    page = shop.recommend("u", [0, 0], 5)
    wait(shop, 0.3)
    assert shop.feedback(page.id, page.items)
    assert shop.books.counts["late"] == 1
    assert shop.books.arms.total["lser-steady"].clicks == 0
    assert len(events(shop, "feedback")) == 1


def test_filters_lists_exclusions_and_short_pages(shop):
    shop.put_items(["a", "b"], catalogue(2), [{"kind": "new"}, {"kind": "new"}])
    page = shop.recommend("u", [0, 0], 5, where={"kind": "new"})
    assert sorted(page.items) == ["a", "b"]
    assert np.prod(page.propensities) == pytest.approx(0.5)
    assert shop.recommend("u", [0, 0], 5, where={"kind": "new"}, exclude=["a"]).items == ["b"]
    assert sorted(shop.recommend("u", [0, 0], 5, among=["3", "4", "x"]).items) == ["3", "4"]
    assert shop.recommend("u", [0, 0], 5, where={"kind": "?"}).items == []


def test_items_change_while_it_runs(shop):
    shop.remove_items([str(n) for n in range(55)])
    assert set(shop.recommend("u", [0, 0], 10).items) == {"55", "56", "57", "58", "59"}
    shop.put_items(["new"], np.ones((1, 4)))
    assert "new" in shop.recommend("u", [0, 0], 10).items
    before = len(events(shop, "items"))
    shop.put_items(["new"], np.ones((1, 4)))  # as it is already: nothing to log
    assert len(events(shop, "items")) == before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.recommend("u", [1.0]), "features must be 2 numbers"),
        (lambda s: s.recommend("u", [1.0, np.inf]), "features must be finite"),
        (lambda s: s.recommend("u", ["a", "b"]), "features must be a list of numbers"),
        (lambda s: s.recommend("u", [1, 1], 0), "k must be a whole number from 1"),
        (lambda s: s.recommend("", [1, 1]), "user must be a text"),
        (lambda s: s.recommend("u\n", [1, 1]), "user must be a text"),
        (lambda s: s.feedback("x", value=float("nan")), "value must be a number"),
        (lambda s: s.put_items(["a"], [[1.0]]), "vectors must have 4 numbers"),
        (lambda s: s.put_items(["a"]), "vectors must be given"),
        (lambda s: s.promote("lser-steady", 9), "has no policies"),
        (lambda s: s.change({"dim": 9}), "dim is 4 in this log and cannot become 9"),
    ],
)
def test_bad_arguments_are_refused_and_not_logged(shop, call, message):
    head = shop.log.head
    with pytest.raises(ValueError, match=message):
        call(shop)
    assert shop.log.head == head


def test_it_learns_what_visitors_click(shop, wait):
    shoppers = Shoppers(catalogue())
    before = np.mean(visit(shop, shoppers, 150))
    for turn in range(1, 4):
        wait(shop, 0.25)
        visit(shop, shoppers, 150, start=150 * turn)
    wait(shop, 0.25)
    after = np.mean(visit(shop, shoppers, 150, start=10_000))
    assert after > 2 * before


def test_a_shop_goes_on_where_it_stopped(tmp_path, wait):
    shoppers = Shoppers(catalogue())
    with Recommender(
        catalogue(), tmp_path / "shop", features=2, settings=quick(), learner="off"
    ) as shop:
        visit(shop, shoppers, 60)
        wait(shop, 0.25)
        visit(shop, shoppers, 10, start=60)
        versions = shop.books.arms.versions["lser-steady"].current
        now = shop.log.now()
        seen = shop.books.visitors.observe("u3", None, now)
    with Recommender.open(tmp_path / "shop", learner="off") as again:
        assert again.books.arms.versions["lser-steady"].current == versions > 0
        np.testing.assert_array_equal(again.books.visitors.observe("u3", None, now), seen)
        assert again.settings == shop.settings


def test_books_folded_anew_are_the_books_of_the_snapshot(tmp_path, wait):
    """Without its snapshot, after kill -9 say, a shop has the same books."""
    shoppers = Shoppers(catalogue())
    with Recommender(
        catalogue(), tmp_path / "shop", features=2, settings=quick(), learner="off"
    ) as shop:
        visit(shop, shoppers, 50)
        wait(shop, 0.25)
        visit(shop, shoppers, 50, start=50)
        shop.books.save(shop.store.shelf)
        visit(shop, shoppers, 5, start=100)
    states = []
    for keep in (True, False):
        if not keep:
            for file in (tmp_path / "shop" / "books").iterdir():
                file.unlink()
        reader = SqliteReader(tmp_path / "shop")
        states.append(Books.open(FolderShelf(tmp_path / "shop"), reader).state())
        reader.close()
    one, two = states
    np.testing.assert_array_equal(one["visitors"].pop("vectors"), two["visitors"].pop("vectors"))
    np.testing.assert_array_equal(one["visitors"].pop("numbers"), two["visitors"].pop("numbers"))
    assert one == two


def test_many_threads_get_right_pages(tmp_path):
    shop = Recommender(
        catalogue(), tmp_path / "shop", features=2, settings=quick(), learner="thread"
    )
    shoppers, wrong = Shoppers(catalogue()), []

    def work(thread):
        for number in range(60):
            user = (7 * thread + number) % 40
            page = shop.recommend(
                f"u{user}", shoppers.features[user], 5, id=f"{thread}-{number // 2}-{user}"
            )
            if len(set(page.items)) != 5 or not 0 < np.prod(page.propensities) < 1:
                wrong.append(page)
            shop.feedback(page.id, shoppers.clicks(user, page.items))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    ids = [event.id for event in events(shop, "decision")]
    assert len(ids) == len(set(ids)) == shop.books.counts["decisions"]
    shop.close()


def test_arms_are_a_function_of_the_user_and_have_their_shares():
    settings = Settings(arms=parse_arms(["lser", "uniform", "bandit=.1"]), salt="s")
    assert dict(settings.arms) == pytest.approx({"lser": 0.45, "uniform": 0.45, "bandit": 0.1})
    names = [arm_of(settings, f"u{n}") for n in range(5_000)]
    assert names == [arm_of(settings, f"u{n}") for n in range(5_000)]
    for name, share in settings.arms:
        assert names.count(name) / 5_000 == pytest.approx(share, abs=0.03)
    other = Settings(arms=settings.arms, salt="another")
    assert names != [arm_of(other, f"u{n}") for n in range(5_000)]


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        (["lser=.5"], "add up to 1"),
        (["lser", "lser"], "named once"),
        (["best"], "arm must be one of"),
        (["lser=1", "bandit"], "leave nothing"),
        (["LSER!"], "NAME or NAME=SHARE"),
    ],
)
def test_bad_arms_are_refused(arms, message):
    with pytest.raises(ValueError, match=message):
        Settings(arms=parse_arms(arms))


def test_exploration_belongs_to_the_visit(shop, wait):
    """One visitor's pages of one visit explore in one way; another visit in another."""
    shoppers = Shoppers(catalogue())
    visit(shop, shoppers, 60)
    wait(shop, 0.3)
    for session in ("s1", "s1", "s2"):
        shop.recommend("u1", [0, 0], 5, session=session)
    bodies = [orjson.loads(e.body) for e in events(shop, "decision")[-3:]]
    policy = shop._policies["lser-steady", bodies[0]["version"]]
    noises = []
    for body in bodies:
        clean = policy.direction(unpacked(body["observation"]))
        noises.append(unpacked(body["direction"]) - clean / np.linalg.norm(clean))
    np.testing.assert_allclose(noises[0], noises[1], atol=1e-6)
    assert np.abs(noises[0] - noises[2]).max() > 1e-3


def test_promote_and_rollback_by_hand(shop, wait):
    shoppers = Shoppers(catalogue())
    for turn in range(3):
        visit(shop, shoppers, 40, start=40 * turn)
        wait(shop, 0.3)
    versions = shop.books.arms.versions["lser-steady"]
    newest = versions.current
    assert newest >= 2
    shop.rollback("lser-steady", 1)
    assert (versions.current, versions.held) == (1, True)
    visit(shop, shoppers, 20, start=500)
    wait(shop, 0.3)
    assert versions.current == 1  # candidates wait
    shop.promote("lser-steady", newest)
    assert (versions.current, versions.stable, versions.held) == (newest, newest, False)
    with pytest.raises(ValueError, match="no version 999"):
        shop.promote("lser-steady", 999)


def feed_arms(shop, rates, pages=600):
    """Closed pages of users with given click rates per arm, straight into the books."""
    rng = np.random.default_rng(0)
    for number in range(pages):
        page = shop.recommend(f"v{number}", [0, 0], 10)
        hits = [item for item in page.items if rng.random() < rates(page, f"v{number}")]
        if hits:
            shop.feedback(page.id, hits)


def test_an_arm_below_control_goes_back_by_itself(tmp_path, hands, wait):
    arms = (("bandit", 0.5), ("lser", 0.5))
    settings = quick(arms=arms, learning_starts=10)
    with Recommender(
        catalogue(), tmp_path / "shop", features=2, settings=settings, learner="off"
    ) as shop:
        feed_arms(shop, lambda page, user: 0.4 if page.arm == "bandit" else 0.05, pages=100)
        wait(shop, 0.3)
        versions = shop.books.arms.versions["lser"]
        assert versions.current > 0
        feed_arms(shop, lambda page, user: 0.4 if page.arm == "bandit" else 0.05, pages=500)
        hands.turn(0.3)
        until(lambda: versions.held, "the way back")
        assert versions.current == 0
        release = orjson.loads(events(shop, "release")[-1].body)
        assert release["by"] == "evidence"
        page = shop.recommend(next(u for u in map(str, range(99)) if arm_of(settings, u) == "lser"))
        assert page.arm == "lser"
        assert page.policy.startswith("bandit")  # control's pages


def test_the_cold_start_hands_over_on_evidence(tmp_path, hands, wait):
    settings = quick(cold="popular", learning_starts=10)
    with Recommender(
        catalogue(), tmp_path / "shop", features=2, settings=settings, learner="off"
    ) as shop:
        arms = shop.books.arms
        assert arms.cold("lser-steady")

        def rates(page, user):
            return 0.4 if page.policy.startswith("lser") else 0.05

        feed_arms(shop, rates, pages=60)
        wait(shop, 0.3)
        assert shop.recommend("w").policy.split("-")[0] in ("popular", "lser")
        cold = [u for u in map(str, range(50)) if unit("lser", "probe", u) < 0.5]
        assert shop.recommend(cold[0]).policy.startswith("popular")
        feed_arms(shop, rates, pages=500)
        hands.turn(0.3)
        until(lambda: not arms.cold("lser-steady"), "the handover")
        assert shop.recommend(cold[0]).policy.startswith("lser")
        assert orjson.loads(events(shop, "handover")[0].body)["by"] == "evidence"


def test_settings_change_from_now_on(shop):
    shop.change({"k": 10, "pace": 2.0})
    assert shop.settings.pace == 2.0
    assert len(events(shop, "settings")) == 2


def test_a_new_shop_needs_items(tmp_path):
    with pytest.raises(ValueError, match="items must be given"):
        Recommender(None, tmp_path / "shop")
    with pytest.raises(FileNotFoundError):
        Recommender.open(tmp_path / "other")


def test_without_vectors_they_are_learned_from_co_clicks(tmp_path, wait):
    """Visitors click within one of two halves: learned vectors tell the halves apart."""
    ids = [f"i{n}" for n in range(20)]
    settings = quick(dim=4, window=0.05)
    with Recommender(ids, tmp_path / "shop", settings=settings, learner="off") as shop:
        rng = np.random.default_rng(0)
        for number in range(250):
            half = number % 2
            for _ in range(2):
                page = shop.recommend(f"u{number}", None, 8)
                hits = [i for i in page.items if int(i[1:]) % 2 == half and rng.random() < 0.8]
                shop.feedback(page.id, hits)
        wait(shop, 0.2)
        shop.learn()
        items = shop.books.items
        vectors = items.vectors
        same = np.mean([vectors[a] @ vectors[b] for a in (0, 2, 4) for b in (6, 8, 10)])
        other = np.mean([vectors[a] @ vectors[b] for a in (0, 2, 4) for b in (1, 3, 5)])
        assert same > other + 0.5
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, rel=1e-4)


def test_retention_deletes_what_was_learned_and_is_old(shop, wait):
    shoppers = Shoppers(catalogue())
    visit(shop, shoppers, 100)
    wait(shop, 0.3)
    shop.change({"retention_events": 50})
    assert shop.keeper.trim() == 0  # the learner has saved nothing yet
    shop.keeper._learning.save()
    shop.keeper._learning.report()
    assert shop.keeper.trim() > 50
    assert shop.log.head - events(shop, "decision")[0].seq <= 50
    assert len(events(shop, "items")) == 1
    page = shop.recommend("u1", [0, 0], 5)
    assert len(page.items) == 5


def test_old_changes_of_items_are_compacted_and_mean_the_same(shop, wait):
    """Below the oldest page that is kept; a shop opened anew has the same catalogue."""
    shoppers, rng = Shoppers(catalogue()), np.random.default_rng(0)
    for turn in range(12):
        ids = [f"i{n}" for n in rng.permutation(20)[:4]]
        shop.put_items(ids, rng.standard_normal((4, 4)), [{"turn": turn}] * 4)
        shop.remove_items(ids[:1])
    visit(shop, shoppers, 60)
    wait(shop, 0.3)
    shop.change({"retention_events": 20})
    shop.keeper._learning.save()
    shop.keeper._learning.report()
    before = len(events(shop, "items"))
    shop.keeper.trim()
    assert (before, len(events(shop, "items"))) == (25, 1)
    items = shop.books.items
    anew = Items(4)
    for event in events(shop, "items"):
        anew.apply(orjson.loads(event.body))
    assert (anew.row, anew.rows) == (items.row, items.rows)
    np.testing.assert_array_equal(anew.vectors[anew.live], items.vectors[items.live])
    again = Learning(shop.store.shelf, shop._reader, Nowhere())
    assert again.items.row == items.row
    shop.keeper.trim()
    assert len(events(shop, "items")) == 1

"""The commands of an online shop, as a person meets them."""

import csv
import json
import os

import numpy as np
import pytest
from drill.service import free_port, write_items
from shops import Shoppers, catalogue, quick, visit

from lser.cli import inspect, main
from lser.online import Recommender
from lser.online.past import read_past


@pytest.fixture
def table(tmp_path):
    write_items(tmp_path / "items.csv")
    return tmp_path / "items.csv"


def past_rows(pages=120):
    """A past in which everybody clicks odd items."""
    rng = np.random.default_rng(0)
    for number in range(pages):
        for item in rng.permutation(60)[:5].tolist():
            yield [f"u{number % 10}", item, 1_700_000_000 + 60 * number, item % 2]


def write_csv(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def test_clicks_of_the_past_fill_memory_and_counters_first(tmp_path, table, capsys):
    clicks = write_csv(tmp_path / "clicks.csv", ["user", "item", "time", "clicked"], past_rows())
    shop = tmp_path / "shop"
    assert main(["import", str(clicks), str(shop), "--items", str(table)]) == 0
    assert "120 pages read, 120 new" in capsys.readouterr().err
    assert main(["import", str(clicks), str(shop)]) == 0
    assert "120 pages read, 0 new" in capsys.readouterr().err  # the same table changes nothing
    with Recommender.open(shop, learner="off") as recommender:
        assert recommender.books.counts["past"] == 120
        assert recommender.books.visitors.find("u3").numbers[0] == 12
        assert recommender.learn() == 120
        popular = recommender._policies["popular", 1]
        best = recommender.books.nearest.top(popular._scores, 20).rows
        assert all(int(recommender.books.items.ids[row]) % 2 for row in best)


def test_a_past_of_clicks_alone_is_filled_with_others(tmp_path, table):
    rows = [[u, i, t] for u, i, t, clicked in past_rows() if clicked]
    clicks = write_csv(tmp_path / "clicks.csv", ["user_id", "sku", "timestamp"], rows)
    pages = read_past(clicks)
    assert all(all(page.clicked) for page in pages)
    shop = tmp_path / "shop"
    assert main(["import", str(clicks), str(shop), "--items", str(table), "--fill", "5"]) == 0
    with Recommender.open(shop, learner="off") as recommender:
        recommender.learn()
        shown = recommender.keeper._learning.learners["popular"].shown.sum()
        clicked = recommender.keeper._learning.learners["popular"].clicks.sum()
        assert 0.2 < clicked / shown < 0.5


def test_pages_of_the_past_are_told_by_a_column_or_by_time(tmp_path):
    rows = [
        ["u", "a", 10.0, "p"],
        ["u", "b", 10.2, "q"],
        ["v", "c", 10.3, "r"],
        ["u", "d", 99, "q"],
    ]
    by_time = write_csv(tmp_path / "t.csv", ["user", "item", "time"], [r[:3] for r in rows])
    assert [page.items for page in read_past(by_time)] == [["a", "b"], ["c"], ["d"]]
    by_page = write_csv(tmp_path / "p.csv", ["user", "item", "time", "page"], rows)
    assert [page.items for page in read_past(by_page)] == [["a"], ["b", "d"], ["c"]]


@pytest.mark.parametrize(
    ("header", "row", "message"),
    [
        (["user", "time"], ["u", "1"], "no column for item"),
        (["user", "item", "time"], ["u", "a", "soon"], "time must be seconds or an ISO date"),
    ],
)
def test_a_past_that_cannot_be_read_is_refused(tmp_path, header, row, message):
    with pytest.raises(ValueError, match=message):
        read_past(write_csv(tmp_path / "clicks.csv", header, [row]))


def test_policies_are_estimated_from_a_log(tmp_path, hands, capsys):
    shoppers, settings = Shoppers(catalogue()), quick(random_share=0.5, temperature=3.0)
    with Recommender(
        catalogue(), tmp_path / "shop", features=2, settings=settings, learner="off"
    ) as shop:
        for turn in range(3):
            visit(shop, shoppers, 100, start=100 * turn)
            hands.turn(0.25)
            shop.learn()
    assert main(["evaluate", "--log", str(tmp_path / "shop"), "--floor", "1"]) == 0
    assert "SNIPS" in capsys.readouterr().out
    assert main(["evaluate", "--log", str(tmp_path / "shop"), "--floor", "1e9", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert all(result["ips"] is None for result in found.values())
    assert main(["evaluate", "--log", str(tmp_path / "shop"), "--policy", "lser-99"]) == 2
    assert "holds no policy lser-99" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serve"], "name the shop's folder, or use --demo"),
        (["serve", "s", "--arm", "best"], "arm must be one of"),
        (["policy", "promote", "--url", "http://127.0.0.1:9"], "needs an arm and a version"),
        (["policy", "list", "--url", "ftp://x"], "must begin with http"),
        (["policy", "list", "--url", "http://127.0.0.1:9"], "does not answer"),
        (["backup", "nowhere", "copy"], "nowhere holds no log"),
        (["evaluate", "--log", "nowhere"], "nowhere holds no log"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["garbage", "empty", "pipe"])
@pytest.mark.parametrize("command", [["inspect"], ["evaluate", "--log"], ["serve"], ["backup"]])
def test_what_is_no_log_is_refused_by_its_name_at_once(command, kind, tmp_path, capsys):
    log = tmp_path / "shop" / "log.db"
    log.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(log)
    else:
        log.write_bytes(b"no database " * 400 if kind == "garbage" else b"")
    more = [str(tmp_path / "copy")] if command == ["backup"] else []
    assert main([*command, str(log.parent), *more]) == 2
    said = capsys.readouterr().err
    assert str(log) in said
    assert "no plain file" in said if kind == "pipe" else "cannot be read as a log" in said


def test_a_new_shop_without_items_is_refused(tmp_path, capfd):
    assert main(["serve", str(tmp_path / "shop"), "--port", str(free_port())]) == 2
    assert "name its items with --items" in capfd.readouterr().err


@pytest.mark.slow
def test_the_demo_s_click_rate_rises(tmp_path, capsys):
    shop = tmp_path / "shop"
    arguments = ["serve", str(shop), "--demo", "--seconds", "30", "--no-browser"]
    assert main([*arguments, "--port", str(free_port())]) == 0
    assert "pages, CTR" in capsys.readouterr().out
    with Recommender.open(shop, learner="off") as recommender:
        arms = recommender.books.arms
        rates = {
            name: [(b.clicks, b.shown) for b in list(arms.curve[name])[-5:]] for name in arms.curve
        }
        ends = {name: sum(c for c, _ in r) / sum(n for _, n in r) for name, r in rates.items()}
    assert ends["bandit"] > 3 * ends["random"]
    assert ends["lser-steady"] > 3 * ends["random"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serve", "--log", "shop"], "--log takes postgresql://"),
        (["serve", "shop", "--log", "postgresql://x/y"], "and no folder beside it"),
        (["learn", "--log", "shop"], "--log takes postgresql://"),
        (["backup", "postgresql://x/y", "copy"], "use pg_dump"),
    ],
)
def test_what_a_database_cannot_do_is_said(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_a_shops_log_can_be_inspected(store, hands, capsys):
    """Users by whose features clicks go, on any store: codes explain what they clicked."""
    vectors = catalogue()
    shoppers = Shoppers(vectors)
    with Recommender(vectors, store, features=2, settings=quick(), learner="off") as recommender:
        with pytest.raises(ValueError, match="no closed pages yet"):
            inspect.read(store.address)
        clicks = visit(recommender, shoppers, 400)
        hands.turn(10)
        visit(recommender, shoppers, 1, start=400)  # time passes with events
        log = inspect.read(store.address)
    assert log.reward.tolist() == clicks
    assert log.observation[:40, :2] == pytest.approx(shoppers.features, abs=1e-6)
    assert main(["inspect", store.address, "--bits", "2", "4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["transitions"] == 400
    assert found["advice"]["pays"]

"""The commands of a shop: what they refuse before anything is touched or started."""

import pytest
from small import written

from lser.cli import main
from lser.cli.serve import INSTALL
from lser.online import Recommender

ITEMS = "id,v0,v1\n" + "".join(f"i{n},{n % 3},{n % 5}\n" for n in range(12))
CLICKS = "user,item,time,clicked\nu,i1,10,1\nu,i2,10,0\nv,i3,20,1\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with items and clicks, and nothing else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LSER_ADMIN_TOKEN", raising=False)
    monkeypatch.delenv("LSER_WRITER_TOKEN", raising=False)
    (tmp_path / "items.csv").write_text(ITEMS)
    (tmp_path / "clicks.csv").write_text(CLICKS)
    return tmp_path


def said(words, capsys):
    assert main(words.split()) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert "Traceback" not in found.err
    return found.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--host 0.0.0.0", "--host 0.0.0.0 is open to others"),
        ("--demo --host 0.0.0.0", "--host 0.0.0.0 is open to others"),
        ("--demo --seconds -1", "--seconds must be finite and >= 0, got -1"),
        ("--arm lser=2", "2"),
        ("--arm lser --arm lser", "lser"),
        ("--k 0", "k must be"),
        ("--window -1", "window"),
        ("--canary 2", "canary"),
        ("--rate -1", "rate"),
        ("--body-limit 0", "body must be at least 1, got 0"),
        ("--writer-token-file none", "none"),
    ],
)
def test_a_shop_is_not_opened_with_impossible_settings(options, message, files, capsys):
    assert message in said(f"serve shop --items items.csv {options}", capsys)
    assert not (files / "shop").exists()


def test_a_token_of_a_few_letters_is_refused(files, capsys):
    (files / "token").write_text("secret")
    error = said("serve shop --items items.csv --admin-token-file token", capsys)
    assert "must have at least 16 characters" in error
    assert "secret" not in error


def test_a_missing_extra_is_said_with_its_command(files, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lser.online.service.limits", None)
    assert INSTALL in said("serve shop --items items.csv", capsys)


def test_clicks_come_into_a_new_shop_once(files, capsys):
    assert main(["import", "clicks.csv", "shop", "--items", "items.csv", "--features", "2"]) == 0
    assert capsys.readouterr().err == "2 pages read, 2 new\n"
    assert main(["import", "clicks.csv", "shop"]) == 0
    assert capsys.readouterr().err == "2 pages read, 0 new\n"
    with Recommender.open(files / "shop", learner="off") as shop:
        assert shop.settings.features == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--gap -1", "--gap must be finite and >= 0, got -1"),
        ("--gap nan", "--gap must be finite and >= 0, got nan"),
        ("--fill -1", "--fill must be >= 0, got -1"),
        ("--features -1", "--features must be >= 0, got -1"),
    ],
)
def test_impossible_options_of_an_import_leave_no_shop(options, message, files, capsys):
    assert message in said(f"import clicks.csv shop --items items.csv {options}", capsys)
    assert not (files / "shop").exists()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("u,i1,10,maybe", "clicked must be 0 or 1, got 'maybe'"),
        ("u,i1,10,7", "clicked must be 0 or 1, got '7'"),
        ("u,i1,nan,1", "time must be seconds or an ISO date, got 'nan'"),
        ("u,i1,soon,1", "time must be seconds or an ISO date, got 'soon'"),
    ],
)
def test_a_row_that_makes_no_sense_is_quoted(row, message, files, capsys):
    (files / "clicks.csv").write_text(f"user,item,time,clicked\n{row}\n")
    assert message in said("import clicks.csv shop --items items.csv", capsys)
    assert not (files / "shop").exists()


def test_more_items_than_there_are_fill_what_they_can(files, capsys):
    assert main(["import", "clicks.csv", "shop", "--items", "items.csv", "--fill", "99"]) == 0
    with Recommender.open(files / "shop", learner="off") as shop:
        shop.learn()
        assert shop.keeper._learning.learners["popular"].shown.sum() == 2 * 12


def test_a_table_that_is_not_there_is_named(files, capsys):
    assert "absent.csv" in said("import absent.csv shop --items items.csv", capsys)


def test_a_new_shop_needs_its_items(files, capsys):
    assert "items" in said("import clicks.csv shop", capsys)


def test_a_copy_opens_as_a_shop_of_its_own(files, capsys):
    assert main(["import", "clicks.csv", "shop", "--items", "items.csv"]) == 0
    capsys.readouterr()
    assert main(["backup", "shop", "copies/monday"]) == 0
    assert capsys.readouterr().out.startswith("copies/monday: ")
    with Recommender.open(files / "copies" / "monday", learner="off") as shop:
        assert shop.books.counts["past"] == 2
    assert "copies/monday exists already" in said("backup shop copies/monday", capsys)


def test_a_copy_that_fails_leaves_nothing(files, capsys):
    written(files / "no-shop")
    assert "no-shop holds no log" in said("backup no-shop copy", capsys)
    assert not (files / "copy").exists()

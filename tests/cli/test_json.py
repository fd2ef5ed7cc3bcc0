"""What other programs read: JSON that every parser takes, one value a line."""

import json
import math

import pytest
from small import trained, written

from lser.catalogue import AGENTS, MEMORIES, SIMULATORS
from lser.cli import main
from lser.cli.json_text import json_text
from lser.theory import recall, simhash_collision


def strict(text):
    """Lines of JSON as the standard has it: there is no NaN in it."""

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    return [json.loads(line, parse_constant=refuse) for line in text.splitlines()]


def test_what_is_no_number_becomes_null():
    value = {"a": math.nan, "b": [1.5, -math.inf, "nan"], "c": (True, None), "d": {"e": 2}}
    (back,) = strict(json_text(value))
    assert back == {"a": None, "b": [1.5, None, "nan"], "c": [True, None], "d": {"e": 2}}


@pytest.mark.parametrize(
    ("command", "catalogue", "columns"),
    [
        ("memories", MEMORIES, {"name", "what", "needs", "source"}),
        ("agents", AGENTS, {"name", "title", "what", "needs", "source"}),
        ("simulators", SIMULATORS, {"name", "id", "metric", "random", "best known", "source"}),
    ],
)
def test_a_listing_has_a_line_for_each(command, catalogue, columns, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("LSER_VIRTUAL_TAOBAO", str(tmp_path))  # no download
    assert main([command, "--json"]) == 0
    rows = strict(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(catalogue)
    assert all(set(row) == columns for row in rows)


def test_a_simulator_without_its_weights_says_so_in_the_listing(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("LSER_VIRTUAL_TAOBAO", str(tmp_path))
    assert main(["simulators", "--json"]) == 0
    by_name = {row["name"]: row for row in strict(capsys.readouterr().out)}
    assert by_name["virtual-taobao"]["source"] == "weights not found"
    assert by_name["bazaar"]["best known"].startswith("0.4667")
    assert by_name["bazaar"]["id"] == "lser/Bazaar-v0"


def test_what_memories_need_is_words(capsys):
    assert main(["memories", "--json"]) == 0
    needs = {row["name"]: row["needs"] for row in strict(capsys.readouterr().out)}
    assert (needs["uniform"], needs["per"], needs["lser"]) == ("nothing", "td errors", "query")


def test_a_record_of_a_score_that_is_none_is_listed(tmp_path, capsys):
    final = {"metric": math.nan, "sessions": 3}
    written(tmp_path / "a", final=final)
    written(tmp_path / "b", final=None, status="stopped")
    assert main(["runs", str(tmp_path), "--json"]) == 0
    scores = [row["score"] for row in strict(capsys.readouterr().out)]
    assert scores == [None, None]


def test_evaluations_are_json_also_where_there_is_no_scale(tmp_path, capsys):
    folder = trained(tmp_path, "Pendulum-v1", "uniform", "random", "--sessions", "1")
    capsys.readouterr()
    assert main(["evaluate", str(folder), "--sessions", "1", "--json"]) == 0
    (told,) = strict(capsys.readouterr().out)
    assert told["metric_name"] == "reward_per_step"
    assert told["share_of_possible"] is None
    assert told["sessions"] == 1


def test_training_with_json_ends_with_its_final_evaluation_alone(tmp_path, capsys):
    trained(tmp_path, "bazaar", "uniform", "random", "--json")
    found = capsys.readouterr()
    (told,) = strict(found.out)
    assert told["sessions"] >= 12
    assert told["evaluated"] == 8
    assert "next: lser evaluate" in found.err


def test_theory_s_rows_are_those_of_the_library(capsys):
    assert main(["theory", "--bits", "8", "--angle", "20", "--tables", "3", "--json"]) == 0
    rows = {row["quantity"]: row["value"] for row in strict(capsys.readouterr().out)}
    one = simhash_collision(math.radians(20))
    assert rows["one function"] == pytest.approx(1 - 20 / 180)
    assert rows["one table"] == pytest.approx(recall(one, 8))
    assert rows["some table"] == pytest.approx(recall(one, 8, 3))
    assert rows["reachable codes"] == 256


def test_theory_of_distances_has_no_occupancy(capsys):
    assert main(["theory", "--bits", "4", "--distance", "1", "--norm", "1", "--json"]) == 0
    rows = {row["quantity"]: row["meaning"] for row in strict(capsys.readouterr().out)}
    assert "occupied codes" not in rows
    assert rows["distance"] == "L1 distance, cells 4 wide"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--angle 10 --distance 1", "give an angle or a distance, not both"),
        ("--bits 0", "bits must be from 1 to 1000, got 0"),
        ("--bits 5000", "bits must be from 1 to 1000, got 5000"),
        ("--tables 0", "tables must be >= 1, got 0"),
        ("--distance -1", "distance"),
        ("--distance 1 --width 0", "width must be positive and finite, got 0"),
        ("--stored 0", "stored must be a whole number of at least 1, got 0"),
        ("--dim 0", "dim must be a whole number of at least 1, got 0"),
    ],
)
def test_what_theory_cannot_answer_is_refused(words, message, capsys):
    assert main(["theory", *words.split()]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("words", ["--bits 1000", "--bits 142 --angle 179", "--angle 180"])
def test_theory_answers_at_the_edges(words, capsys):
    assert main(["theory", *words.split(), "--json"]) == 0
    assert len(strict(capsys.readouterr().out)) > 3

"""Settings of a shop: every field of its kind and in its range, whoever sends it."""

import math
from dataclasses import fields

import pytest

from lser.online.settings import FIXED, Settings, parse_arms

NUMBERS = [field.name for field in fields(Settings) if field.type in (int, float)]
COUNTS = [field.name for field in fields(Settings) if field.type is int]


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [math.nan, math.inf, "x", None, True, [1]])
def test_a_number_that_is_none_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        Settings(**{name: value})


@pytest.mark.parametrize("name", COUNTS)
def test_a_part_of_a_page_is_no_page(name):
    with pytest.raises(ValueError, match=f"^{name} must be an integer, got 1.5"):
        Settings(**{name: 1.5})


@pytest.mark.parametrize("name", [name for name in NUMBERS if name != "layout"])
def test_a_number_below_zero_is_refused_by_name(name):
    with pytest.raises(ValueError, match=f"^{name} must be .*-1"):
        Settings(**{name: -1})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cold", "warm"),
        ("learn_from", 3),
        ("release", None),
        ("learned_vectors", "yes"),
        ("salt", 3),
        ("canary", 1.0),
        ("random_share", 1.5),
        ("arms", 3),
        ("arms", None),
        ("arms", ("lser",)),
        ("arms", (("lser", "much"),)),
        ("arms", ()),
    ],
)
def test_a_choice_that_is_none_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        Settings(**{name: value})


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ((("best", 1.0),), "arm must be one of"),
        ((("lser", 0.0), ("random", 1.0)), r"share of arm 'lser' must be in \(0, 1\], got 0"),
        ((("lser", 0.5), ("lser", 0.5)), "arms must be named once each"),
        ((("lser", 0.5), ("random", 0.4)), "shares must add up to 1"),
    ],
)
def test_arms_share_the_traffic(arms, message):
    with pytest.raises(ValueError, match=message):
        Settings(arms=arms)


def test_settings_go_into_the_log_and_back():
    settings = Settings(features=3, arms=(("lser", 0.75), ("random", 0.25)), cold="none")
    assert Settings.from_json(settings.as_json()) == settings
    with pytest.raises(ValueError, match=r"does not know: \['colour'\]"):
        Settings.from_json({**settings.as_json(), "colour": "red"})


@pytest.mark.parametrize("name", FIXED)
def test_what_a_log_is_built_on_cannot_change(name):
    before = Settings()
    other = {int: 7, float: 0.5, str: "pepper", bool: True}
    kind = next(field.type for field in fields(Settings) if field.name == name)
    with pytest.raises(ValueError, match=f"{name} is .* in this log and cannot become"):
        before.changed({name: other[kind]})
    assert before.changed({"pace": 2.0}).pace == 2.0


def test_arms_of_the_command_line_share_what_is_left():
    assert parse_arms(["lser", "bandit=.1"]) == (("lser", 0.9), ("bandit", 0.1))
    assert parse_arms(["lser", "random"]) == (("lser", 0.5), ("random", 0.5))
    with pytest.raises(ValueError, match="leave nothing for the other arms"):
        parse_arms(["lser=1", "random"])
    with pytest.raises(ValueError, match="an arm is NAME or NAME=SHARE"):
        parse_arms(["lser=half"])

"""The names by which simulators are found."""

import pytest

from lser.catalogue import SIMULATORS as NAMES
from lser.simulators import SIMULATORS, simulator_type


def test_the_command_line_knows_the_same_simulators():
    assert {entry.name for entry in SIMULATORS.values()} == set(NAMES)
    for name, entry in NAMES.items():
        assert simulator_type(name).params_type is entry.params_type()


def test_an_unknown_name_is_an_error_that_says_what_is_known():
    with pytest.raises(ValueError, match=r"unknown simulator 'bazar'; known: .*bazaar"):
        simulator_type("bazar")

"""What constructors do with values of any kind: work, saving included, or name the argument."""

import dataclasses
import decimal
import fractions
import json

import numpy as np
import pytest

import lser
from lser.catalogue import AGENTS, MEMORIES, SIMULATORS
from lser.experiments.experiment import Experiment, from_json, to_json

ODD = (
    None, True, np.bool_(True), 0, -1, 2**63, 10**400, -(10**400), 1.5, -0.0, float("nan"),
    float("inf"), -float("inf"), 1e-320, 1e308, "x", "", b"1", np.int8(3), np.int64(3),
    np.uint64(2**63 + 5), np.float16(0.5), np.float32(0.5), np.float64("nan"), np.longdouble(0.5),
    np.complex128(1), 1j, [], [1], (1,), {}, np.array(1), np.array([1]), fractions.Fraction(1, 2),
    decimal.Decimal("nan"), object(), "\x1b[31m", "a\nb",
)  # fmt: skip
SIZES = {"capacity": 20, "observation_dim": 4, "action_dim": 2}


def _kinds():
    for catalogue in (MEMORIES, AGENTS, SIMULATORS):
        for name in catalogue.own:
            yield pytest.param(catalogue[name].params_type(), id=name)


def _made(name, make):
    """What is made of every odd value that is not refused, with its value; refusals name it."""
    for value in ODD:
        try:
            made = make(**{name: value})
        except ValueError as error:
            refusal = str(error)
        except MemoryError:
            refusal = name if name in SIZES else ""
        else:
            yield value, made
            continue
        assert name in refusal, value


@pytest.mark.parametrize("kind", [*_kinds()])
def test_a_setting_of_any_value_can_be_recorded_or_is_refused_by_name(kind):
    for field in dataclasses.fields(kind):
        for _, made in _made(field.name, kind):
            json.dumps(dataclasses.asdict(made))


@pytest.mark.parametrize("field", dataclasses.fields(Experiment)[3:], ids=lambda field: field.name)
def test_an_experiment_of_any_value_can_be_recorded_or_is_refused_by_name(field):
    for _, made in _made(field.name, Experiment):
        assert from_json(json.loads(json.dumps(to_json(made)))) == made


@pytest.mark.parametrize("name", ["uniform", "per", "der", "aer", "ser", "her", "lser"])
def test_a_memory_of_any_value_works_and_is_saved_or_is_refused_by_name(name, tmp_path):
    kind = MEMORIES[name].load()
    knobs = [field.name for field in dataclasses.fields(kind.Params)]
    for argument in (*SIZES, "seed", "storage", *knobs):
        for _, memory in _made(argument, lambda **given: kind(**{**SIZES, **given})):
            memory.save(tmp_path / "memory.lser")
            lser.load_replay(tmp_path / "memory.lser")


@pytest.mark.parametrize("name", ["observation_dim", "action_low", "action_high", "seed"])
def test_an_agent_is_not_made_of_anything(name):
    whole = {"observation_dim": 4, "action_low": [-1.0] * 2, "action_high": [1.0] * 2}
    for value, _ in _made(name, lambda **given: lser.DDPG(**{**whole, **given}, hidden=(4,))):
        assert isinstance(value, int | np.integer)


@pytest.mark.parametrize("agent", ["ddpg", "ridge"])
def test_an_agent_does_not_act_on_what_is_no_observation(agent):
    acting = AGENTS[agent].load()(4, [-1.0] * 2, [1.0] * 2)
    for wrong in (np.full((2, 4), np.nan), None, "x", np.zeros((2, 4), object), [[1, 2, 3]]):
        with pytest.raises(ValueError, match="observation"):
            acting.act(wrong)
    assert acting.act([[0.0, 1.0, 2.0, 3.0]]).shape == (1, 2)


@pytest.mark.parametrize(
    "encoder",
    [lser.SimHash(8), lser.SimHash(2), lser.SimHash(4000), lser.E2LSH(8), lser.SimHash, 3, "x"],
    ids=["wider", "narrower", "far wider", "cells", "the class", "a number", "a word"],
)
def test_an_encoder_of_other_observations_is_refused(encoder):
    with pytest.raises(ValueError, match="encoder"):
        lser.LocalityReplay(20, 4, 2, encoder=encoder)


def test_a_saved_memory_whose_encoder_reads_other_observations_is_refused(tmp_path):
    from lser import files

    path = tmp_path / "memory.lser"
    lser.LocalityReplay(20, 4, 2, bits=2).save(path)
    kind, state = files.load(path)
    other = lser.SimHash(8, bits=2).state()
    own = {**state.config["own"], "encoder": other.config}
    files.save(path, kind, files.State({**state.config, "own": own}, state.arrays | other.arrays))
    with pytest.raises(ValueError, match="observation_dim=8"):
        lser.load_replay(path)

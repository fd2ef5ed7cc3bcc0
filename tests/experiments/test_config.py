"""Experiments as data: JSON there and back, names, and defaults that are written once."""

import inspect
from dataclasses import fields, replace

import pytest

from lser.agents import DDPG, SAC, TD3
from lser.experiments import config
from lser.experiments.catalogue import AGENTS, MEMORIES, SIMULATORS, from_json, memory_name, to_json
from lser.experiments.presets import SCALES, preset
from lser.experiments.studies import STUDIES, TUNING_SEEDS, plan
from lser.replay import (
    AttentiveReplay,
    DynamicReplay,
    HindsightReplay,
    LocalityReplay,
    PrioritizedReplay,
    SelectiveReplay,
)

BUILDS = [
    (config.Lser, LocalityReplay),
    (config.Per, PrioritizedReplay),
    (config.Der, DynamicReplay),
    (config.Aer, AttentiveReplay),
    (config.Ser, SelectiveReplay),
    (config.Her, HindsightReplay),
    (config.Ddpg, DDPG),
    (config.Td3, TD3),
    (config.Sac, SAC),
]


@pytest.mark.parametrize(("kind", "built"), BUILDS, ids=lambda k: k.__name__)
def test_a_config_s_defaults_are_its_constructor_s(kind, built):
    parameters = inspect.signature(built).parameters
    for field in fields(kind):
        if field.name == "codes":  # chooses the encoder
            continue
        assert parameters[field.name].default == field.default, field.name


@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("memory", MEMORIES)
def test_an_experiment_goes_to_json_and_back(simulator, memory):
    experiment = preset(simulator, memory, scale="quick")
    plain = to_json(experiment)
    assert plain["memory"]["name"] == memory
    assert from_json(plain) == experiment


@pytest.mark.parametrize("agent", AGENTS)
def test_agents_have_names(agent):
    experiment = preset(agent=agent)
    assert from_json(to_json(experiment)) == experiment


def test_a_variant_keeps_its_name_when_a_knob_is_turned():
    assert memory_name(replace(MEMORIES["lser-p"], bits=4)) == "lser-p"
    assert memory_name(replace(MEMORIES["lser"], greedy=0.5)) == "lser"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("bazzar",), "unknown simulator 'bazzar'; did you mean bazaar"),
        (("bazaar", "lsr"), "unknown memory 'lsr'; did you mean lser"),
        (("bazaar", "lser", "dpg"), "unknown agent 'dpg'; did you mean ddpg"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(names, message):
    with pytest.raises(ValueError, match=message):
        preset(*names)


def test_an_unknown_field_in_a_record_is_named():
    plain = to_json(preset())
    plain["memory"]["bitz"] = 3
    with pytest.raises(ValueError, match="'bitz'; did you mean bits"):
        from_json(plain)


def test_the_paper_s_settings_are_the_presets():
    taobao = preset("virtual-taobao", "lser")
    assert (taobao.capacity, taobao.sessions) == (1_000_000, 90_000)
    assert (taobao.agent.hidden, taobao.agent.tau, taobao.agent.discount) == (
        (128, 128),
        0.001,
        0.99,
    )
    for name in ("interest-evolution", "long-term-satisfaction", "recogym"):
        small = preset(name)
        assert (small.capacity, small.sessions) == (10_000, 1_000)


@pytest.mark.parametrize("scale", SCALES)
def test_a_study_repeats_every_cell_for_every_seed(scale):
    for name in STUDIES:
        runs = plan(name, scale, seeds=2)
        cells = {(r.study, r.label, to_json(r)["simulator"]["name"]) for r in runs}
        assert len(runs) == 2 * len(cells)
        start = TUNING_SEEDS if name == "tuning" else 0
        assert {r.seed for r in runs} == {start, start + 1}


def test_paired_cells_differ_in_the_memory_alone():
    runs = [r for r in plan("comparison", "quick", 1) if type(r.simulator) is config.VirtualTaobao]
    assert len({replace(r, memory=config.Uniform(), label="") for r in runs}) == 1


@pytest.mark.parametrize(("name", "value"), [("sessions", 0), ("users", -1), ("capacity", 0)])
def test_a_size_below_one_is_named(name, value):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got {value}"):
        config.Experiment(**{name: value})

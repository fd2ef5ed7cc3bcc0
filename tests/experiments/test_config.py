"""Experiments as data: JSON there and back, names, and defaults that are written once."""

import json
from dataclasses import fields, replace

import pytest

from lser.catalogue import AGENTS, MEMORIES, SIMULATORS
from lser.experiments.build import build
from lser.experiments.experiment import Experiment, from_json, settings_of, to_json
from lser.experiments.presets import SCALES, preset
from lser.experiments.studies import GROUPS, STUDIES, TUNING_SEEDS, plan


@pytest.mark.parametrize("catalogue", [MEMORIES, AGENTS], ids=["memories", "agents"])
def test_a_constructor_s_keywords_are_the_fields_of_its_params(catalogue):
    for entry in catalogue.own.values():
        kind = entry.load()
        assert kind.Params is entry.params_type()
        with pytest.raises(ValueError, match="unknown parameter 'nonsense'"):
            kind(8, 4, 2, nonsense=1) if catalogue is MEMORIES else kind(4, [-1], [1], nonsense=1)


def test_settings_at_their_defaults_stay_out_of_the_hash():
    experiment = Experiment()
    assert settings_of(experiment) == {
        "simulator": {"name": "bazaar"},
        "memory": {"name": "lser"},
        "agent": {"name": "ddpg"},
        "seed": 0,
    }
    changed = replace(experiment, memory=MEMORIES["lser"].params(bits=4), sessions=7)
    assert settings_of(changed)["memory"] == {"name": "lser", "bits": 4}
    assert settings_of(changed)["sessions"] == 7


def test_a_record_of_before_a_setting_existed_is_read_with_its_default():
    plain = to_json(preset("bazaar", "per", "ddpg"))
    del plain["memory"]["offset"]
    del plain["agent"]["value_bound"]
    assert from_json(plain) == preset("bazaar", "per", "ddpg")


@pytest.mark.parametrize("entry", MEMORIES.own.values(), ids=lambda entry: entry.name)
def test_every_field_of_a_memory_has_a_default(entry):
    assert all(field.name in vars(entry.params()) for field in fields(entry.params_type()))


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
    assert MEMORIES.name_of(MEMORIES["lser-p"].params(bits=4)) == "lser-p"
    assert MEMORIES.name_of(MEMORIES["lser"].params(greedy=0.5)) == "lser"


@pytest.mark.parametrize("knobs", [{"ridge": 3.0}, {"noise": 0.0, "thompson": 1.0}, {"noise": 2.0}])
def test_a_bandit_on_pages_is_one_however_it_is_tuned(knobs):
    assert AGENTS.name_of(AGENTS["ridge-pages"].params(**knobs)) == "ridge-pages"
    run = preset("bazaar", "uniform", "ridge-pages", scale="quick")
    made = build(replace(run, agent=replace(run.agent, **knobs)))
    assert made.agent.items is not None  # it is told of the catalogue


@pytest.mark.parametrize("name", AGENTS.own)
def test_every_agent_s_settings_have_its_name(name):
    assert AGENTS.name_of(AGENTS[name].params()) == name


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
        if STUDIES[name].worlds > 1:  # the world comes with the seed
            assert {r.simulator.world_seed for r in runs} == {100 % 3, 101 % 3}
            runs = [replace(r, simulator=replace(r.simulator, world_seed=0)) for r in runs]
        cells = {json.dumps(to_json(replace(r, seed=0))) for r in runs}
        assert len(runs) == 2 * len(cells)
        planned = {"length": 120, "parts": 180, "plateaus": 220}.get(name, 100)
        start = TUNING_SEEDS if name == "tuning" else planned if name in GROUPS["plan"] else 0
        assert {r.seed for r in runs} == {start, start + 1}


def test_paired_cells_differ_in_the_memory_alone():
    runs = [r for r in plan("comparison", "quick", 1) if r.names[0] == "virtual-taobao"]
    assert len({replace(r, memory=MEMORIES["uniform"].params(), label="") for r in runs}) == 1


@pytest.mark.parametrize(("name", "value"), [("sessions", 0), ("users", -1), ("capacity", 0)])
def test_a_size_below_one_is_named(name, value):
    with pytest.raises(ValueError, match=f"{name} must be >= 1, got {value}"):
        Experiment(**{name: value})


@pytest.mark.parametrize("name", ["updates_per_step", "session_length"])
@pytest.mark.parametrize("value", [float("inf"), float("nan"), 0.0, -1.0, "x"])
def test_rates_that_are_no_numbers_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"{name} must be .*{value}"):
        replace(preset("bazaar", "lser", scale="quick"), **{name: value})

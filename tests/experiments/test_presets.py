"""Presets: the cure for every memory, the release's regime, settings under which agents learn."""

import logging
from dataclasses import replace

import numpy as np
import pytest

from lser.agents.protocol import Values
from lser.catalogue import AGENTS, MEMORIES, SIMULATORS
from lser.experiments import records
from lser.experiments.build import build
from lser.experiments.experiment import Experiment, from_json, to_json
from lser.experiments.presets import (
    LEARNABLE,
    lasting,
    learnable,
    preset,
    released,
    steady,
)
from lser.experiments.run import Run, run
from lser.experiments.signals import Signals
from lser.simulators.base import Metric
from lser.training import Progress, train

SHORT = {
    "sessions": 6, "evaluate_every": 3, "evaluate_sessions": 3, "final_sessions": 3, "users": 2,
    "batch_size": 8, "learning_starts": 8, "capacity": 500,
}  # fmt: skip


def test_lser_steady_is_lser_with_contrast_the_newest_and_bounded_values():
    experiment = preset("virtual-taobao", "lser-steady")
    memory = experiment.memory
    assert experiment.names[1] == "lser-steady"
    assert (memory.greedy_per, memory.random_from, memory.newest) == ("item", "memory", 8)
    assert experiment.agent.value_bound == "auto"
    assert preset("virtual-taobao", "lser").agent.value_bound is None  # as printed


def test_what_is_not_named_is_what_works():
    assert preset().names == ("bazaar", "lser-steady", "click-model")
    assert preset("virtual-taobao").names == ("virtual-taobao", "lser-steady", "ddpg")
    assert preset("bazaar", "uniform").names == ("bazaar", "uniform", "click-model")
    assert preset("bazaar", "lser", cure=True) == preset("bazaar", "lser-steady")


def test_a_steady_memory_that_will_be_full_forgets_by_age():
    full = preset("interest-evolution", "lser-steady")  # 60,000 pages into 10,000 places
    assert (full.names[1], full.memory.store) == ("lser-steady", "fifo")
    assert preset("interest-evolution", "lser").memory.store == "reward"  # as printed
    roomy = preset("bazaar", "lser-steady")
    assert roomy.memory.store == "reward"
    assert lasting(roomy, 1_000_000).memory.store == "fifo"
    assert lasting(preset("bazaar", "lser"), 1_000_000).memory.store == "reward"


def test_what_is_built_trains_and_is_scored_at_its_settings():
    made = build(replace(preset("bazaar", scale="quick"), **SHORT))
    drawn, sample = [], made.replay.sample
    made.replay.sample = lambda size, query=None: drawn.append(size) or sample(size, query)
    step = next(step for step in made.train() if step.updates)
    assert step.steps < 16  # learning starts at 8 transitions of 2 users, not at 128
    assert drawn == [SHORT["batch_size"]] * step.updates
    again = build(made.experiment)
    assert again.evaluate(4) == again.evaluate(4)
    assert again.evaluate().sessions == SHORT["final_sessions"]


@pytest.mark.parametrize("name", MEMORIES)
def test_every_memory_can_have_the_cure(name):
    cured = steady(preset("virtual-taobao", name))
    assert cured.memory.newest == 8
    assert cured.agent.value_bound == "auto"
    assert from_json(to_json(cured)) == cured
    if hasattr(cured.memory, "greedy_per"):
        assert (cured.memory.greedy_per, cured.memory.random_from) == ("item", "memory")


def test_the_release_s_regime():
    experiment = preset("virtual-taobao", "lser", "ddpg-release")
    agent = experiment.agent
    assert experiment.names[2] == "ddpg-release"
    assert (experiment.updates_per_step, experiment.users, experiment.horizon) == (5, 1, "session")
    assert (agent.critic, agent.norm_gain, agent.noise_reset) == ("late-action", "uniform", False)
    assert (agent.hidden, agent.actor_lr, agent.critic_lr) == ((128, 128), 1e-4, 1e-3)
    assert (agent.noise_theta, agent.noise_sigma, agent.noise_scale) == (0.15, 0.2, 0.1)
    assert released(preset("virtual-taobao", "lser")) == experiment


@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_of_the_catalogue_runs_and_is_recorded(agent, tmp_path):
    experiment = replace(preset("bazaar", "lser-steady", agent, scale="quick"), **SHORT)
    run(experiment, tmp_path)
    record = records.load(tmp_path)
    assert record.agent == agent
    line = record.curve[-1]
    assert {"learning_metric", "learning_reward", "reward_per_step", "regret"} <= line.keys()
    assert line["regret"] >= 0
    assert from_json(record.experiment) == experiment


def test_an_agent_that_needs_the_catalogue_is_told_of_it():
    items = build(preset("bazaar", "uniform", "click-model", scale="quick")).agent.items
    assert items.vectors.shape == (1000, 8)
    assert items.profile == (20, 27, 0.3)
    knobs = {"simulator": SIMULATORS["virtual-taobao"].params(generated=True)}
    other = replace(preset("virtual-taobao", "uniform", "click-model", scale="quick"), **knobs)
    assert build(other).agent.items is None


@pytest.mark.parametrize(
    ("simulator", "objective"),
    [
        ("interest-evolution", ""),
        ("interest-evolution", "watch time"),
        ("long-term-satisfaction", ""),
        ("recogym", ""),
        ("recogym", "click"),
    ],
)
@pytest.mark.parametrize("memory", ["lser", "uniform"])
def test_settings_under_which_agents_learn_run(simulator, objective, memory, tmp_path):
    experiment = learnable(simulator, memory, objective=objective)
    assert getattr(experiment.memory, "store", "fifo") == "fifo"
    run(replace(experiment, **SHORT | {"sessions": 2, "evaluate_every": 2}), tmp_path)
    assert records.load(tmp_path).status == "done"


@pytest.mark.parametrize("simulator", LEARNABLE)
@pytest.mark.parametrize("agent", ["ridge", "td3", "click-model"])
def test_other_agents_get_what_they_share(simulator, agent):
    ddpg = learnable(simulator, "lser-steady")
    other = learnable(simulator, "lser", agent, cure=True)
    assert ddpg.simulator == other.simulator
    plain = vars(preset(simulator, "lser-steady", "ddpg", scale="medium").agent)
    changed = {name: value for name, value in vars(ddpg.agent).items() if value != plain[name]}
    assert changed
    shared = changed.keys() & vars(other.agent).keys()
    assert {name: vars(other.agent)[name] for name in shared} == {k: changed[k] for k in shared}
    assert getattr(other.memory, "store", "fifo") == "fifo"
    assert other.memory.newest == 8


def test_an_unknown_platform_is_refused():
    with pytest.raises(ValueError, match="simulator must be .* got 'bazaar'"):
        learnable("bazaar")


def test_quality_and_expected_clicks_can_be_what_is_rewarded():
    env = SIMULATORS["interest-evolution"].load()(50, reward="quality")
    env.reset(seed=0)
    _, reward, _, _, info = env.step(np.zeros(env.action_space.shape, np.float32))
    assert np.allclose(reward, np.where(info["clicks"] > 0, info["quality"], 0.0))
    assert (reward < 0).any()
    env = SIMULATORS["recogym"].load()(50, reward="expected click", reward_scale=50.0)
    env.reset(seed=0)
    _, reward, _, _, info = env.step(np.zeros(env.action_space.shape, np.float32))
    assert np.allclose(reward, 50 * info["click_prob"])
    for name, knobs in (("recogym", {"reward": "x"}), ("recogym", {"reward_scale": 0.0})):
        with pytest.raises(ValueError, match="reward"):
            SIMULATORS[name].load()(1, **knobs)
    with pytest.raises(ValueError, match="reward must be"):
        SIMULATORS["interest-evolution"].load()(1, reward="x")


@pytest.mark.parametrize(
    ("stops", "greedy", "learns"),
    [("noise", 0.9, True), ("noise and greedy", 1.0, True), ("learning", 0.9, False)],
)
def test_the_intervention_in_its_three_readings(stops, greedy, learns, tmp_path):
    base = replace(preset("bazaar", "lser", "ddpg", scale="quick"), **SHORT)
    experiment = replace(base, sessions=12, intervention=-1.0, intervention_stops=stops)
    run(experiment, tmp_path)
    record = records.load(tmp_path)
    assert record.final["memory"]["greedy"] == greedy
    assert (record.final["updates"] > 0) == learns


def test_an_unknown_reading_of_the_intervention_is_named():
    with pytest.raises(ValueError, match="intervention_stops must be .* got 'all'"):
        Experiment(intervention_stops="all")


def signals(**knobs):
    experiment = Experiment(agent=AGENTS["ddpg"].params(**knobs))
    return Signals(experiment, Metric("ctr", "clicks", "shown"), "a run")


def test_values_that_leave_the_bound_are_said_once_while_it_happens(caplog):
    watched, progress = signals(), Progress(updates=400)
    with caplog.at_level(logging.WARNING, "lser"):
        progress.values = list(Values(900, 1000, 950, 1010, 3, 0.1, 0, 1000))
        watched.warn(progress)
        assert caplog.text == ""
        progress.values = list(Values(900, 1500, 950, 1010, 3, 0.1, 0, 1000))
        watched.warn(progress)
        watched.warn(progress)
    assert caplog.text.count("have left what rewards allow") == 1
    assert "1500" in caplog.text


@pytest.mark.parametrize(
    ("bound", "advice"),
    [(None, "value_bound='auto' bounds its targets"), ("auto", "what the fit overshoots")],
)
def test_the_warning_does_not_advise_what_is_done_already(bound, advice, caplog):
    progress = Progress(updates=400, values=list(Values(900, 1500, 950, 1010, 3, 0.1, 0, 1000)))
    with caplog.at_level(logging.WARNING, "lser"):
        signals(value_bound=bound).warn(progress)
    assert advice in caplog.text


def test_before_any_reward_there_is_nothing_to_leave(caplog):
    watched, progress = signals(), Progress(updates=400)
    with caplog.at_level(logging.WARNING, "lser"):
        progress.values = list(Values(0.1, 0.2, 0.1, 0.2, 0.1, 0, 0, 0))
        watched.warn(progress)
        assert caplog.text == ""
        progress.values = list(Values(0.1, 900, 0.1, 0.2, 0.1, 0, 0, 100))
        watched.warn(progress)  # and it is not forgotten
    assert "have left what rewards allow" in caplog.text


def test_a_curve_tells_of_the_critic_and_of_batches_with_one_reward(tmp_path):
    experiment = replace(preset("bazaar", "reward-top", "ddpg", scale="quick"), **SHORT)
    experiment = replace(experiment, agent=replace(experiment.agent, diagnose_every=4))
    run(experiment, tmp_path)
    line = records.load(tmp_path).curve[-1]
    names = ("value_replayed_mean", "value_own_largest", "value_spread", "saturated")
    assert set(names) <= line.keys()
    assert line["value_bound_high"] > 0
    assert 0 <= line["one_reward"] <= 1


def test_a_share_of_one_reward_is_of_the_batches_since_the_last_line():
    watched, progress = signals(), Progress(batches=4, one_reward=3)
    assert watched.line(progress)["one_reward"] == 0.75
    assert "one_reward" not in watched.line(progress)


def test_a_resumed_run_writes_the_same_lines(tmp_path):
    experiment = replace(preset("bazaar", "lser-steady", "click-model", scale="quick"), **SHORT)
    run(experiment, tmp_path / "whole")
    first = Run(experiment, tmp_path / "parts")
    first.begin()
    steps = train(
        first.traffic, first.built.agent, first.replay, batch_size=8, learning_starts=8,
        seed=first.built.seeds.users, progress=first.progress,
    )  # fmt: skip
    first.evaluate_if_due()
    for _ in range(12):
        first.after(next(steps), None)
    first.checkpoint()
    first.owner.release()
    Run(experiment, tmp_path / "parts").go()
    for name in ("curve.jsonl", "final.json"):
        whole, parts = ((tmp_path / p / name).read_text() for p in ("whole", "parts"))
        assert whole == parts


def test_the_release_s_regime_runs_with_one_user_and_five_updates_a_step(tmp_path):
    world = SIMULATORS["virtual-taobao"].params(generated=True)
    base = preset("virtual-taobao", "lser", "ddpg-release")
    run(replace(base, simulator=world, **SHORT | {"users": 1, "batch_size": 16}), tmp_path)
    final = records.load(tmp_path).final
    assert final["updates"] == 5 * (final["steps"] - 9)  # more than 8 are stored before it learns

"""Stacked learners do what each would do alone."""

import numpy as np
import pytest
import torch

from lser.agents import DDPG, TD3
from lser.fleet.learner import StackedDDPG
from lser.types import Batch

ROWS, SEEN, ACTED = 24, 7, 3


def agents(count=3, **changes):
    low, high = -np.ones(ACTED, np.float32), np.array([1, 2, 3], np.float32)
    settings = {"hidden": (16, 12), "critic_lr": 1e-2, "actor_lr": 1e-2, "tau": 0.05, **changes}
    return [DDPG(SEEN, low, high, seed=seed, **settings) for seed in range(count)]


def twins(others):
    made = agents(len(others))
    for mine, its in zip(made, others, strict=True):
        mine.load_state_dict(its.state_dict())
    return made


def batch(rng):
    draw = lambda *shape: rng.standard_normal(shape, np.float32)  # noqa: E731
    return Batch(
        draw(ROWS, SEEN),
        draw(ROWS, ACTED),
        draw(ROWS),
        draw(ROWS, SEEN),
        rng.random(ROWS) < 0.3,
        rng.random(ROWS) < 0.3,
        np.arange(ROWS),
        rng.random(ROWS, np.float32),
    )


def assert_equal_states(one, other, tolerance=1e-5):
    for name in ("parameters", "targets"):
        torch.testing.assert_close(one[name], other[name], rtol=0, atol=tolerance)
    for name in ("actor_adam", "critic_adam"):
        assert one[name]["steps"] == other[name]["steps"]
        for moment in ("mean", "square"):
            mine, its = one[name][moment], other[name][moment]
            torch.testing.assert_close(mine, its, rtol=0, atol=tolerance)


def test_stacked_updates_equal_those_of_each_agent_alone():
    alone, rng = agents(), np.random.default_rng(0)
    alone[1].learn(batch(rng))  # agents need not stand at the same number of steps
    stacked = StackedDDPG(twins(alone), ROWS, "cpu")
    for _ in range(20):
        batches = [batch(rng) for _ in alone]
        expected = [agent.learn(b).td_errors for agent, b in zip(alone, batches, strict=True)]
        assert np.abs(stacked.learn(batches) - expected).max() < 1e-4
    stacked.download()
    for mine, its in zip(alone, stacked.agents, strict=True):
        assert_equal_states(mine.state_dict(), its.state_dict())
    assert [a.state_dict()["actor_adam"]["steps"] for a in stacked.agents] == [20, 21, 20]


def test_each_agent_keeps_its_own_discount():
    discounts, rng = (0.0, 0.5, 0.99), np.random.default_rng(5)
    alone, stacked = ([agents(discount=d)[0] for d in discounts] for _ in range(2))
    batches = [batch(rng) for _ in discounts]
    expected = [agent.learn(b).td_errors for agent, b in zip(alone, batches, strict=True)]
    assert np.abs(StackedDDPG(stacked, ROWS, "cpu").learn(batches) - expected).max() < 1e-5


def test_uploading_and_downloading_changes_nothing():
    alone, rng = agents(), np.random.default_rng(0)
    for agent in alone:
        agent.learn(batch(rng))
    before = [agent.state_dict() for agent in alone]
    StackedDDPG(alone, ROWS, "cpu").download()
    for agent, state in zip(alone, before, strict=True):
        assert_equal_states(agent.state_dict(), state, tolerance=0)


def test_agents_that_are_not_active_stay_as_they_are():
    mine = agents()
    before = [agent.state_dict() for agent in mine]
    stacked = StackedDDPG(mine, ROWS, "cpu")
    for slot in range(3):
        stacked.stage(slot, batch(np.random.default_rng(slot)))
    stacked.launch(np.array([True, False, True]))
    stacked.download()
    assert_equal_states(mine[1].state_dict(), before[1], tolerance=0)
    assert mine[2].state_dict()["critic_adam"]["steps"] == 1


def test_downloaded_actors_act_like_agents_that_learned_themselves():
    alone, rng = agents(), np.random.default_rng(3)
    stacked = StackedDDPG(twins(alone), ROWS, "cpu")
    batches = [batch(rng) for _ in alone]
    stacked.learn(batches)
    stacked.download_actors()
    seen = rng.standard_normal((5, SEEN), np.float32)
    for agent, its, b in zip(alone, stacked.agents, batches, strict=True):
        before = agent.act(seen)
        agent.learn(b)
        assert np.abs(agent.act(seen) - its.act(seen)).max() < 1e-5
        assert np.abs(before - its.act(seen)).max() > 1e-4


@pytest.mark.parametrize(
    ("others", "message"),
    [
        (lambda: agents(tau=0.1), "equal sizes and settings"),
        (lambda: agents(hidden=(16,)), "equal sizes and settings"),
        (lambda: agents(normalise=True), "normalise=True"),
        (lambda: [TD3(SEEN, -np.ones(ACTED), np.ones(ACTED))], "only DDPG.*TD3"),
    ],
)
def test_agents_that_cannot_be_stacked_are_refused(others, message):
    with pytest.raises(ValueError, match=message):
        StackedDDPG([*agents(), *others()], ROWS, "cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_an_update_that_cannot_be_captured_runs_eagerly_with_a_warning(caplog):
    assert StackedDDPG(agents(), ROWS, "cpu")._capture() is None
    assert "runs eagerly" in caplog.text


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("graph", [True, False])
def test_updates_on_the_accelerator_equal_those_on_the_cpu(graph):
    alone, rng = agents(), np.random.default_rng(0)
    stacked = StackedDDPG(twins(alone), ROWS, "cuda", graph=graph)
    assert (stacked._graph is not None) == graph
    for _ in range(20):
        batches = [batch(rng) for _ in alone]
        expected = [agent.learn(b).td_errors for agent, b in zip(alone, batches, strict=True)]
        assert np.abs(stacked.learn(batches) - expected).max() < 1e-3
    stacked.download()
    for mine, its in zip(alone, stacked.agents, strict=True):
        assert_equal_states(mine.state_dict(), its.state_dict(), tolerance=1e-4)

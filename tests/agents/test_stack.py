"""Stacked learners do what each would do alone."""

from typing import Any

import numpy as np
import pytest
import torch
from agent_references import random_batch

from lser.agents import DDPG, SAC, TD3
from lser.agents.device_stack import DeviceStack
from lser.agents.stack import make_stack
from lser.agents.team import Team
from lser.agents.turns import Turns

ROWS, SEEN, ACTED = 24, 7, 3
CPU = torch.device("cpu")
every_agent = pytest.mark.parametrize("make", [DDPG, TD3, SAC])
Agents = list[Any]


def agents(make: Any = DDPG, count: int = 3, **changes: Any) -> Agents:
    low, high = -np.ones(ACTED, np.float32), np.array([1, 2, 3], np.float32)
    settings = {"hidden": (16, 12), "critic_lr": 1e-2, "actor_lr": 1e-2, "tau": 0.05, **changes}
    return [make(SEEN, low, high, seed=seed, **settings) for seed in range(count)]


def batches(count: int, seed: int = 0) -> list[Any]:
    return [random_batch(ROWS, SEEN, ACTED, seed=100 * seed + slot) for slot in range(count)]


def stack(of: Agents, device: str = "cpu", *, turns: int = 1, **options: Any) -> DeviceStack:
    team = Team.of(of)
    shape = team.batch_shape(ROWS, packed=True)
    buffers = [torch.zeros(shape.floats) for _ in range(2 * turns)]
    made = DeviceStack(team, shape, buffers, torch.device(device), **options)
    load(made, of)
    return made


def load(made: DeviceStack | Turns, of: Agents) -> None:
    for slot, agent in enumerate(of):
        made.load(slot, agent.learner.state_dict())


def learn(made: Any, of: Agents, given: list[Any], buffer: int = 0, active: Any = None) -> Any:
    for slot, (agent, batch) in enumerate(zip(of, given, strict=True)):
        agent.stage(batch, made.batches[buffer], slot)
    made.launch([np.ones(len(of), np.bool_) if active is None else active], buffer)
    return made.found()


def assert_equal_states(one: Any, other: Any, tolerance: float = 1e-5) -> None:
    assert one.keys() == other.keys()
    for name, mine in one.items():
        if isinstance(mine, dict):
            assert_equal_states(mine, other[name], tolerance)
        else:
            mine, its = (torch.as_tensor(x).double() for x in (mine, other[name]))
            torch.testing.assert_close(mine, its, rtol=tolerance, atol=tolerance)


@every_agent
@pytest.mark.parametrize("critic", ["joint", "late-action", "product"])
def test_stacked_updates_equal_those_of_each_agent_alone(make: Any, critic: str) -> None:
    alone, twins = (agents(make, critic=critic, value_bound="auto") for _ in range(2))
    for set_of in (alone, twins):  # agents need not stand at the same number of steps
        set_of[1].learn(random_batch(ROWS, SEEN, ACTED, seed=9))
    made = stack(twins)
    for step in range(20):
        given = batches(3, step)
        expected = [agent.learn(b).td_errors for agent, b in zip(alone, given, strict=True)]
        found = learn(made, twins, given, step % 2)
        np.testing.assert_allclose(found.errors, expected, rtol=1e-3, atol=2e-4)
    for slot, agent in enumerate(alone):
        assert_equal_states(agent.learner.state_dict(), made.state(slot), 3e-4)
    assert [made.state(slot)["updates"] for slot in range(3)] == [20, 21, 20]


@every_agent
def test_learners_that_take_turns_are_those_of_the_agents_bit_for_bit(make: Any) -> None:
    alone, twins = agents(make), agents(make)
    made = make_stack(Team.of(twins), ROWS, "cpu")
    assert isinstance(made, Turns)
    load(made, twins)
    for step in range(10):
        given = batches(3, step)
        expected = [agent.learn(b).td_errors for agent, b in zip(alone, given, strict=True)]
        assert (learn(made, twins, given, step % 2).errors == np.stack(expected)).all()
    for slot, agent in enumerate(alone):
        assert_equal_states(agent.learner.state_dict(), made.state(slot), 0.0)


def test_agents_of_a_stack_may_differ_in_rates_discount_and_bounds() -> None:
    def mixed() -> Agents:
        knobs = [{"discount": 0.0}, {"discount": 0.5, "tau": 0.5, "actor_lr": 1e-3}]
        knobs += [{"critic_lr": 1e-4, "value_bound": (-0.1, 0.1)}]
        return [agents(count=1, **changed)[0] for changed in knobs]

    alone, twins = mixed(), mixed()
    made = stack(twins)
    for step in range(5):
        given = batches(3, step)
        expected = [agent.learn(b).td_errors for agent, b in zip(alone, given, strict=True)]
        np.testing.assert_allclose(learn(made, twins, given).errors, expected, atol=1e-5)
    for slot, agent in enumerate(alone):
        assert_equal_states(agent.learner.state_dict(), made.state(slot))


@every_agent
@pytest.mark.parametrize("kind", [stack, "turns"])
def test_agents_that_are_not_active_stay_as_they_are(make: Any, kind: Any) -> None:
    mine = agents(make)
    if kind == "turns":
        made: Any = make_stack(Team.of(mine), ROWS, "cpu")
        load(made, mine)
    else:
        made = kind(mine)
    learn(made, mine, batches(3), active=np.array([True, False, True]))
    assert_equal_states(mine[1].learner.state_dict(), made.state(1), tolerance=0)
    assert made.state(2)["critic_adam"]["steps"] == 1


@every_agent
def test_a_stack_chooses_what_its_agents_would(make: Any) -> None:
    mine = agents(make)
    made = stack(mine)
    seen = np.random.default_rng(0).standard_normal((3, 5, SEEN)).astype(np.float32)
    expected = np.stack([agent.act(rows) for agent, rows in zip(mine, seen, strict=True)])
    np.testing.assert_allclose(made.ask(seen).take(), expected, atol=1e-5)
    turns = make_stack(Team.of(mine), ROWS, "cpu")
    for slot, agent in enumerate(mine):
        turns.load(slot, agent.learner.state_dict())
    assert (turns.ask(seen).take() == expected).all()
    assert (turns.actor(1) == mine[1].learner.actor.vector.numpy()).all()
    assert (made.actor(1) == mine[1].learner.actor.vector.numpy()).all()


def test_stochastic_policies_choose_by_the_draws_they_are_given() -> None:
    mine, twins = agents(SAC), agents(SAC)
    seen = np.random.default_rng(0).standard_normal((3, 5, SEEN)).astype(np.float32)
    expected = np.stack([a.act(rows, explore=True) for a, rows in zip(mine, seen, strict=True)])
    normals = np.stack([agent.draw_to_act(5).t().numpy() for agent in twins])
    np.testing.assert_allclose(stack(twins).ask(seen, normals).take(), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("others", "message"),
    [
        (lambda: agents(hidden=(16,)), "equal architectures"),
        (lambda: agents(critic="product"), "equal architectures"),
        (lambda: agents(TD3), "equal architectures"),
        (lambda: [object()], "only DDPG, TD3 and SAC can be stacked, got object"),
    ],
)
def test_agents_that_cannot_be_stacked_are_refused(others: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Team.of([*agents(), *others()])


@every_agent
@pytest.mark.parametrize("turns", [False, True])
def test_a_stack_looks_at_values_when_it_is_time(make: Any, turns: bool) -> None:
    alone, twins = (agents(make, diagnose_every=2) for _ in range(2))
    made: Any = make_stack(Team.of(twins), ROWS, "cpu") if turns else stack(twins)
    load(made, twins)
    for step in range(4):
        given = batches(3, step)
        expected = [agent.learn(b).values for agent, b in zip(alone, given, strict=True)]
        learn(made, twins, given)
        values = made.take_values()
        assert np.isnan(values).all() == (step % 2 == 0)
        if step % 2:
            np.testing.assert_allclose(values, np.array(expected), rtol=1e-3, atol=1e-4)


def test_what_was_looked_at_in_one_update_stays_through_the_next() -> None:
    alone, twins = (
        [*agents(count=1, diagnose_every=2), *agents(count=1, diagnose_every=3)] for _ in range(2)
    )
    made, expected = stack(twins, turns=3), [np.empty(0)] * 2
    for turn in range(3):
        for slot, (agent, batch) in enumerate(zip(twins, batches(2, turn), strict=True)):
            agent.stage(batch, made.batches[turn], slot)
        for slot, (agent, batch) in enumerate(zip(alone, batches(2, turn), strict=True)):
            values = agent.learn(batch).values
            expected[slot] = expected[slot] if values is None else np.array(values)
    made.launch([np.ones(2, np.bool_)] * 3, 0)
    made.found()
    np.testing.assert_allclose(made.take_values(), expected, rtol=1e-3, atol=1e-4)


needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")


@every_agent
@pytest.mark.parametrize("critic", ["joint", "late-action"])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_cuda)])
def test_updates_launched_at_once_are_those_launched_one_by_one(
    make: Any, critic: str, device: str
) -> None:
    alone, twins = (agents(make, critic=critic, diagnose_every=7) for _ in range(2))
    one_by_one, at_once = (stack(of, device, turns=3) for of in (alone, twins))
    seen = np.random.default_rng(0).standard_normal((3, 5, SEEN)).astype(np.float32)
    for step in range(6):
        active = [np.array([True, (step + turn) % 4 > 0, turn < 2]) for turn in range(3)]
        first = step % 2 * 3
        for turn, who in enumerate(active):
            given = batches(3, 3 * step + turn)
            learn(one_by_one, alone, given, first + turn, who)
            for slot, (agent, batch) in enumerate(zip(twins, given, strict=True)):
                agent.stage(batch, at_once.batches[first + turn], slot)
        before = one_by_one.ask(seen).take().copy()
        at_once.launch(active, first)
        np.testing.assert_allclose(at_once.ask(seen).take(), before, atol=1e-5)
        np.testing.assert_allclose(at_once.found().errors, one_by_one.found().errors, atol=1e-5)
        assert at_once.looked == one_by_one.looked
        values = at_once.take_values(), one_by_one.take_values()
        np.testing.assert_allclose(*values, rtol=1e-4, atol=1e-4)
    for slot in range(3):
        assert_equal_states(one_by_one.state(slot), at_once.state(slot), 1e-5)


@needs_cuda
@every_agent
@pytest.mark.parametrize(("capture", "compiled"), [(True, True), (True, False), (False, False)])
def test_updates_on_the_accelerator_equal_those_on_the_cpu(
    make: Any, capture: bool, compiled: bool
) -> None:
    alone, twins = (agents(make, diagnose_every=7) for _ in range(2))
    made = stack(twins, "cuda", capture=capture, compiled=compiled)
    for step in range(20):
        given = batches(3, step)
        expected = [agent.learn(b).td_errors for agent, b in zip(alone, given, strict=True)]
        found = learn(made, twins, given, step % 2)
        assert np.abs(found.errors - expected).max() < 5e-3
    assert bool(made._graphs) == capture
    for slot, agent in enumerate(alone):
        assert_equal_states(agent.learner.state_dict(), made.state(slot), 2e-3)

"""The contract of every agent: bounds, streams, exact resumption, learning a toy task, errors."""

import copy
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from agent_references import random_batch
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from lser.agents import DDPG, SAC, TD3, load_agent
from lser.agents.actor_critic import ActorCritic
from lser.agents.learner import Learner
from lser.replay import UniformReplay
from lser.types import Batch, Float32

LOW, HIGH = np.array([-1.0, 0.0, -3.0]), np.array([1.0, 2.0, -1.0])
AGENTS = [DDPG, TD3, SAC]
Make = Any  # a class of agents
every_agent = pytest.mark.parametrize("make", AGENTS)


def observations(rows: int, seed: int = 0) -> Float32:
    return np.random.default_rng(seed).standard_normal((rows, 6)).astype(np.float32)


def work(agent: DDPG | TD3 | SAC, rounds: range) -> list[Float32]:
    """Everything an agent returns over a few rounds of acting, ending sessions and learning."""
    seen = []
    for seed in rounds:
        seen.append(agent.act(observations(4, seed), explore=True))
        agent.end_sessions(np.arange(4) == seed % 4)
        seen.append(agent.learn(random_batch(16, 6, 3, seed=seed)).td_errors)
        seen.append(agent.act(observations(2, seed)))
    return seen


def assert_equal(ours: list[Float32], theirs: list[Float32]) -> None:
    assert all((a == b).all() for a, b in zip(ours, theirs, strict=True))


@every_agent
@pytest.mark.parametrize("explore", [False, True])
def test_actions_stay_within_an_asymmetric_box(make: Make, explore: bool) -> None:
    agent = make(6, LOW, HIGH)
    actions = np.concatenate(
        [agent.act(100 * observations(64, seed), explore=explore) for seed in range(20)]
    )
    assert actions.dtype == np.float32
    assert actions.shape == (1280, 3)
    assert (actions >= LOW).all()
    assert (actions <= HIGH).all()


needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")


@needs_cuda
def test_ddpg_on_the_accelerator_learns_what_it_does_on_the_cpu() -> None:
    one, other = DDPG(6, LOW, HIGH), DDPG(6, LOW, HIGH, device="cuda")
    for seed in range(20):
        batch = random_batch(16, 6, 3, seed=seed)
        assert np.abs(one.learn(batch).td_errors - other.learn(batch).td_errors).max() < 0.01
    assert np.abs(one.act(observations(64)) - other.act(observations(64))).max() < 0.01


@needs_cuda
@every_agent
def test_an_agent_on_the_accelerator_learns_and_resumes_exactly(make: Make) -> None:
    agent, batch = make(6, LOW, HIGH, device="cuda"), random_batch(64, 6, 3, seed=0)
    errors = [np.square(agent.learn(batch).td_errors).mean() for _ in range(300)]
    assert errors[-1] < errors[0] / 2
    again = make(6, LOW, HIGH, device="cuda", seed=1)
    again.load_state_dict(agent.state_dict())
    assert_equal(work(agent, range(5)), work(again, range(5)))


@every_agent
def test_a_gymnasium_box_gives_the_same_agent_as_its_bounds(make: Make) -> None:
    box = Box(LOW.astype(np.float32), HIGH.astype(np.float32))
    rows = observations(5)
    assert (make(6, box).act(rows) == make(6, LOW, HIGH).act(rows)).all()


def as_arrays(state: dict[str, Any]) -> dict[str, Any]:
    """The state as a file would give it back: tensors as read-only arrays."""
    found: dict[str, Any] = {}
    for name, entry in state.items():
        found[name] = as_arrays(entry) if isinstance(entry, dict) else entry
        if isinstance(entry, torch.Tensor):
            found[name] = entry.numpy().copy()
            found[name].setflags(write=False)
    return found


@every_agent
@pytest.mark.parametrize("normalise", [False, True])
def test_a_loaded_agent_goes_on_bit_for_bit(make: Make, normalise: bool) -> None:
    agent = make(6, LOW, HIGH, seed=1, normalise=normalise)
    work(agent, range(5))
    state = agent.state_dict()
    expected = work(agent, range(5, 10))
    other = make(6, LOW, HIGH, seed=2, normalise=normalise)
    other.load_state_dict(as_arrays(state))
    assert_equal(work(other, range(5, 10)), expected)


def leaves(state: dict[str, Any]) -> list[Any]:
    return [
        leaf
        for entry in state.values()
        for leaf in (leaves(entry) if isinstance(entry, dict) else [entry])
    ]


@every_agent
def test_the_state_is_arrays_tensors_and_plain_numbers_that_do_not_change(make: Make) -> None:
    agent = make(6, LOW, HIGH, normalise=True)
    work(agent, range(3))
    found = leaves(agent.state_dict())
    kept = copy.deepcopy(found)
    plain = [x for x in found if not isinstance(x, np.ndarray | torch.Tensor)]
    assert json.loads(json.dumps(plain)) == plain
    work(agent, range(3, 6))
    assert all(np.array_equal(a, b) for a, b in zip(found, kept, strict=True))


@every_agent
def test_agents_are_independent_and_leave_the_global_rngs_alone(make: Make) -> None:
    expected = work(make(6, LOW, HIGH, seed=3), range(4))
    before = torch.get_rng_state()
    agent, disturber = make(6, LOW, HIGH, seed=3), make(6, LOW, HIGH, seed=9)
    ours = []
    for seed in range(4):
        ours += work(agent, range(seed, seed + 1))
        work(disturber, range(seed, seed + 1))
    assert_equal(ours, expected)
    assert torch.equal(before, torch.get_rng_state())


@every_agent
def test_exploration_can_be_stopped_for_good(make: Make) -> None:
    agent = make(6, LOW, HIGH)
    rows = observations(3)
    assert (agent.act(rows, explore=True) != agent.act(rows)).any()
    agent.stop_exploring()
    assert (agent.act(rows, explore=True) == agent.act(rows)).all()
    other = make(6, LOW, HIGH)
    other.load_state_dict(agent.state_dict())
    assert (other.act(rows, explore=True) == other.act(rows)).all()


@every_agent
def test_the_batch_is_left_as_it_was_and_may_be_read_only(make: Make) -> None:
    agent = make(6, LOW, HIGH)
    batch = random_batch(16, 6, 3, seed=0)
    before = [np.copy(field) for field in batch]
    for field in batch:
        field.setflags(write=False)
    errors = agent.learn(batch).td_errors
    kept = errors.copy()
    agent.learn(random_batch(16, 6, 3, seed=1))
    assert all((a == b).all() for a, b in zip(batch, before, strict=True))
    assert (errors == kept).all()


@every_agent
def test_the_batch_size_may_change_from_update_to_update(make: Make) -> None:
    agent = make(6, LOW, HIGH)
    for size in (16, 1, 40, 16):
        assert agent.learn(random_batch(size, 6, 3, seed=size)).td_errors.shape == (size,)


def bandit(rng: np.random.Generator, size: int) -> Batch:
    """One-step sessions; the reward is best where the action equals half the observation."""
    observation = rng.uniform(-1, 1, (size, 2)).astype(np.float32)
    action = rng.uniform(-1, 1, (size, 2)).astype(np.float32)
    reward = -((action - observation / 2) ** 2).sum(1)
    flags = np.ones(size, bool), np.zeros(size, bool)
    weights = np.ones(size, np.float32)
    return Batch(observation, action, reward, observation, *flags, np.arange(size), weights)


@every_agent
def test_a_bandit_whose_best_action_depends_on_the_observation_is_learned(make: Make) -> None:
    knobs = {"target_entropy": -8.0} if make is SAC else {}
    agent = make(
        2, -np.ones(2), np.ones(2), hidden=(64, 64), actor_lr=1e-3, critic_lr=3e-3, **knobs
    )
    rng = np.random.default_rng(0)
    for _ in range(1500):
        agent.learn(bandit(rng, 64))
    test = bandit(rng, 500)
    miss = np.abs(agent.act(test.observation) - test.observation / 2)
    assert miss.mean() < 0.1  # 0.25 for the best action that ignores the observation


@every_agent
@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"discount": 1.5}, "discount must be in .*1.5"),
        ({"tau": 0.0}, "tau must be in .*0.0"),
        ({"actor_lr": -1.0}, "actor_lr must be finite and > 0, got -1.0"),
        ({"critic_lr": float("inf")}, "critic_lr must be finite .*, got inf"),
        ({"hidden": ()}, "hidden must name"),
        ({"hidden": (8, 0)}, "hidden must name"),
    ],
)
def test_a_bad_knob_is_named(make: Make, knobs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(6, LOW, HIGH, **knobs)


@every_agent
@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((HIGH, LOW), "low < high"),
        ((LOW, np.full(3, np.inf)), "finite"),
        ((LOW, HIGH[:2]), "one length"),
        ((LOW,), "agents act in a Box"),
        ((Discrete(5),), r"agents act in a Box.*Discrete\(5\)"),
        ((MultiDiscrete([3, 4]),), "agents act in a Box"),
        (("a", "b"), "vectors of numbers"),
    ],
)
def test_bad_bounds_are_refused(make: Make, bounds: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(6, *bounds)


@every_agent
def test_wrong_shapes_are_refused(make: Make) -> None:
    agent = make(6, LOW, HIGH)
    with pytest.raises(ValueError, match=r"observation must have shape \(N, 6\), got \(6,\)"):
        agent.act(np.zeros(6, np.float32))
    with pytest.raises(ValueError, match=r"observation must have shape \(N, 6\), got \(2, 5\)"):
        agent.act(np.zeros((2, 5), np.float32))
    with pytest.raises(ValueError, match=r"got \(4, 5\) and \(4, 3\)"):
        agent.learn(random_batch(4, 5, 3, seed=0))
    smaller = make(6, LOW, HIGH, hidden=(8,))
    with pytest.raises(ValueError, match="numbers, this agent"):
        agent.load_state_dict(smaller.state_dict())


@pytest.mark.parametrize(
    ("make", "knobs", "message"),
    [
        (TD3, {"delay": 0}, "delay must be >= 1, got 0"),
        (TD3, {"smoothing": -0.1}, "smoothing must be finite and >= 0, got -0.1"),
        (SAC, {"temperature": 0.0}, "temperature must be finite and > 0, got 0.0"),
    ],
)
def test_a_bad_knob_of_one_agent_is_named(make: Make, knobs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(6, LOW, HIGH, **knobs)


@every_agent
def test_knobs_come_as_params_or_by_name_and_unknown_ones_are_refused(make: Make) -> None:
    params = make.Params(tau=0.5, hidden=(8,))
    agent = make(6, LOW, HIGH, params=params, discount=0.5)
    assert (agent.params.tau, agent.params.discount, agent.params.hidden) == (0.5, 0.5, (8,))
    with pytest.raises(ValueError, match="unknown parameter 'discont'; did you mean discount"):
        make(6, LOW, HIGH, discont=0.5)
    with pytest.raises(ValueError, match="params must be a"):
        make(6, LOW, HIGH, params={"tau": 0.5})


@every_agent
def test_a_saved_agent_goes_on_bit_for_bit(make: Make, tmp_path: Path) -> None:
    agent = make(6, LOW, HIGH, seed=1, normalise=True, hidden=(16, 8), value_bound=(-3.0, 3.0))
    work(agent, range(5))
    agent.save(tmp_path / "agent.lser")
    other = load_agent(tmp_path / "agent.lser")
    assert type(other) is make
    assert other.params == agent.params
    assert_equal(work(other, range(5, 10)), work(agent, range(5, 10)))


def test_a_file_that_holds_no_agent_is_refused(tmp_path: Path) -> None:
    UniformReplay(4, 2, 1).save(tmp_path / "memory")
    with pytest.raises(ValueError, match="holds a 'uniform', not an agent"):
        load_agent(tmp_path / "memory")
    agent = DDPG(6, LOW, HIGH)
    agent.save(tmp_path / "agent")
    damaged = bytearray((tmp_path / "agent").read_bytes())
    damaged[-100] ^= 1
    (tmp_path / "agent").write_bytes(damaged)
    with pytest.raises(ValueError, match="truncated or corrupted"):
        load_agent(tmp_path / "agent")


@every_agent
def test_many_threads_get_their_own_users_actions(make: Make) -> None:
    agent = make(6, LOW, HIGH)
    rows = [observations(1 + seed % 3, seed) for seed in range(8)]
    expected = [agent.act(row) for row in rows]

    def serve(which: int) -> bool:
        return all((agent.act(rows[which]) == expected[which]).all() for _ in range(200))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(serve, range(8)))


def test_an_absent_device_is_named() -> None:
    with pytest.raises(ValueError, match="device must name a torch device, got 'gpu'"):
        DDPG(6, LOW, HIGH, device="gpu")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="'cuda' is not available"):
            DDPG(6, LOW, HIGH, device="cuda")


def test_a_learner_without_its_target_or_its_actor_s_step_cannot_be_made() -> None:
    class Half(Learner):
        def _target(self, data: Any) -> Any:
            return data.reward

    class Agent(ActorCritic):
        learner_type = Half

    with pytest.raises(TypeError, match=r"abstract class Half .*_improve"):
        Agent(4, [-1.0], [1.0])

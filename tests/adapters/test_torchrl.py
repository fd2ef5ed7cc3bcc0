"""Our memories inside TorchRL, with the real library."""

import pickle
import runpy
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from counting import NEEDS_ROWS
from small_shop import DIALS
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.data import (
    LazyMemmapStorage,
    LazyTensorStorage,
    ReplayBuffer,
)
from torchrl.modules import MLP, ValueOperator
from torchrl.objectives import DDPGLoss, SoftUpdate
from torchrl_parts import SIZE, WIDTH, batch_of, block, buffer_of, draw, locality, rows

from lser.adapters.torchrl import Keys, memory_pair
from lser.catalogue import MEMORIES

torch.set_num_threads(1)


WITH_ROWS = {"aer", "der", "der-uniform", "her"}


OFFERED = [*sorted(set(MEMORIES) - WITH_ROWS), "toy_memory:NewestReplay"]


@pytest.mark.parametrize("kind", [LazyTensorStorage, LazyMemmapStorage])
def test_transitions_come_out_as_they_went_in_with_all_their_fields(kind):
    rb, data = locality(storage=kind(100)), block(60)
    slots = rb.extend(data)
    assert sorted(slots.tolist()) == list(range(60))
    found = draw(rb, torch.randn(WIDTH), 40)
    assert found.shape == (40,)
    assert found["next", "terminated"].dtype == torch.bool
    assert set(rows(found)) <= set(rows(data))
    assert torch.equal(found["note"], rb.storage[found["index"]]["note"])


@pytest.mark.parametrize("memory", OFFERED)
def test_every_memory_gives_back_what_it_was_given(memory):
    rb, data = buffer_of(memory, 40), block(100)
    slots = rb.extend(data)
    for slot, one in zip(slots.tolist(), rows(data), strict=True):
        assert slot < 0 or rows(rb.storage[slot : slot + 1]) == [one]
    found = rb.sample() if "query" not in MEMORIES[memory].needs else draw(rb, torch.zeros(WIDTH))
    assert set(rows(found)) <= set(rows(data))
    found["td_error"] = torch.ones(16)
    rb.update_tensordict_priority(found)
    rb.add(block(1, 7)[0])
    assert len(rb) == len(rb.sampler.memory) == 40


@pytest.mark.parametrize("memory", OFFERED)
def test_every_memory_trains(memory):
    actor = TensorDictModule(mlp(WIDTH, SIZE), in_keys=["observation"], out_keys=["action"])
    critic = ValueOperator(mlp(WIDTH + SIZE, 1), in_keys=["observation", "action"])
    loss = DDPGLoss(actor, critic, delay_actor=True, delay_value=True)
    loss.make_value_estimator(gamma=0.9)
    targets, optim = SoftUpdate(loss, tau=0.01), torch.optim.Adam(loss.parameters(), 1e-3)
    rb = buffer_of(memory, 50)
    for seed in range(12):
        data = block(6, seed)
        rb.extend(data)
        rb.sampler.query = data["next", "observation"]
        found = rb.sample()
        values = loss(found)
        optim.zero_grad()
        (values["loss_actor"] + values["loss_value"]).backward()
        optim.step()
        targets.step()
        rb.update_tensordict_priority(found)  # DDPGLoss has put its "td_error" there
    assert len(rb) == 50
    assert all(torch.isfinite(p).all() for p in loss.parameters())


@pytest.mark.parametrize(("memory", "knobs", "why"), NEEDS_ROWS)
def test_a_memory_that_needs_rows_of_its_own_is_refused_with_the_reason(memory, knobs, why):
    with pytest.raises(ValueError, match=f"memory='{memory}' cannot be used with TorchRL.*{why}"):
        memory_pair(memory, 10, WIDTH, **knobs)
    with pytest.raises(ValueError, match="lie in TorchRL's storage"):
        memory_pair("uniform", 10, WIDTH, storage="memmap", path="rows")


def test_newcomers_without_a_td_error_keep_the_memorys_own_idea_of_them():
    rb = buffer_of("per", 64)
    rb.extend(block(8))
    rb.update_priority(torch.arange(8), torch.full((8,), 3.0))
    before = rb.sampler.memory.largest
    for seed in range(5):
        rb.add(block(1, seed)[0])
    rb.update_tensordict_priority(rb.sample())  # somebody forgot the TD errors
    assert rb.sampler.memory.largest == before
    with pytest.raises(ValueError, match="td_errors must be finite"):
        rb.update_priority(torch.arange(2), torch.tensor([1.0, float("nan")]))


def test_a_memory_without_locality_takes_numbers_of_categories():
    assert len(discrete("uniform")) == 8


def test_td_errors_reach_a_memory_of_somebody_elses():
    rb = buffer_of("toy_memory:NewestReplay", span=2)
    rb.extend(block(30))
    found = rb.sample()
    assert set(found["index"].tolist()) <= {28, 29}
    found["td_error"] = torch.arange(16.0)
    rb.update_tensordict_priority(found)
    assert rb.sampler.memory.told[-1].tolist() == list(range(16))


def ends(td):
    flags = (td["next", key][:, 0].tolist() for key in ("terminated", "truncated"))
    return list(zip(*flags, strict=True))


def test_episode_ends_and_time_limits_arrive_apart():
    rb, data = locality(), block(50)
    rb.extend(data)
    wanted = dict(zip(data["note"].tolist(), ends(data), strict=True))
    found = draw(rb, torch.zeros(WIDTH), 50)
    notes = found["note"].tolist()
    assert all(wanted[n] == end for n, end in zip(notes, ends(found), strict=True))
    assert {(True, False), (False, True)} <= set(wanted.values())


def test_each_draw_asks_for_the_next_of_several_users():
    rb = locality()
    rb.extend(block(60))
    users = torch.randn(3, WIDTH, generator=torch.Generator().manual_seed(4))
    twin = pickle.loads(pickle.dumps(rb))
    rb.sampler.query = users
    for user in (0, 1, 2, 0):
        assert torch.equal(rb.sample()["index"], draw(twin, users[user])["index"])


def test_td_errors_are_ignored_without_a_warning_where_draws_do_not_use_them():
    rb = locality()
    rb.extend(block(50))
    found = draw(rb, torch.zeros(WIDTH))
    found["td_error"] = torch.ones(16)
    rb.update_tensordict_priority(found)
    rb.update_priority(found["index"], torch.ones(16))


def test_td_errors_reach_prioritized_replay():
    rb = buffer_of("per", 64, alpha=1.0, beta=1.0)
    rb.extend(block(100))
    rb.add(block(1, 5)[0])
    found = batch_of(rb, 64)
    assert found["priority_weight"].shape == (64,)
    found["td_error"] = torch.where(found["index"] == int(found["index"][0]), 50.0, 0.0)
    rb.update_priority(torch.arange(64), 1e-3)
    rb.update_tensordict_priority(found)
    again = batch_of(rb, 200)
    share = (again["index"] == found["index"][0]).float().mean()
    assert share > 0.95
    assert rb.sampler.memory.largest == pytest.approx(50.0)


class Foreign:
    """A memory by the protocol only."""


def discrete(memory):
    """A buffer of transitions whose observations are numbers of categories."""
    data = block(8)
    data["observation"] = torch.arange(8)[:, None]
    rb = buffer_of(memory, width=1)
    rb.extend(data)
    return rb


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: locality(storage=LazyTensorStorage(50)), "max_size 50.*capacity 100"),
        (lambda: locality(storage=LazyTensorStorage(100, ndim=2)), "ndim = 2"),
        (lambda: locality(prefetch=2), "prefetch=2"),
        (lambda: locality().extend(block(4).reshape(2, 2)), r"\(N,\).*reshape"),
        (lambda: draw(locality(), np.zeros(WIDTH)), "the memory is empty"),
        (lambda: memory_pair("lser", 10, WIDTH, bits=99), "bits"),
        (lambda: memory_pair("lser", 10, WIDTH, bitz=9), "did you mean bits"),
        (lambda: memory_pair("lsr", 10, WIDTH), "unknown memory 'lsr'; did you mean"),
        (lambda: memory_pair("lser", 0, WIDTH), "capacity"),
        (lambda: memory_pair(Foreign, 10, WIDTH), "Foreign.*keeps rows itself"),
        (lambda: buffer_of("lser", width=5).extend(block(4)), "have 3 numbers.*observation_dim=5"),
        (lambda: discrete("lser"), "one-hot"),
        (
            lambda: buffer_of("per", keys=Keys(reward="gain")).extend(block(2)),
            "'gain' is not there",
        ),
        (
            lambda: buffer_of("per", keys=Keys(observation="next")).extend(block(2)),
            r"nested.*Keys\(observation",
        ),
    ],
)
def test_what_cannot_work_is_refused_with_its_reason(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_sampling_without_a_query_or_with_anothers_index_is_refused():
    rb = locality()
    rb.extend(block(10))
    with pytest.raises(ValueError, match="set sampler.query"):
        rb.sample()
    rb.set_sampler(memory_pair("lser", 100, WIDTH)[0])
    with pytest.raises(ValueError, match="writer that memory_pair gave"):
        rb.sample()


def test_a_plain_replay_buffer_works_too():
    sampler, writer = memory_pair("lser", 100, WIDTH)
    rb = ReplayBuffer(storage=LazyTensorStorage(100), sampler=sampler, writer=writer, batch_size=8)
    data = block(30)
    rb.extend(data)
    assert set(rows(draw(rb, np.zeros(WIDTH)))) <= set(rows(data))


def mlp(inputs, outputs):
    return MLP(inputs, outputs, num_cells=[32, 32], activation_class=nn.ReLU)


def click_rate(act, seed=99, users=64, pages=12):
    """Clicks per item shown in fresh sessions."""
    env = gym.make_vec("lser/Bazaar-v0", num_envs=users, **DIALS)
    seen, _ = env.reset(seed=seed)
    clicks = 0.0
    for _ in range(pages):
        seen, reward, *_ = env.step(act(seen))
        clicks += reward.sum()
    return clicks / (users * pages * DIALS["slate"])


def test_the_example_stores_numbers_and_no_graph(monkeypatch, capsys):
    example = Path(__file__).parents[2] / "examples" / "04_torchrl.py"
    monkeypatch.setattr("sys.argv", [str(example), "130"])
    rb = runpy.run_path(str(example))["rb"]
    assert capsys.readouterr().out.startswith("clicks per session")
    assert len(rb) > 100
    for row in rb.storage[:].values(include_nested=True, leaves_only=True):
        assert not row.requires_grad


@pytest.mark.slow
def test_ddpg_learns_a_small_bazaar_clearly_better_than_random():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    env = gym.make_vec("lser/Bazaar-v0", num_envs=4, **DIALS)
    width, size = env.single_observation_space.shape[0], env.single_action_space.shape[0]
    actor = TensorDictModule(
        nn.Sequential(mlp(width, size), nn.Tanh()), in_keys=["observation"], out_keys=["action"]
    )
    critic = ValueOperator(mlp(width + size, 1), in_keys=["observation", "action"])
    loss = DDPGLoss(actor, critic, loss_function="l2", delay_actor=True, delay_value=True)
    loss.make_value_estimator(gamma=0.9)
    targets = SoftUpdate(loss, tau=0.01)
    optim = torch.optim.Adam(loss.parameters(), 1e-3)
    rb = buffer_of("lser", 10_000, width, options={"batch_size": 64}, bits=6, greedy=0.9)

    def act(seen, noise=0.0):
        with torch.no_grad():
            action = actor.module(torch.from_numpy(seen)).numpy()
        return np.clip(action + noise * rng.normal(size=action.shape), -1, 1).astype(np.float32)

    def random(seen):
        return rng.uniform(-1, 1, (len(seen), size)).astype(np.float32)

    seen, _ = env.reset(seed=0)
    for step in range(1000):
        action = random(seen) if step < 50 else act(seen, 0.3)
        after, reward, terminated, truncated, info = env.step(action)
        ended = terminated | truncated
        true_after = after.copy()
        true_after[ended] = np.stack([*info["final_obs"][ended]]) if ended.any() else after[ended]
        if step >= 50:
            found = draw(rb, seen)
            values = loss(found)
            optim.zero_grad()
            (values["loss_actor"] + values["loss_value"]).backward()
            optim.step()
            targets.step()
        arrays = {"reward": reward.astype(np.float32), "done": ended, "terminated": terminated}
        following = {key: torch.from_numpy(value)[:, None] for key, value in arrays.items()}
        following["observation"] = torch.from_numpy(true_after)
        fields = {"observation": torch.from_numpy(seen), "action": torch.from_numpy(action)}
        rb.extend(TensorDict({**fields, "next": following}, [4]))
        seen = after
    assert click_rate(act) > 1.8 * click_rate(random)

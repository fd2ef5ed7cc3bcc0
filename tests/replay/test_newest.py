"""`newest=k`: every batch of every memory ends with the newest transitions (combined replay)."""

import numpy as np
import pytest

from lser.catalogue import MEMORIES
from lser.replay import LocalityReplay, PrioritizedReplay, UniformReplay, load_replay

every_memory = pytest.mark.parametrize("name", MEMORIES)


def made(name, newest=3, capacity=60):
    entry = MEMORIES[name]
    params = entry.params(**{**entry.test_knobs, "newest": newest})
    return entry.load()(capacity, 4, 2, params=params, seed=1)


def block(rng, size):
    observation, following = rng.normal(size=(2, size, 4)).astype(np.float32)
    observation[:, -1] = following[:, -1] = rng.integers(1, 11, size) / 10
    action = rng.normal(size=(size, 2)).astype(np.float32)
    reward = rng.integers(0, 11, size).astype(np.float32)
    return observation, action, reward, following, rng.random(size) < 0.1, np.zeros(size, bool)


def life(replay, rng, rounds, path=None):
    batches, told = [], []
    for turn in range(rounds):
        new = block(rng, int(rng.integers(1, 5)))
        told.append(replay.extend(*new))
        batch = replay.sample(8, query=new[0][0])
        replay.update(batch.ids, rng.normal(size=8))
        batches.append(batch)
        if path is not None and turn == rounds // 2:
            replay.save(path)
            replay = load_replay(path)
    return batches, told


@every_memory
def test_the_last_places_are_the_newest_that_are_held(name):
    replay = made(name, capacity=400)  # never full: nothing new is put out again
    batches, told = life(replay, np.random.default_rng(0), 60)
    kept = np.empty(0, np.int64)
    for batch, ids in zip(batches, told, strict=True):
        kept = np.concatenate((kept, ids[ids >= 0]))
        expected = kept[-3:]
        if name.startswith("der"):  # copies that a zone takes are writes too
            expected = expected[-1:] if expected[-1] == batch.ids[-1] else expected[:0]
        assert len(batch.ids) == 8
        assert (batch.ids[len(batch.ids) - len(expected) :] == expected).all()


@every_memory
def test_a_memory_with_places_for_the_newest_is_resumed_exactly(name, tmp_path):
    expected, _ = life(made(name), np.random.default_rng(2), 40)
    found, _ = life(made(name), np.random.default_rng(2), 40, tmp_path / "memory")
    for one, other in zip(expected, found, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@every_memory
def test_without_places_for_the_newest_nothing_moves(name):
    entry = MEMORIES[name]
    knobs = {**entry.test_knobs, **({"newest": 0} if "newest" in entry.knobs else {})}
    plain = entry.load()(60, 4, 2, params=entry.params(**knobs), seed=1)
    ours, _ = life(made(name, newest=0), np.random.default_rng(3), 20)
    theirs, _ = life(plain, np.random.default_rng(3), 20)
    for one, other in zip(ours, theirs, strict=True):
        assert np.array_equal(one.ids, other.ids)


def test_a_batch_of_one_is_drawn_and_a_small_one_keeps_a_place_for_the_draw():
    replay = UniformReplay(100, 4, 2, newest=8)
    ids = replay.extend(*block(np.random.default_rng(0), 50))
    assert {int(replay.sample(1).ids[0]) for _ in range(100)} > {int(ids[-1])}
    assert (replay.sample(4).ids[1:] == ids[-3:]).all()


def test_the_newest_weigh_one_in_a_memory_with_weights():
    replay = PrioritizedReplay(100, 4, 2, newest=2)
    ids = replay.extend(*block(np.random.default_rng(0), 50))
    replay.update(ids, np.linspace(0.01, 5, 50))
    batch = replay.sample(8)
    assert (batch.weights[-2:] == 1).all()
    assert (batch.weights[:-2] < 1).any()


def test_what_a_full_memory_refuses_is_not_among_the_newest():
    rng = np.random.default_rng(0)
    replay = LocalityReplay(20, 4, 2, bits=2, newest=4)
    replay.extend(*block(rng, 20))
    low = list(block(rng, 5))
    low[2][:] = -1.0  # below all that it holds
    assert (replay.extend(*low) == -1).all()
    assert (replay.sample(8, query=low[0][0]).reward >= 0).all()


def test_a_rule_without_rows_picks_the_newest_too():
    rng = np.random.default_rng(0)
    rule = LocalityReplay(30, 4, 2, bits=2, newest=2, storage="none")
    slots = rule.place(rng.normal(size=(20, 4)), rng.random(20), np.zeros(20, bool))
    picked, weights = rule.pick(6, rng.normal(size=4).astype(np.float32))
    assert (picked[-2:] == slots[-2:]).all()
    assert weights.shape == (6,)


def test_a_number_below_zero_is_named():
    with pytest.raises(ValueError, match="newest"):
        UniformReplay(10, 4, 2, newest=-1)

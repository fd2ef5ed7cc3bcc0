"""Shards that are lost and come back, in this process and as Ray's actors."""

import os
import signal
import time

import numpy as np
import pytest
from shard_parts import Here, block, subject_of

from lser.ray import rooms as rooms_module
from lser.ray.rooms import HereRooms, LostRoom, start_rooms
from lser.ray.shards import ShardedReplay
from lser.testing import CHECKS
from lser.testing.traffic import Snapshot, same_batch

pytestmark = pytest.mark.usefixtures("time_limit")


def lost_and_back(memory, kill, tmp_path):
    """A shard dies after a snapshot: what was sent since is lost, counted, and nothing else."""
    rng = np.random.default_rng(8)
    first, second = block(rng, 60), block(rng, 40)
    known = memory.extend(*first)
    memory.snapshot()
    since = memory.extend(*second)
    kill()
    gone = (since % memory.shards) == 1
    batch = memory.sample(500, first[0][known % memory.shards == 1][0])  # asks the dead one
    numbers = memory.stats()
    assert (numbers["lost"], numbers["revived"]) == (gone.sum(), 1)
    held = set(memory.state().arrays["ids"].tolist())
    assert held >= set(known.tolist())
    assert held & set(since.tolist()) == set(since[~gone].tolist())
    assert set(batch.ids.tolist()) <= held
    again = memory.extend(*second)
    assert not set(again.tolist()) & (set(known.tolist()) | set(since.tolist()))  # ids never repeat
    assert len(memory) == 100 + (~gone).sum()
    memory.snapshot()
    assert len(list(tmp_path.glob("shard-*"))) == memory.shards


def test_a_lost_shard_comes_back_and_the_loss_is_counted(tmp_path):
    rooms = HereRooms(2)
    memory = Here(1000, 6, 2, bits=5, rooms=rooms, snapshots=tmp_path)
    lost_and_back(memory, lambda: rooms.kill(1), tmp_path)


def test_a_shard_lost_in_a_block_takes_it_all_the_same(tmp_path):
    rng = np.random.default_rng(8)
    rooms = HereRooms(2)
    memory = Here(1000, 6, 2, bits=5, rooms=rooms, snapshots=tmp_path)
    for _ in range(2):
        rooms.kill(0)
        assert (memory.extend(*block(rng, 50)) >= 0).all()
    rooms.kill(1)
    memory.push(*block(rng, 50))
    memory.flush()
    assert memory.stats()["revived"] >= 2
    held, lost = len(memory), memory.stats()["lost"]
    assert held + lost == 150
    assert (
        held == memory.stats()["size"] == sum(memory._hall.codes._sizes[: len(memory._hall.codes)])
    )


def test_without_snapshots_a_lost_shard_is_an_error():
    rooms = HereRooms(2)
    memory = Here(100, 6, 2, bits=5, rooms=rooms)
    rng = np.random.default_rng(8)
    memory.extend(*block(rng, 50))
    rooms.kill(0)
    with pytest.raises(RuntimeError, match="shard 0 of 2 is gone with"):
        memory.extend(*block(rng, 50))
    with pytest.raises(ValueError, match="snapshots=None"):
        memory.snapshot()


def test_a_lost_client_goes_on_from_the_snapshots(tmp_path):
    rng = np.random.default_rng(8)
    memory = Here(200, 6, 2, bits=5, snapshots=tmp_path)
    for _ in range(20):
        memory.extend(*block(rng, 20))
    memory.snapshot()
    with pytest.raises(ValueError, match="from_snapshots"):
        Here(200, 6, 2, bits=5, snapshots=tmp_path)
    other = Here.from_snapshots(tmp_path)
    for _ in range(10):
        added, query = block(rng, 5), rng.normal(size=6)
        ids = [each.extend(*added) for each in (memory, other)]
        kept = [(i >= 0).tolist() for i in ids]
        assert kept[0] == kept[1]
        ours, theirs = memory.sample(8, query), other.sample(8, query)
        np.testing.assert_array_equal(ours.observation, theirs.observation)
    memory.snapshot()
    assert len(list(tmp_path.iterdir())) == 3


# On a real cluster


@pytest.fixture(scope="module")
def actors():
    ray = pytest.importorskip("ray", reason="the extra ray is not installed")
    ray.init(
        "local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=10**8
    )
    rooms = start_rooms(2, cpus=0.5)
    yield rooms
    ray.shutdown()


REAL = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


@REAL
@pytest.mark.slow
def test_it_keeps_the_contract_on_actors(actors):
    class OnActors(ShardedReplay):
        def __init__(self, *sizes, rooms=None, **knobs):
            super().__init__(*sizes, rooms=actors, **knobs)

    tested = subject_of(OnActors, 2)
    skipped = {*tested.exceptions, "survives_two_threads", "goes_on_after_a_pickle"}
    for check in CHECKS:
        if check.__name__ in skipped or check.__name__ == "chooses_alike_without_rows":
            continue
        check(tested)


@REAL
@pytest.mark.slow
def test_actors_do_as_rooms_of_this_process_do(actors):
    rng = np.random.default_rng(0)
    here = Here(300, 6, 2, bits=6, seed=2)
    there = ShardedReplay(300, 6, 2, bits=6, seed=2, rooms=actors)
    for _ in range(10):
        added = block(rng, 50)
        here.push(*added)
        there.push(*added)
    queries = rng.normal(size=(20, 6)).astype(np.float32)
    for ours, theirs in zip(*(m.sample_many(8, queries) for m in (here, there)), strict=True):
        assert same_batch(ours, theirs)
    assert Snapshot(here) == Snapshot(there)
    there.close()
    with pytest.raises((LostRoom, RuntimeError)):
        there.sample(8, queries[0])


@REAL
@pytest.mark.slow
def test_an_actor_that_is_killed_comes_back_from_its_snapshot(actors, tmp_path):
    memory = ShardedReplay(1000, 6, 2, bits=5, rooms=actors, snapshots=tmp_path)
    pid = rooms_module.the_ray().get(actors.actors[1].pid.remote())

    def kill():
        os.kill(pid, signal.SIGKILL)
        time.sleep(0.5)

    lost_and_back(memory, kill, tmp_path)

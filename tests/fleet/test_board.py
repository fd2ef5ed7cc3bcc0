"""The arrays that a fleet's processes share, and which runs may sail together."""

import json
import multiprocessing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lser.catalogue import MEMORIES
from lser.experiments.presets import preset
from lser.experiments.ready import check_device
from lser.experiments.recording import write_json
from lser.experiments.study import job_for
from lser.fleet.board import Board, Shape
from lser.fleet.map import Fleets, _mark_as_dead, groups
from lser.fleet.run import mustered

SHAPE = Shape(3, users=2, observations=5, actions=4, rows=8, normals=1, floats=1_500, turns=2)


def fill(board):
    """Numbers in every array, each its own."""
    for number, name in enumerate(SHAPE.arrays()):
        array = getattr(board, name)
        array[:] = (np.arange(array.size) + 1_000 * number).reshape(array.shape)


def test_every_array_has_its_shape_and_pages_of_its_own():
    board = Board(SHAPE)
    starts = []
    for name, (shape, kind) in SHAPE.arrays().items():
        array = getattr(board, name)
        assert (array.shape, array.dtype) == (shape, kind)
        starts.append(array.ctypes.data)
    assert all(start % 4096 == 0 for start in starts)
    assert len(set(starts)) == len(starts)
    assert board.name is None
    board.close()


def test_no_array_writes_into_another():
    board = Board(SHAPE)
    fill(board)
    for number, name in enumerate(SHAPE.arrays()):
        array = getattr(board, name)
        expected = (np.arange(array.size) + 1_000 * number).astype(array.dtype)
        np.testing.assert_array_equal(array.ravel(), expected)
    board.close()


def double(name, done):
    """In another process: find the board by its name, and change it."""
    board = Board(SHAPE, name=name)
    board.actions *= 2
    board.close()
    done.set()


def test_another_process_sees_the_same_numbers_and_leaves_the_memory():
    board = Board(SHAPE, shared=True)
    fill(board)
    before = board.actions.copy()
    context = multiprocessing.get_context("spawn")
    done = context.Event()
    process = context.Process(target=double, args=(board.name, done))
    process.start()
    process.join()
    assert done.is_set()
    np.testing.assert_array_equal(board.actions, 2 * before)
    name = board.name
    board.close()
    with pytest.raises(FileNotFoundError):
        Board(SHAPE, name=name)  # whoever made it gave it back


def test_two_vector_steps_take_turns_in_the_buffers():
    board = Board(SHAPE)
    assert [board.buffer(step, turn) for step in range(3) for turn in range(2)] == [
        0,
        1,
        2,
        3,
        0,
        1,
    ]
    assert board.batches.shape[0] == 4
    assert board.batches.shape[1] >= SHAPE.floats
    board.close()


def job(folder, memory="uniform", agent="ddpg", **changes):
    return job_for(replace(preset("bazaar", memory, agent, scale="quick"), **changes), folder, "")


@pytest.mark.parametrize("apart", [False, True])
def test_memories_with_goals_see_more_and_are_a_squad_of_their_own(apart, tmp_path):
    goals = {name for name in MEMORIES.own if "goals" in MEMORIES[name].needs}
    names = ["uniform", "lser", "her-balanced", *goals]
    (fleet,) = groups([job(tmp_path, name, seed=seed) for seed, name in enumerate(names)])
    found = mustered(fleet, 4, apart=apart)
    squads = [{each.experiment["memory"]["name"] for each in squad.jobs} for squad in found]
    assert goals
    assert sorted(squads, key=len) == [goals, {"uniform", "lser", "her-balanced"}]


@pytest.mark.parametrize("agent", ["ridge", "click-model", "random"])
def test_agents_without_networks_are_refused_by_name(agent, tmp_path):
    with pytest.raises(ValueError, match=f"a fleet stacks DDPG, TD3 and SAC .* got {agent}"):
        groups([job(tmp_path, agent=agent)])


@pytest.mark.parametrize(("size", "lengths"), [(128, [5]), (5, [5]), (4, [3, 2]), (1, [1] * 5)])
def test_runs_are_dealt_to_as_few_fleets_as_hold_them(size, lengths, tmp_path):
    work = [job(tmp_path, seed=seed) for seed in range(5)]
    fleets = Fleets("cpu", size).fleets(work)
    assert [len(fleet) for fleet in fleets] == lengths
    assert sorted(each.folder for fleet in fleets for each in fleet) == sorted(
        each.folder for each in work
    )


def test_a_device_that_is_none_is_named_before_anything_starts(tmp_path):
    with pytest.raises(ValueError, match="device must name a torch device, got 'banana'"):
        list(Fleets("banana").run([job(tmp_path)], started=lambda job: None))
    check_device("cpu")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("status", "left"), [("running", "failed"), ("done", "done"), ("stopped", "stopped")]
)
def test_no_record_says_running_when_its_fleet_is_gone(status, left, tmp_path):
    work = job(tmp_path)
    _mark_as_dead(work)  # nothing was begun: nothing to mark
    path = Path(work.folder) / "meta.json"
    path.parent.mkdir(parents=True)
    write_json(path, {"status": status, "metric": "ctr"})
    _mark_as_dead(work)
    meta = json.loads(path.read_text())
    assert (meta["status"], meta["metric"]) == (left, "ctr")
    assert ("the fleet's process died" in meta.get("error", "")) == (status == "running")
    path.write_text("{")
    _mark_as_dead(work)
    assert path.read_text() == "{"

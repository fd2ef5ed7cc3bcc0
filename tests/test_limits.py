"""Limits: the container's memory, disks that are full, users who never come back."""

import errno
import gc
import os
import subprocess
import sys

import numpy as np
import pytest

from lser.catalogue import MEMORIES
from lser.experiments import preflight
from lser.replay import LocalityReplay, UniformReplay, load_replay
from lser.testing import subject
from lser.testing.subject import ACTION, OBSERVATION
from lser.testing.traffic import Snapshot, blocks_of


@pytest.mark.parametrize(
    ("listing", "files"),
    [
        ("0::/a/b\n", {"a/memory.max": "1000", "a/memory.current": "400", "a/b/memory.max": "max"}),
        (
            "5:memory:/a\n",
            {"memory/a/memory.limit_in_bytes": "1000", "memory/a/memory.usage_in_bytes": "400"},
        ),
    ],
)
def test_the_limit_of_a_container_counts(tmp_path, monkeypatch, listing, files):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "cgroup").write_text(listing)
    assert preflight._container_bytes(tmp_path / "cgroup", tmp_path) == [600]
    monkeypatch.setattr(preflight, "_container_bytes", lambda *_: [600])
    assert preflight.available_bytes() == 600
    with pytest.raises(MemoryError, match="available"):
        preflight.check_memory(1000, 4, 2)


def test_a_map_reserves_its_place_on_the_disk(tmp_path, monkeypatch):
    memory = UniformReplay(5000, 4, 2, storage="memmap", path=tmp_path / "rows")
    status = os.stat(tmp_path / "rows")
    assert status.st_blocks * 512 >= memory.store.rows.nbytes

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space"):
        UniformReplay(5000, 4, 2, storage="memmap", path=tmp_path / "more")
    assert not (tmp_path / "more").exists()


KILLED = """
import sys, time
import numpy as np
from lser.catalogue import MEMORIES
from lser.testing.traffic import blocks_of
name, folder = sys.argv[1:]
memory = MEMORIES[name].load()(40, 6, 3, storage="memmap", path=folder + "/rows")
for block in blocks_of(np.random.default_rng(0), 9):
    memory.extend(*block)
memory.save(folder + "/memory.lser")
print("saved", flush=True)
for block in blocks_of(np.random.default_rng(1), 10**9):
    memory.extend(*block)
"""


@pytest.mark.parametrize("name", ["uniform", "lser"])
def test_a_map_reopens_after_a_kill(tmp_path, name):
    script = KILLED.replace("40, 6, 3", f"40, {OBSERVATION}, {ACTION}")
    command = [sys.executable, "-c", script, name, str(tmp_path)]
    rows, saved = tmp_path / "rows", tmp_path / "memory.lser"
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "saved\n"
        with pytest.raises(ValueError, match="rows of a memory that is in use"):
            load_replay(saved, rows_path=rows)
        process.kill()
    twin = MEMORIES[name].load()(40, OBSERVATION, ACTION)
    for block in blocks_of(np.random.default_rng(0), 9):
        twin.extend(*block)
    back = load_replay(saved, rows_path=rows)
    assert Snapshot(back).arrays.keys() == Snapshot(twin).arrays.keys()
    for key, array in Snapshot(twin).arrays.items():
        np.testing.assert_array_equal(Snapshot(back).arrays[key], array)
    with pytest.raises(ValueError, match="rows of a memory that is in use"):
        load_replay(saved, rows_path=rows)
    del back
    gc.collect()
    rows.write_bytes(b"something else")
    with pytest.raises(ValueError, match="is no file of .* bytes for rows"):
        load_replay(saved, rows_path=rows)
    assert rows.read_bytes() == b"something else"


@pytest.mark.parametrize("kind", [UniformReplay, LocalityReplay])
def test_a_map_comes_back_in_parts(tmp_path, kind):
    memory = kind(40, 4, 2, storage="memmap", path=tmp_path / "rows")
    for block in blocks_of(np.random.default_rng(0), 9):
        memory.extend(*block)
    memory.save(tmp_path / "memory.lser")
    with pytest.raises(ValueError, match=r"the rows need a new file \(what a memory held"):
        kind(40, 4, 2, storage="memmap", path=tmp_path / "rows")
    back = load_replay(tmp_path / "memory.lser", rows_path=tmp_path / "others")
    assert Snapshot(back) == Snapshot(memory)


@pytest.mark.parametrize(
    ("name", "knobs"),
    [("lser", {"order": "return"}), ("der", {}), ("ser", {"strategy": "reward"}), ("her", {})],
)
def test_users_who_never_come_back_are_forgotten(name, knobs):
    memory, rng = subject(name, **knobs).make(40), np.random.default_rng(0)
    sizes = []
    for number in range(60):
        (block,) = blocks_of(rng, 1, size=100)
        still = np.zeros(100, np.bool_)
        memory.extend(*block[:4], still, still, np.arange(100) + 100 * number)
        sizes.append(sum(array.nbytes for array in memory.state().arrays.values()))
    assert sizes[-1] == sizes[20]


@pytest.mark.parametrize("name", ["per", "der"])
def test_enormous_errors_leave_priorities_that_are_numbers(name):
    memory = subject(name, alpha=2.0).make(40)
    (block,) = blocks_of(np.random.default_rng(0), 1, size=30)
    memory.extend(*block)
    memory.update(memory.sample(16, None).ids, np.full(16, 1e300))
    memory.extend(*block)
    batch = memory.sample(64, None)
    assert np.isfinite(batch.weights).all()
    assert len(set(batch.ids.tolist())) > 1

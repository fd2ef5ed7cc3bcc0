"""The drill's loss of power: what is synced stays, everything else may be lost."""

import os
import random
import sys
from pathlib import Path

import pytest

from lser import files
from lser.experiments import recording

sys.path.append(str(Path(__file__).parents[1]))  # the drill is not installed

from drill.power import Disk


def lost(folder, work, seed):
    """What is left at `folder` when the power goes after `work`."""
    disk = Disk()
    with disk.watched():
        work(folder)
    disk.lose(folder, random.Random(seed))
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def unsynced(folder):
    (folder / "a").write_bytes(b"whole")


def half_synced(folder):
    with (folder / "a").open("wb") as file:
        file.write(b"whole")
        file.flush()
        os.fsync(file.fileno())


def fully_synced(folder):
    half_synced(folder)
    files.sync_folder(folder)


def outcomes(tmp_path, work):
    seen = set()
    for seed in range(40):
        folder = tmp_path / str(seed)
        folder.mkdir()
        seen.add(lost(folder, work, seed).get("a"))
    return seen


def test_only_what_is_synced_is_sure(tmp_path):
    assert outcomes(tmp_path, fully_synced) == {b"whole"}


def test_a_name_is_lost_until_its_folder_is_synced(tmp_path):
    assert outcomes(tmp_path, half_synced) == {b"whole", None}


def test_bytes_are_torn_until_they_are_synced(tmp_path):
    assert outcomes(tmp_path, unsynced) > {None, b"", b"who"}


@pytest.mark.parametrize("write", ["json", "file"])
def test_what_a_run_writes_is_the_earlier_or_the_new_one_after_a_loss_of_power(tmp_path, write):
    """Records and checkpoints sync the file before the name, and the folder after it."""

    def put(folder, value):
        if write == "json":
            recording.write_json(folder / "meta.json", {"value": value})
        else:
            files.save(folder / "c.lser", "test", files.State({"value": value}, {}), sync=True)

    for seed in range(20):
        folder = tmp_path / str(seed)
        folder.mkdir()
        disk = Disk()
        with disk.watched():
            put(folder, 1)
            put(folder, 2)
        disk.lose(folder, random.Random(seed))
        (path,) = folder.iterdir()
        data = path.read_bytes() if write == "json" else str(files.load(path)[1].config).encode()
        assert b"2" in data

"""Killed at any moment, under load: a client's own ledger is the judge.

LSER_KILLS sets how many; `make drill` asks for 100.
"""

import os

import pytest
from drill import online, postgres
from replays import Nowhere, copy, finish, recorded

from lser.online.folder_store import FolderShelf
from lser.online.learning import Learning
from lser.online.sqlite_reader import SqliteReader

KILLS = int(os.environ.get("LSER_KILLS", "4"))


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_and_the_learner_is_the_undisturbed_one(tmp_path):
    assert online.kill_service(tmp_path, KILLS) == (KILLS, [])


@pytest.mark.slow
def test_nor_with_servers_learners_and_a_database_that_are_killed(tmp_path):
    if postgres.binaries() is None:
        pytest.skip("no PostgreSQL server is installed (apt install postgresql)")
    assert online.kill_machines(tmp_path, 2 * KILLS) == (2 * KILLS, [])


@pytest.mark.slow
@pytest.mark.parametrize("fault", [online.fill_service, online.lock_service, online.jump_clocks])
def test_full_disks_locks_and_jumping_clocks_lose_nothing(tmp_path, fault):
    assert fault(tmp_path, 2) == (2, [])


def test_a_kill_inside_a_snapshot_leaves_the_one_before(tmp_path, monkeypatch):
    """A write that ends halfway, at any of its steps, leaves a learner that goes on the same."""
    from lser.training import checkpoint

    folder = recorded(tmp_path / "shop", pages=120)
    (tmp_path / "calm").mkdir()
    undisturbed = finish(copy(folder, tmp_path / "calm"))

    class Killed(BaseException):
        pass

    real_replace, real_save = os.replace, checkpoint.save
    for broken in ("replace", "after"):

        def replace(source, target, broken=broken):
            if broken == "replace" and "learner" in str(target) and str(target).endswith(".lser"):
                raise Killed
            real_replace(source, target)

        def save(folder, number, tree, broken=broken):
            path = real_save(folder, number, tree)
            if broken == "after" and folder.name == "learner":
                raise Killed
            return path

        monkeypatch.setattr(os, "replace", replace)
        monkeypatch.setattr(checkpoint, "save", save)
        reader = SqliteReader(folder)
        learning = Learning(FolderShelf(folder), reader, Nowhere())
        with pytest.raises(Killed):
            list(iter(lambda learning=learning: learning.step(20), 0))
        reader.close()
        monkeypatch.undo()
    assert finish(folder) == undisturbed

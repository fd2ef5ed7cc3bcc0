"""Locks: kept until the file is closed, and what the package says where there are none."""

import subprocess
import sys

import pytest

from lser import files, locks
from lser.experiments.owner import Owner, owned
from lser.online.folder_store import FolderStore
from lser.online.sqlite_log import SqliteLog


def test_one_at_a_time_until_it_is_closed(tmp_path):
    with (tmp_path / "x").open("w") as first, (tmp_path / "x").open() as second:
        assert locks.try_lock(first)
        assert locks.try_lock(first)  # it is its own
        assert not locks.try_lock(second)
        assert not locks.try_lock(second.fileno(), shared=True)
        first.close()
        locks.wait_for_lock(second)
        with (tmp_path / "x").open() as third:
            assert not locks.try_lock(third)


def test_shared_locks_let_each_other_in(tmp_path):
    (tmp_path / "x").touch()
    with (tmp_path / "x").open() as first, (tmp_path / "x").open() as second:
        assert locks.try_lock(first, shared=True)
        assert locks.try_lock(second, shared=True)
        assert not locks.try_lock(second)


def test_a_dead_process_has_no_lock(tmp_path):
    code = "import os, sys; from lser.locks import try_lock; file = open(sys.argv[1], 'w')\n"
    code += "assert try_lock(file); os._exit(0)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "x")], check=True)
    with (tmp_path / "x").open() as file:
        assert locks.try_lock(file)


@pytest.fixture
def without(monkeypatch):
    """A system without such locks."""
    monkeypatch.setattr(locks, "fcntl", None)
    monkeypatch.setattr(locks, "AVAILABLE", False)


def test_without_locks_files_are_saved_and_nothing_of_others_is_swept(without, tmp_path):
    scratch = tmp_path / ".a.lser.0123456789abcdef"
    scratch.write_bytes(b"half")
    files.save(tmp_path / "a.lser", "kind", files.State({"a": 1}, {}))
    files.sweep(tmp_path)
    assert files.load(tmp_path / "a.lser")[1].config == {"a": 1}
    assert scratch.exists()  # nobody can say whether it is being written


def test_without_locks_runs_have_folders_and_nobody_is_kept_out(without, tmp_path):
    with Owner(tmp_path):
        assert not owned(tmp_path)
        Owner(tmp_path).release()


def test_without_locks_a_shop_in_a_folder_is_refused(without, tmp_path):
    with pytest.raises(ValueError, match="the log of .* needs locks on files"):
        SqliteLog(tmp_path)
    with pytest.raises(ValueError, match="the learner of .* needs locks on files"):
        FolderStore(tmp_path).lease()
    assert not list(tmp_path.iterdir())


IMPORTS = """
import sys
sys.modules["fcntl"] = None
import lser, lser.files, lser.locks, lser.cli, lser.experiments.run, lser.replay
import lser.online.recommender, lser.online.folder_store, lser.ray.warm
assert not lser.locks.AVAILABLE
print("imported")
"""


def test_the_package_can_be_imported_without_locks():
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True)
    assert done.stdout == "imported\n", done.stderr


def test_there_is_one_place_that_knows_of_the_system_s_locks():
    from pathlib import Path

    source = Path(locks.__file__).parent
    knowing = {str(p.relative_to(source)) for p in source.rglob("*.py") if "fcntl" in p.read_text()}
    assert knowing == {"locks.py"}

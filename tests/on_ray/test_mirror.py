"""A folder's changes as data, and the same folder elsewhere."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

from lser.ray.desk import Desk
from lser.ray.mirror import Changes, Mirror, apply, scratch_folder, whole


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def files(folder):
    return {
        p.relative_to(folder).as_posix(): p.read_text() for p in folder.rglob("*.*") if p.is_file()
    }


@pytest.fixture
def there(tmp_path):
    write(tmp_path / "there" / "curve.jsonl", "1\n")
    write(tmp_path / "there" / "checkpoints" / "000000000001.lser", "one")
    write(tmp_path / "there" / ".owner", "me")
    return tmp_path / "there"


def test_the_first_changes_are_everything_but_scratch(there, tmp_path):
    write(there / "checkpoints" / ".000000000002.lser.ab", "half")
    apply(tmp_path / "here", whole(there))
    assert files(tmp_path / "here") == {
        "curve.jsonl": "1\n",
        "checkpoints/000000000001.lser": "one",
    }


def test_later_changes_are_only_what_changed(there, tmp_path):
    mirror = Mirror(there)
    apply(tmp_path / "here", mirror.changes())
    assert mirror.changes().written == {}
    write(there / "curve.jsonl", "1\n2\n")
    changes = mirror.changes()
    assert list(changes.written) == ["curve.jsonl"]
    apply(tmp_path / "here", changes)
    assert (tmp_path / "here" / "curve.jsonl").read_text() == "1\n2\n"
    mirror.forget()
    assert set(mirror.changes().written) == changes.kept


def test_a_replaced_checkpoint_goes_and_nothing_else_does(there, tmp_path):
    here, mirror = tmp_path / "here", Mirror(there)
    write(here / "own.txt", "of somebody")
    apply(here, mirror.changes())
    (there / "checkpoints" / "000000000001.lser").unlink()
    write(there / "checkpoints" / "000000000002.lser", "two")
    changes = mirror.changes()
    assert changes.checkpoint == "checkpoints/000000000002.lser"
    apply(here, changes)
    assert files(here) == {
        "curve.jsonl": "1\n",
        "checkpoints/000000000002.lser": "two",
        "own.txt": "of somebody",
    }


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", "..\\x"])
def test_no_file_lands_outside_the_folder(name, tmp_path):
    with pytest.raises(ValueError, match="no file"):
        apply(tmp_path, Changes({name: np.zeros(1, np.uint8)}, frozenset([name])))


def test_reports_that_nobody_took_become_one():
    desk = Desk()
    old, new = np.zeros(1, np.uint8), np.ones(1, np.uint8)
    first = Changes({"a": old, "b": old}, frozenset("ab"))
    assert not desk.report(1, [first])
    assert not desk.report(1, [Changes({"a": new, "c": new}, frozenset("ac"))])
    (both,) = desk.take()[1]
    assert {name: int(found[0]) for name, found in both.written.items()} == {"a": 1, "c": 1}
    assert desk.take() == {}
    desk.stop()
    assert desk.report(1, [first])


def test_folders_of_dead_processes_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    with scratch_folder() as mine:
        root = mine.parent
        dead, young = root / "dead", root / "young"
        write(dead / "x.lser", "")
        write(young / "x.lser", "")
        for old in (dead, mine):
            os.utime(old, (time.time() - 1000,) * 2)
        with scratch_folder():
            assert not dead.exists()
            assert young.exists()
            assert mine.exists()
    assert not Path(mine).exists()

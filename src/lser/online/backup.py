"""Copying a shop while it is served: the log first consistent in itself, then what it explains."""

import shutil
from pathlib import Path

from lser.online import learning
from lser.online.policies import ROOM as POLICIES
from lser.online.sqlite_reader import FILE, SqliteReader
from lser.training import checkpoint


def copy_shop(shop: Path, to: Path) -> int:
    """Copy a shop to a new folder; returns the newest sequence number of the copy.

    Policies and the learner's snapshot are copied before the log, so that the log knows all of
    them. The server's own snapshot is left out: it is folded anew from the log.
    """
    if to.exists():
        raise ValueError(f"{to} exists already")
    reader = SqliteReader(shop)
    to.mkdir(parents=True)
    try:
        for name in (POLICIES, learning.SNAPSHOTS):
            _copy_folder(shop / name, to / name)
        reader.backup(to / FILE)
        copied = SqliteReader(to)
        head = copied.head()
        copied.close()
        _drop_newer(to / learning.SNAPSHOTS, head)
        return head
    except BaseException:
        shutil.rmtree(to, ignore_errors=True)
        raise
    finally:
        reader.close()


def _copy_folder(source: Path, target: Path) -> None:
    """Copy what is there; files that are replaced or deleted meanwhile are passed over."""
    for path in source.rglob("*.lser") if source.exists() else ():
        if path.name.startswith("."):
            continue
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(path, place)
        except FileNotFoundError:
            place.unlink(missing_ok=True)


def _drop_newer(folder: Path, head: int) -> None:
    """A snapshot beyond the log's end would not be a function of it."""
    for path in folder.glob("*.lser"):
        try:
            cursor = checkpoint.load(path)["cursor"]
        except ValueError:
            cursor = head + 1
        if cursor > head:
            path.unlink()

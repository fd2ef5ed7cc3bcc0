"""A record's folder in two places: what changed in one, as data, and its like in the other."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lser.experiments.owner import Owner, owned
from lser.experiments.run import CHECKPOINTS

Bytes = NDArray[np.uint8]  # an array travels through Ray's object store without copies
_OLD = 60.0  # seconds: a folder this old without an owner was left by a process that died


class Changes(NamedTuple):
    """What is new in a folder, and all that there is: what is not kept was removed."""

    written: dict[str, Bytes]
    kept: frozenset[str]

    def then(self, later: "Changes") -> "Changes":
        """Both as one."""
        written = {**self.written, **later.written}
        return Changes({n: b for n, b in written.items() if n in later.kept}, later.kept)

    @property
    def checkpoint(self) -> str:
        """The newest checkpoint that there is, or nothing."""
        found = [name for name in self.kept if name.startswith(f"{CHECKPOINTS}/")]
        return max(found, default="")


class Mirror:
    """Tells what changed in a folder since it was last asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: dict[str, tuple[int, int]] = {}

    def changes(self) -> Changes:
        """The files that are new or other than before; those still being written are left out."""
        written, kept = {}, set()
        for path in _files(self.folder):
            name = path.relative_to(self.folder).as_posix()
            try:
                state = path.stat()
                stamp = state.st_mtime_ns, state.st_size
                if self._seen.get(name) != stamp:
                    written[name] = np.fromfile(path, np.uint8)
            except FileNotFoundError:  # an older checkpoint, just replaced
                continue
            self._seen[name] = stamp
            kept.add(name)
        return Changes(written, frozenset(kept))

    def forget(self) -> None:
        """Tell everything anew the next time."""
        self._seen.clear()


def whole(folder: Path) -> Changes:
    """Everything that is in `folder`."""
    return Mirror(folder).changes()


def apply(folder: Path, changes: Changes) -> None:
    """Make `folder` like the other one; beside that only checkpoints are removed."""
    for name in sorted(changes.written):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name:
            raise ValueError(f"a record has no file {name!r}")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = target.with_name(f".{target.name}.tmp")
        changes.written[name].tofile(scratch)
        os.replace(scratch, target)
    for old in (folder / CHECKPOINTS).glob("*.lser"):
        if old.relative_to(folder).as_posix() not in changes.kept:
            old.unlink(missing_ok=True)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder on this node until the end of the block; those of dead processes are removed."""
    root = Path(tempfile.gettempdir()) / f"lser-ray-{os.getuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    for old in root.iterdir():
        with suppress(FileNotFoundError):  # somebody else removed it
            if time.time() - old.stat().st_mtime > _OLD and not owned(old):
                shutil.rmtree(old, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(dir=root))
    try:
        with Owner(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _files(folder: Path) -> list[Path]:
    """All but scratch files and the mark of the owner, which begin with a dot."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in found if not path.name.startswith(".")]

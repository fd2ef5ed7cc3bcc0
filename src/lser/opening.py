"""Opening files that others may have left: no waiting at a pipe, no writing through a link."""

import os
import stat
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import Literal

NO_WAITING = getattr(os, "O_NONBLOCK", 0)
NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def open_plain(path: str | Path) -> BufferedReader:
    """A file to read from; ValueError for a pipe or a device, which might never end."""
    file = open(path, "rb", opener=_at_once)  # noqa: SIM115  # the caller closes it
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ValueError(f"{path} is no plain file")
    return file


def read_text(path: str | Path) -> str:
    """The text of a plain file, in UTF-8 whatever the locale."""
    with open_plain(path) as file:
        return file.read().decode()


def open_own(path: str | Path, mode: Literal["a", "x"]) -> TextIOWrapper:
    """A text file to write in a folder that may be a stranger's: a link there is refused."""
    return open(path, mode, encoding="utf-8", opener=_no_link)


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | NO_WAITING)


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | NO_WAITING | NO_LINK, 0o666)

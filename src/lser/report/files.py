"""Writing a report's folder: whole files only, and nothing left over from an earlier report."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

LISTING = "files.json"  # what the last report wrote, so that the next can remove what it does not
_OURS = re.compile(r"(?:(?:figures|tables)/)?[a-z0-9][a-z0-9.-]*\.(?:svg|png|csv|md|html|json)")


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Writes ``files`` (by their path in ``folder``), and removes what the last report left.

    Only files that an earlier report listed are removed. A reader sees each file whole, the old one
    or the new one; ``index.html`` comes last.
    """
    wrong = [name for name in files if not _OURS.fullmatch(name)]
    if wrong:
        raise ValueError(f"files holds {wrong[0]!r}, which is no name inside a report")
    before = _listed(folder)
    for name in sorted(files, key=lambda name: name == "index.html"):
        _replace(folder / name, files[name])
    _replace(folder / LISTING, json.dumps(sorted(files), indent=0) + "\n")
    for name in before - set(files):
        (folder / name).unlink(missing_ok=True)


def _listed(folder: Path) -> set[str]:
    try:
        names = json.loads((folder / LISTING).read_text())
    except (OSError, ValueError):
        return set()
    kept = names if isinstance(names, list) else []
    return {name for name in kept if isinstance(name, str) and _OURS.fullmatch(name)}


def _replace(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_bytes(content.encode() if isinstance(content, str) else content)
    os.replace(scratch, path)

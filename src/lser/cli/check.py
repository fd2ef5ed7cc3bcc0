"""``lser check``: whether files and records are whole; it reads anything and changes nothing."""

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple

import tyro

from lser import files
from lser.catalogue import MEMORIES
from lser.experiments import records
from lser.report.naming import clean


class Finding(NamedTuple):
    """What was found at a place."""

    where: str
    what: str
    whole: bool


def check(argv: list[str]) -> int:
    """Check files and records."""
    return int(tyro.cli(_check, args=argv, prog="lser check"))


def _check(path: Annotated[Path, tyro.conf.Positional], /) -> int:
    """Say what is whole: a saved memory, agent or checkpoint, a record, or a folder of them.

    Nothing is written, and nothing in what is read can do more than be called damaged.

    example: lser check runs

    Args:
        path: A file, a record, or a folder that holds any of them.
    """
    if not path.exists():
        raise ValueError(f"{path} does not exist")
    found = list(findings(path))
    for finding in found:
        verdict = "whole" if finding.whole else "DAMAGED"
        print(f"{verdict:8}{clean(finding.where)}: {clean(finding.what)}")
    damaged = sum(not finding.whole for finding in found)
    print(f"{len(found) - damaged} whole, {damaged} damaged", file=sys.stderr)
    return 1 if damaged or not found else 0


def findings(path: Path) -> Iterator[Finding]:
    """Look at a file, or at everything under a folder."""
    if path.is_file():
        if path.name.endswith(records.PACKED.removeprefix("*")):
            yield from map(_record, records.find(path))
        else:
            yield _file(path)
        return
    yield from map(_record, records.find(path))
    for file in sorted(path.rglob("*.lser")):
        if file.is_file():
            yield _file(file)


def _record(record: records.Record) -> Finding:
    if record.status == "damaged":
        return Finding(record.where, str(record.meta.get("error", "")), False)
    if record.status == "done" and record.final is None:
        return Finding(record.where, "a finished record without a final evaluation", False)
    words = f"record, {record.status}, {len(record.curve)} evaluations"
    return Finding(record.where, words, True)


def _file(path: Path) -> Finding:
    try:
        return Finding(str(path), _contents(path), True)
    except (ValueError, OSError, MemoryError, RecursionError) as error:
        return Finding(str(path), str(error), False)


def _contents(path: Path) -> str:
    """What a file holds, all of it having been read; ValueError says what is wrong with it."""
    kind, state = files.load(path, mapped=("rows",))
    if kind in MEMORIES.own:
        from lser.replay.loading import rebuild

        memmap = state.part("store").config.get("storage") == "memmap"
        with TemporaryDirectory() as folder:
            rows = Path(folder) / "rows" if memmap else None
            memory = rebuild(path, MEMORIES.own[kind].load(), state, rows)
            return f"{kind} memory, {len(memory):,} of {memory.capacity:,} transitions"
    if kind == "checkpoint":
        from lser.training import checkpoint

        return f"checkpoint of {', '.join(sorted(map(str, checkpoint.load(path))))}"
    from lser.agents.saved import KINDS, load_agent

    if kind in KINDS:
        load_agent(path, device="cpu")
        return f"{kind} agent"
    return f"{kind!r}, of another program: {len(state.arrays)} arrays, checksums right"

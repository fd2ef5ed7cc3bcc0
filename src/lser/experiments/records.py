"""A record is what one run left: its experiment, where it ran, its curve and its final score.

What cannot be read is a record too, of status ``"damaged"``: it is listed, and the rest goes on.
"""

import gzip
import io
import json
import math
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lser.experiments.owner import owned
from lser.opening import open_plain, read_text

EXPERIMENT, META, CURVE = "experiment.json", "meta.json", "curve.jsonl"
FINAL, TIMES = "final.json", "times.json"
PACKED = "*.jsonl.gz"
MOST_BYTES = 16 << 20  # of a JSON file, or of a line of a packed one: many times a long run's
MOST_PACKED = 1 << 30  # of a packed file when it is unpacked
MOST_RECORDS = 100_000  # of a packed file


@dataclass(frozen=True)
class Record:
    """One run, read from its folder or from a line of a packed file."""

    path: Path
    experiment: dict[str, Any]
    meta: dict[str, Any] = field(default_factory=dict)
    curve: list[dict[str, float]] = field(default_factory=list)
    final: dict[str, Any] | None = None
    line: int = 0
    """Its line in a packed file, from 1; 0 for a folder."""

    @property
    def where(self) -> str:
        """The folder, or the file and the line."""
        return f"{self.path}:{self.line}" if self.line else str(self.path)

    @property
    def study(self) -> str:
        """The study the run belongs to; empty for a run of its own."""
        return str(self.experiment.get("study") or "")

    @property
    def label(self) -> str:
        """The name of the run's cell within its study, by default the memory's."""
        return str(self.experiment.get("label") or self.memory)

    @property
    def simulator(self) -> str:
        """The simulator's name."""
        return self._name_of("simulator")

    @property
    def memory(self) -> str:
        """The memory's name."""
        return self._name_of("memory")

    @property
    def agent(self) -> str:
        """The agent's name."""
        return self._name_of("agent")

    @property
    def seed(self) -> int:
        """The seed: the unit of replication."""
        return int(self.experiment.get("seed", 0))

    @property
    def status(self) -> str:
        """``"running"``, ``"stopped"``, ``"done"``, ``"failed"``, ``"died"`` or ``"damaged"``."""
        return str(self.meta.get("status", "running"))

    @property
    def shared(self) -> bool:
        """Whether it ran in a fleet, so that its times are not its own."""
        return "engine" in self.meta

    @property
    def metric(self) -> str:
        """The name of the simulator's own score: ctr, quality or reward_per_step."""
        return str(self.experiment.get("metric") or self.meta.get("metric") or "metric")

    def _name_of(self, part: str) -> str:
        named = self.experiment.get(part)
        return str(named["name"]) if named else ""  # a damaged record has none


def load(path: Path | str) -> Record:
    """Reads the record in folder ``path``; parts that are not yet written are left empty."""
    folder = Path(path)
    if not (folder / EXPERIMENT).is_file():
        raise ValueError(f"path={str(folder)!r} is no record: it has no {EXPERIMENT}")
    final = _read(folder / FINAL)
    if final is not None:
        final["times"] = _read(folder / TIMES) or {}
    record = Record(
        path=folder,
        experiment=_read(folder / EXPERIMENT) or {},
        meta=_with_status(_read(folder / META) or {}, folder),
        curve=_read_lines(folder / CURVE),
        final=final,
    )
    return _checked(record)


def _with_status(meta: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What is ``"running"`` without a process that owns the folder has died."""
    if meta.get("status", "running") == "running" and not owned(folder):
        return {**meta, "status": "died"}
    return meta


def find(root: Path | str) -> list[Record]:
    """Reads every record under ``root``: folders and packed files, in an order of their content.

    What cannot be read is in the list with the status ``"damaged"`` and the reason as its error.
    """
    base = Path(root)
    if not base.exists():
        raise ValueError(f"root={str(base)!r} does not exist")
    if base.is_file():
        return ordered(_unpack(base))
    records = [read(file.parent) for file in sorted(base.rglob(EXPERIMENT))]
    for file in sorted(base.rglob(PACKED)):
        records += _unpack(file)
    return ordered(records)


def read(folder: Path) -> Record:
    """The record in ``folder``, or what stands for one that cannot be read."""
    try:
        return load(folder)
    except (ValueError, OSError) as error:
        return damaged(folder, str(error))


def is_done(folder: Path) -> bool:
    """Whether ``folder`` holds a finished record."""
    return (folder / EXPERIMENT).exists() and read(folder).status == "done"


def damaged(path: Path, why: str, line: int = 0) -> Record:
    """What stands in the list for a record that cannot be read."""
    return Record(path=path, experiment={}, meta={"status": "damaged", "error": why}, line=line)


def pack(records: Iterable[Record], path: Path | str) -> Path:
    """Writes ``records`` to one gzipped file of JSON lines; equal records give equal bytes."""
    target = Path(path)
    lines = [
        _canonical(
            {
                "experiment": record.experiment,
                "meta": record.meta,
                "curve": record.curve,
                "final": record.final,
            }
        )
        for record in ordered(records)
    ]
    buffer = io.BytesIO()
    # mtime 0 and no file name: gzip would otherwise store both in its header.
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=9, mtime=0) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(buffer.getvalue())
    return target


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def ordered(records: Iterable[Record]) -> list[Record]:
    """Sorts by content and not by path, so that moving records changes nothing downstream."""
    return sorted(
        records,
        key=lambda r: (
            r.study,
            r.simulator,
            r.label,
            r.seed,
            _canonical(r.experiment),
            _canonical(r.meta),
            str(r.path) if r.status == "damaged" else "",
            r.line if r.status == "damaged" else 0,
        ),
    )


def _unpack(path: Path) -> list[Record]:
    found: list[Record] = []
    left = MOST_PACKED
    try:
        with open_plain(path) as packed, gzip.open(packed) as file:
            while line := file.readline(min(MOST_BYTES, left) + 1):
                left -= len(line)
                if len(line) > MOST_BYTES or left < 0 or len(found) >= MOST_RECORDS:
                    raise ValueError(f"it is too large, unpacked: stopped at line {len(found) + 1}")
                found.append(_unpack_line(path, len(found) + 1, line))
    except (OSError, EOFError, ValueError, zlib.error) as error:
        return [damaged(path, f"path={str(path)!r} is no packed file of records: {error}")]
    return found


def _unpack_line(path: Path, number: int, line: bytes) -> Record:
    try:
        fields = json.loads(line)
        kept = {name: fields[name] for name in ("experiment", "meta", "curve", "final")}
        return _checked(Record(path=path, **kept, line=number))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        return damaged(path, f"line {number} of {str(path)!r} is no record: {error}", number)


def _checked(record: Record) -> Record:
    """``record`` if everything in it has its kind, so that no reader needs to look again."""
    for part in ("simulator", "memory", "agent"):
        named = record.experiment.get(part) if isinstance(record.experiment, dict) else None
        if not isinstance(named, dict) or not isinstance(named.get("name"), str):
            raise ValueError(f"{record.where}: its experiment has no {part} with a name")
    seed = record.experiment.get("seed")
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise ValueError(f"{record.where}: seed={seed!r} is no whole number")
    if not isinstance(record.meta, dict):
        raise ValueError(f"{record.where}: {META} holds no object")
    if not isinstance(record.curve, list):
        raise ValueError(f"{record.where}: its curve is no list")
    for line in record.curve:
        _check_scores(record, line, ("sessions", "metric", *_names(line)))
    if record.final is not None:
        _check_scores(record, record.final, ("metric", *_names(record.final)))
        times = record.final.get("times") or {}
        _check_scores(record, times, tuple(times))
    return record


def _names(line: Any) -> list[str]:
    """The names of the numbers in an evaluation."""
    known = line if isinstance(line, dict) else {}
    return [name for name in known if name not in ("memory", "times")]


def _check_scores(record: Record, line: Any, names: tuple[str, ...]) -> None:
    if not isinstance(line, dict):
        raise ValueError(f"{record.where}: {str(line)[:40]!r} is no evaluation")
    for name in names:
        value = line.get(name)
        if not isinstance(value, int | float) or (isinstance(value, int) and abs(value) > 1 << 63):
            raise ValueError(f"{record.where}: {name}={str(value)[:40]!r} is no number")
        if name == "sessions" and not math.isfinite(value):
            raise ValueError(f"{record.where}: {name}={value} is no count")


def _read(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    value = _json(path, lambda: read_text(path))
    if not isinstance(value, dict):
        raise ValueError(f"path={str(path)!r} holds no JSON object")
    return value


def _read_lines(path: Path) -> list[dict[str, float]]:
    """Reads JSON lines; a last line without its newline is still being written and is left out."""
    if not path.is_file():
        return []
    lines = _json(path, lambda: "[" + ",".join(_whole_lines(path)) + "]")
    assert isinstance(lines, list)
    return lines


def _whole_lines(path: Path) -> list[str]:
    return [line for line in read_text(path).split("\n")[:-1] if line]


def _json(path: Path, text: Callable[[], str]) -> Any:
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"path={str(path)!r} is too large: {path.stat().st_size:,} bytes")
    try:
        return json.loads(text())
    except (ValueError, RecursionError) as error:  # bytes that are no text are ValueErrors too
        raise ValueError(f"path={str(path)!r} is not JSON: {error}") from error

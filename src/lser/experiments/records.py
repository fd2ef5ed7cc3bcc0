"""A record is what one run left: its experiment, where it ran, its curve and its final score."""

import gzip
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EXPERIMENT, META, CURVE = "experiment.json", "meta.json", "curve.jsonl"
FINAL, TIMES = "final.json", "times.json"
PACKED = "*.jsonl.gz"


@dataclass(frozen=True)
class Record:
    """One run, read from its folder or from a line of a packed file."""

    path: Path
    experiment: dict[str, Any]
    meta: dict[str, Any] = field(default_factory=dict)
    curve: list[dict[str, float]] = field(default_factory=list)
    final: dict[str, Any] | None = None

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
        return str(self.experiment["simulator"]["name"])

    @property
    def memory(self) -> str:
        """The memory's name."""
        return str(self.experiment["memory"]["name"])

    @property
    def agent(self) -> str:
        """The agent's name."""
        return str(self.experiment["agent"]["name"])

    @property
    def seed(self) -> int:
        """The seed: the unit of replication."""
        return int(self.experiment["seed"])

    @property
    def status(self) -> str:
        """``"running"``, ``"done"`` or ``"failed"``."""
        return str(self.meta.get("status", "running"))

    @property
    def shared(self) -> bool:
        """Whether it ran in a fleet, so that its times are not its own."""
        return "engine" in self.meta

    @property
    def metric(self) -> str:
        """The name of the simulator's own score: ctr, quality or reward_per_step."""
        return str(self.experiment.get("metric") or self.meta.get("metric") or "metric")


def load(path: Path | str) -> Record:
    """Reads the record in folder ``path``; parts that are not yet written are left empty."""
    folder = Path(path)
    if not (folder / EXPERIMENT).is_file():
        raise ValueError(f"path={str(folder)!r} is no record: it has no {EXPERIMENT}")
    final = _read(folder / FINAL)
    if final is not None:
        final["times"] = _read(folder / TIMES) or {}
    return Record(
        path=folder,
        experiment=_read(folder / EXPERIMENT) or {},
        meta=_read(folder / META) or {},
        curve=_read_lines(folder / CURVE),
        final=final,
    )


def find(root: Path | str) -> list[Record]:
    """Reads every record under ``root``: folders and packed files, in an order of their content."""
    base = Path(root)
    if not base.exists():
        raise ValueError(f"root={str(base)!r} does not exist")
    if base.is_file():
        return ordered(_unpack(base))
    records = [load(file.parent) for file in sorted(base.rglob(EXPERIMENT))]
    for file in sorted(base.rglob(PACKED)):
        records += _unpack(file)
    return ordered(records)


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
        ),
    )


def _unpack(path: Path) -> list[Record]:
    try:
        text = gzip.decompress(path.read_bytes()).decode()
        return [Record(path=path, **json.loads(line)) for line in text.splitlines()]
    except (OSError, EOFError, ValueError, TypeError) as error:
        raise ValueError(f"path={str(path)!r} is no packed file of records: {error}") from error


def _read(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        value: dict[str, Any] = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"path={str(path)!r} is not JSON: {error}") from error
    return value


def _read_lines(path: Path) -> list[dict[str, float]]:
    """Reads JSON lines; a last line without its newline is still being written and is left out."""
    if not path.is_file():
        return []
    lines = path.read_text().split("\n")[:-1]
    try:
        return [json.loads(line) for line in lines if line]
    except ValueError as error:
        raise ValueError(f"path={str(path)!r} holds a line that is not JSON: {error}") from error

"""Writing a record: the files of one run, appended as it goes.

``curve.jsonl`` and ``final.json`` depend on the experiment alone, so an interrupted and resumed
run leaves the same bytes; when and how fast it ran is in ``meta.json`` and ``times.json``.
"""

import json
import os
import platform
import subprocess
import sys
import traceback
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lser import __version__
from lser.experiments.experiment import from_json, to_json
from lser.experiments.records import CURVE, EXPERIMENT, FINAL, META, TIMES
from lser.files import sync_folder
from lser.opening import open_own, read_text

PACKAGES = ("numpy", "numba", "torch", "gymnasium")


class Recorder:
    """Keeps the record of one run in `folder`."""

    def __init__(self, folder: Path, experiment: dict[str, Any], command: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.curve: list[str] = []  # its lines
        self.last_line: dict[str, float] | None = None  # the last evaluation
        part = {"started": _now(), "versions": _versions(), "git_commit": _git_commit()}
        self.meta: dict[str, Any] = {
            "command": command,
            **part,
            "machine": _machine(),
            "finished": None,
            "error": None,
            "parts": [*_parts(folder), part],
        }
        self.meta["started"] = self.meta["parts"][0]["started"]
        existing = folder / EXPERIMENT
        if not existing.exists():
            write_json(existing, experiment)
        elif not _same(_read(existing), experiment):
            raise ValueError(f"{folder} holds the record of another experiment")

    def begin(self, metric: str) -> None:
        """Mark the run as under way."""
        self._status("running", metric=metric)

    def append(self, line: dict[str, float]) -> None:
        """Add one evaluation to the curve."""
        self.curve.append(json.dumps(line))
        self.last_line = dict(line)
        with open_own(self.folder / CURVE, "a") as file:
            file.write(self.curve[-1] + "\n")

    def keep(self, curve: list[str]) -> None:
        """Continue from this curve: what came later will be run again."""
        path = self.folder / CURVE
        write_text(path, "".join(f"{line}\n" for line in curve))
        self.curve = list(curve)
        self.last_line = json.loads(curve[-1]) if curve else None

    def begin_anew(self) -> None:
        """Forget an earlier run of the same experiment."""
        for name in (FINAL, TIMES):
            (self.folder / name).unlink(missing_ok=True)
        self.meta["parts"] = self.meta["parts"][-1:]
        self.meta["started"] = self.meta["parts"][0]["started"]
        self.keep([])

    def pause(self) -> None:
        """Mark the run as stopped on request; it can be resumed."""
        self._status("stopped")

    def fail(self, error: BaseException) -> None:
        """Keep the traceback of what ended the run."""
        self._status("failed", error="".join(traceback.format_exception(error)))

    def finish(
        self, final: dict[str, float], times: dict[str, float], memory: dict[str, float]
    ) -> None:
        """Write the final evaluation, where the time went, and the memory's own numbers."""
        write_text(self.folder / CURVE, "".join(f"{line}\n" for line in self.curve))
        write_json(self.folder / FINAL, {**final, "memory": memory})
        write_json(self.folder / TIMES, times)
        self._status("done", finished=_now())

    def _status(self, status: str, **more: Any) -> None:
        self.meta.update(status=status, **more)
        write_json(self.folder / META, self.meta)


def write_json(path: Path, value: Any, *, sync: bool = True) -> None:
    """Write `value` so that a reader sees the old file or the new one, never half of it."""
    write_text(path, json.dumps(value, indent=1) + "\n", sync=sync)


def write_text(path: Path, text: str, *, sync: bool = True) -> None:
    """Replace a file of a record; with `sync` a loss of power leaves the old or the new one too."""
    scratch = path.with_name(f".{path.name}.tmp")  # one name: a record has one owner
    scratch.unlink(missing_ok=True)  # of a process that died, or of somebody else
    with open_own(scratch, "x") as file:
        file.write(text)
        if sync:
            file.flush()
            os.fsync(file.fileno())
    os.replace(scratch, path)
    if sync:
        sync_folder(path.parent)


def _read(path: Path) -> Any:
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None


def _parts(folder: Path) -> list[dict[str, Any]]:
    """When, and with which versions, the earlier parts of a run were carried out."""
    try:
        meta = _read(folder / META)
    except (OSError, ValueError):
        return []
    parts = meta.get("parts") if isinstance(meta, dict) else None
    listed = parts if isinstance(parts, list) else []
    return [part for part in listed if isinstance(part, dict) and "started" in part]


def _same(held: Any, experiment: dict[str, Any]) -> bool:
    """Whether a record is of this experiment; a setting that is newer than it has its default."""
    plain = json.loads(json.dumps(experiment))
    if held == plain:
        return True
    try:
        return bool(json.loads(json.dumps(to_json(from_json(dict(held))))) == plain)
    except (ValueError, TypeError, KeyError):
        return False


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@cache
def _versions() -> dict[str, str]:
    found = {name: version(name) for name in PACKAGES}
    return {"python": platform.python_version(), "lser": __version__, **found}


@cache
def _machine() -> dict[str, Any]:
    return {
        "system": platform.system(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": sys.implementation.name,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


@cache
def _git_commit() -> str | None:
    """The commit of the checkout this package runs from, if it runs from one."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()

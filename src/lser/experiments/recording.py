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
from lser.experiments.records import CURVE, EXPERIMENT, FINAL, META, TIMES

PACKAGES = ("numpy", "numba", "torch", "gymnasium")


class Recorder:
    """Keeps the record of one run in `folder`."""

    def __init__(self, folder: Path, experiment: dict[str, Any], command: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.lines = 0
        self.last_line: dict[str, float] | None = None
        self.meta: dict[str, Any] = {
            "command": command,
            "versions": _versions(),
            "git_commit": _git_commit(),
            "machine": _machine(),
            "started": _now(),
            "finished": None,
            "error": None,
        }
        existing = folder / EXPERIMENT
        if existing.exists() and json.loads(existing.read_text()) != _plain(experiment):
            raise ValueError(f"{folder} holds the record of another experiment")
        write_json(existing, experiment)

    def begin(self, metric: str) -> None:
        """Mark the run as under way."""
        self._status("running", metric=metric)

    def append(self, line: dict[str, float]) -> None:
        """Add one evaluation to the curve."""
        with (self.folder / CURVE).open("a") as file:
            file.write(json.dumps(line) + "\n")
        self.lines += 1
        self.last_line = line

    def keep(self, lines: int) -> None:
        """Cut the curve back to its first `lines`: what came later will be run again."""
        path = self.folder / CURVE
        kept = path.read_text().splitlines()[:lines] if path.exists() else []
        if len(kept) < lines:
            raise ValueError(f"{path} has {len(kept)} lines, its checkpoint expects {lines}")
        scratch = path.with_suffix(".tmp")
        scratch.write_text("".join(f"{line}\n" for line in kept))
        os.replace(scratch, path)
        self.lines = lines
        self.last_line = json.loads(kept[-1]) if kept else None

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
        write_json(self.folder / FINAL, {**final, "memory": memory})
        write_json(self.folder / TIMES, times)
        self._status("done", finished=_now())

    def _status(self, status: str, **more: Any) -> None:
        self.meta.update(status=status, **more)
        write_json(self.folder / META, self.meta)


def write_json(path: Path, value: Any) -> None:
    """Write `value` so that a reader sees the old file or the new one, never half of it."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_text(json.dumps(value, indent=1) + "\n")
    os.replace(scratch, path)


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


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

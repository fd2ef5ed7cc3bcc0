"""Checks before a run starts: does the memory fit?"""

import os
from pathlib import Path
from typing import Any

from lser.params import MemoryParams

CGROUPS = Path("/sys/fs/cgroup")
_VERSION1 = ("memory.limit_in_bytes", "memory.usage_in_bytes")
_MARGIN = 1.05  # for what does not grow with the capacity, as open sessions


def replay_bytes(capacity: int, observation_dim: int, action_dim: int, memory: Any = None) -> int:
    """Bytes that a full memory with the settings `memory` takes; without them, most memories."""
    settings = memory if isinstance(memory, MemoryParams) else MemoryParams()
    row = 4 * (2 * observation_dim + action_dim + 3)
    return int(_MARGIN * capacity * (row + settings.slot_bytes(observation_dim)))


def available_bytes() -> int:
    """Memory that a new process can use without swapping: the machine's, or the container's."""
    return min([_machine_bytes(), *_container_bytes(Path("/proc/self/cgroup"), CGROUPS)])


def _machine_bytes() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    fields = dict(line.split(":", 1) for line in lines)
    return int(fields["MemAvailable"].split()[0]) * 1024


def _container_bytes(listing: Path, root: Path) -> list[int]:
    """What the limits of this process's control groups leave, from its own to the outermost."""
    try:
        lines = [line.split(":", 2) for line in listing.read_text().splitlines()]
    except OSError:
        return []
    left = []
    for _, controllers, name in (line for line in lines if len(line) == 3):
        version2 = controllers == ""
        if not version2 and "memory" not in controllers.split(","):
            continue
        base = root if version2 else root / "memory"
        files = ("memory.max", "memory.current") if version2 else _VERSION1
        inside = base / name.strip("/")
        for folder in (inside, *inside.parents):
            left += _left(folder, *files)
            if folder == base:
                break
    return left


def _left(folder: Path, limit: str, used: str) -> list[int]:
    try:
        most = (folder / limit).read_text().strip()
        return [] if most == "max" else [max(int(most) - int((folder / used).read_text()), 0)]
    except (OSError, ValueError):
        return []


def check_memory(
    capacity: int, observation_dim: int, action_dim: int, memory: Any = None, *, runs: int = 1
) -> None:
    """Refuse a capacity that does not fit, so many runs side by side, before any is trained."""
    needed = runs * replay_bytes(capacity, observation_dim, action_dim, memory)
    available = available_bytes()
    if needed > available:
        several = f" in {runs} runs side by side" if runs > 1 else ""
        fewer = "; fewer --workers need less" if runs > 1 else ""
        raise MemoryError(
            f"capacity {capacity:,}{several} needs {needed / 2**30:.1f} GiB for observations of "
            f"{observation_dim} and actions of {action_dim} numbers; "
            f"{available / 2**30:.1f} GiB are available{fewer}"
        )

"""Checks before a run starts: does the memory fit?"""

import os
from pathlib import Path

INDEX_SHARE = 1.1  # the index on top of the packed rows is under a tenth of them


def replay_bytes(capacity: int, observation_dim: int, action_dim: int) -> int:
    """Bytes that a full memory takes."""
    return int(INDEX_SHARE * capacity * 4 * (2 * observation_dim + action_dim + 3))


def available_bytes() -> int:
    """Memory that a new process can use without swapping."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    fields = dict(line.split(":", 1) for line in lines)
    return int(fields["MemAvailable"].split()[0]) * 1024


def check_memory(capacity: int, observation_dim: int, action_dim: int) -> None:
    """Refuse a capacity that does not fit, before anything is trained."""
    needed = replay_bytes(capacity, observation_dim, action_dim)
    available = available_bytes()
    if needed > available:
        raise MemoryError(
            f"capacity {capacity:,} needs {needed / 2**30:.1f} GiB for observations of "
            f"{observation_dim} and actions of {action_dim} numbers; "
            f"{available / 2**30:.1f} GiB are available"
        )

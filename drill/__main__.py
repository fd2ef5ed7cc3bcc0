"""``make drill``: faults on purpose, then one line of counts for each; non-zero if any did harm.

``python -m drill --short`` is the version of a minute that the tests run.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from drill import faults

try:
    from drill import online
except ModuleNotFoundError as error:  # the extra online is not installed
    online, missing = None, error


class Part(NamedTuple):
    """A kind of fault: what is done, and how often in the long and in the short version."""

    name: str
    work: Callable[[Path, int], faults.Count]
    long: int
    short: int


PARTS = (
    Part("kills during a save", faults.kill_saves, 130, 6),
    Part("kills during training", faults.kill_training, 62, 2),
    Part("kills of a study and its parent", faults.kill_studies, 9, 1),
    Part("damaged files", faults.damage_files, 2_000, 150),
    Part("forged files", faults.forge_files, 500, 50),
    Part("full disks", faults.fill_disks, 60, 8),
    Part("failed allocations", faults.fail_allocations, 400, 60),
    Part("two owners of a record", faults.two_owners, 20, 1),
    Part("power lost by dropped writes", faults.drop_writes, 40, 3),
    Part("jumps of the clock", faults.jump_clock, 10, 1),
)


ONLINE = (
    ()
    if online is None
    else (
        Part("kills of server and learner", online.kill_service, 100, 0),
        Part("kills of machines over PostgreSQL", online.kill_machines, 100, 0),
        Part("full disks under the service", online.fill_service, 20, 0),
        Part("locked logs under the service", online.lock_service, 20, 0),
        Part("jumps of the service's clock", online.jump_clocks, 10, 0),
        Part("malformed requests", online.fuzz_service, 10_000, 0),
    )
)


def drill(part: Part, *, short: bool) -> int:
    """Do one kind of fault and print its line; returns how many did harm."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        tried, broken = part.work(Path(folder), part.short if short else part.long)
    seconds = time.monotonic() - began
    print(f"{part.name:34}{tried:6} tried{len(broken):5} did harm{seconds:8.1f} s", flush=True)
    for words in broken[:5]:
        print(f"    {words}", flush=True)
    return len(broken)


def apart(part: Part, *, short: bool) -> int:
    """`drill` in a process of its own: most parts wait for processes half of the time."""
    command = [sys.executable, "-m", "drill", "--part", part.name, *["--short"] * short]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="", flush=True)
    return done.returncode


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m drill", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a minute instead of ten")
    parser.add_argument("--only", metavar="WORD", default="", help="the parts with this word")
    parser.add_argument("--part", metavar="NAME", help="the one part of this name")
    parser.add_argument("--beside", type=int, default=2, help="so many parts at a time")
    options = parser.parse_args()
    if online is None:
        print(f"left out: the online service ({missing})")
    parts = [p for p in (*ONLINE, *PARTS) if options.only in p.name]  # the longest first
    parts = [part for part in parts if (part.short if options.short else part.long)]
    if options.part:
        return int(any(drill(p, short=options.short) for p in parts if p.name == options.part))
    began = time.monotonic()
    with ThreadPoolExecutor(options.beside) as pool:
        failed = sum(map(bool, pool.map(partial(apart, short=options.short), parts)))
    print(f"nothing lost in {time.monotonic() - began:.0f} s" if not failed else f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Memory and disk over millions of decisions with their feedback: both must stay flat.

One process holds the log, the books and the learner, as in `lser.Recommender`; visitors are drawn
from more names than are kept, half of the pages are answered, and retention lets go of old events.
One line of numbers after every part, so that a run that is stopped has told what it saw.

    python benchmarks/online_memory.py [--decisions 10000000] [--out memory.jsonl]
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

GROUP = 250  # decisions in one commit
MOST_BEHIND = 20_000  # events that the learner may be behind before visitors wait
VISITORS = 50_000


def resident():
    """Megabytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def on_disk(folder):
    """Megabytes of a folder's files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def visit(shop, chance, number):
    """One group of pages and the reports on half of them."""
    import orjson

    from lser.online.desk import Request

    entries = [
        shop.desk.decision(Request(f"u{chance.randrange(VISITORS)}", id=f"p{number + place}")).entry
        for place in range(GROUP)
    ]
    shop.log.append(*entries)
    reports = []
    for entry in entries[::2]:
        items = orjson.loads(entry.body)["items"]
        reports.append(shop.desk.report(entry.id, [items[chance.randrange(len(items))]]))
    shop.log.append(*reports)


def run(folder, decisions, part, out):
    """Serve so many decisions; tells of memory and disk after every part."""
    from lser.online import Recommender, Settings, keeper

    keeper.TRIM_EVERY = 20.0  # a day's worth of decisions passes in minutes here
    settings = Settings(
        k=5, candidates=10, window=2.0, session_timeout=60.0, cold="none", visitors=10_000,
        publish_every=10.0, snapshot_every=20.0, pace=0.02, batch_size=16, capacity=20_000,
        retention_events=200_000,
    )  # fmt: skip
    vectors = np.random.default_rng(0).standard_normal((500, 4)).astype(np.float32)
    chance, began = random.Random(0), time.monotonic()
    with Recommender(vectors, folder, settings=settings) as shop:
        done = 0
        while done < decisions:
            visit(shop, chance, done)
            done += GROUP
            while shop.log.head - shop.keeper.learner.get("cursor", 0) > MOST_BEHIND:
                time.sleep(0.05)
            if done % part == 0:
                line = {
                    "decisions": done, "seconds": round(time.monotonic() - began, 1),
                    "resident_mb": round(resident(), 1), "disk_mb": round(on_disk(folder), 1),
                }  # fmt: skip
                out.write(json.dumps(line) + "\n")
                out.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=10_000_000)
    parser.add_argument("--part", type=int, default=50_000)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="lser-memory-"))
    out = arguments.out.open("w") if arguments.out else sys.stdout
    try:
        run(folder, arguments.decisions, arguments.part, out)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

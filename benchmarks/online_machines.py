"""What a shop on PostgreSQL costs: the log's rate, what every server folds, bytes on the way.

Starts a PostgreSQL server of its own (with fsync) and one process; what is compared is measured in
turns. Needs the extras online and postgres and PostgreSQL's server (apt install postgresql).

    PYTHONPATH=. python benchmarks/online_machines.py [--rounds 3] [--out machines.json]
"""

import argparse
import itertools
import json
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from drill.postgres import Server

from lser.online import Recommender, Settings
from lser.online.books import Books
from lser.online.desk import Request
from lser.online.log import Entry
from lser.online.store import open_store

DIM, FEATURES, ITEMS = 32, 30, 5_000
GROUPS = (1, 16, 128)
_names = itertools.count()


def append_rate(logs, group, body, seconds=1.5):
    """Events per second, with each log written by a thread of its own."""
    counts, end = [0] * len(logs), time.monotonic() + seconds

    def write(place):
        while time.monotonic() < end:
            entries = [Entry("decision", f"{next(_names)}", body) for _ in range(group)]
            logs[place].append(*entries)
            counts[place] += group

    threads = [threading.Thread(target=write, args=(place,)) for place in range(len(logs))]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.monotonic() - began)


def folding(shop):
    """Microseconds of processor time for a server to take in a page of another, reports included.

    Also the mean bytes of a page's events.
    """
    events = [e for e in shop._reader.read(0, 50_000) if e.kind in ("decision", "feedback")]
    pages = sum(event.kind == "decision" for event in events)
    books = Books(shop.settings)
    for change in shop._reader.of_kind("items"):
        books.fold([change])
    before = time.thread_time()
    books.fold(events)
    spent = (time.thread_time() - before) / pages * 1e6
    return spent, sum(len(event.body) + 60 for event in events) / pages  # 60: number, time, id


def learner_pace(shop):
    """Pages per second of a learner at pace 1, by processor time."""
    from lser.online.learning import Learning

    class Nowhere:
        def send(self, kind, id, body):
            pass

        def latest(self, room):
            return None

        def save(self, room, number, tree):
            pass

        def forget(self, room, *, newest, keep=()):
            pass

    learning = Learning(Nowhere(), shop._reader, Nowhere())
    learning.step(1_000)
    pages, before = learning.pages, time.thread_time()
    while learning.step():
        pass
    return (learning.pages - pages) / (time.thread_time() - before)


def record(store, pages):
    """A shop with so many pages and reports on half of them, all windows over."""
    settings = Settings(window=0.5, cold="none", publish_every=1e6, snapshot_every=1e6)
    vectors = np.random.default_rng(0).standard_normal((ITEMS, DIM)).astype(np.float32)
    shop = Recommender(vectors, store, features=FEATURES, settings=settings, learner="off")
    for start in range(0, pages, 100):
        asked = [
            shop.desk.decision(Request(f"u{n % 700}", [0.1] * FEATURES))
            for n in range(start, start + 100)
        ]
        shop.log.append(*(one.entry for one in asked))
        reports = [shop.desk.report(a.entry.id, a.body["items"][:1]) for a in asked[::2]]
        shop.log.append(*reports)
    time.sleep(0.6)
    shop.log.append(Entry("tick", None, b"{}"))
    return shop


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", type=int, default=4_000)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    folder, server = Path(tempfile.mkdtemp(prefix="lser-machines-")), Server()
    found = {}
    try:
        shop = record(open_store(server.address("shop")), arguments.pages)
        spent, size = folding(shop)
        found["fold_us_per_page"], found["bytes_per_page"] = spent, size
        found["learner_pages_per_cpu_second"] = learner_pace(shop)
        shop.close()
        body = b"x" * 1_000
        rates = {}
        for turn in range(arguments.rounds):
            database = open_store(server.address(f"rate{turn}"))
            power = open_store(folder / f"power{turn}")
            one, two = database.log("process"), database.log("process")
            sqlite = power.log("power")
            for group in GROUPS:
                for name, logs in (("sqlite", [sqlite]), ("one", [one]), ("two", [one, two])):
                    rate = append_rate(logs, group, body)
                    rates.setdefault(f"{name} x{group}", []).append(round(rate))
            for log in (one, two, sqlite):
                log.close()
            database.close()
        found["events_per_second"] = rates
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(found, indent=1))
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()

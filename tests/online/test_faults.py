"""Killed at any moment, under load: a client's own ledger is the judge.

LSER_KILLS sets how many; the long version asks for 100.
"""

import http.client
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import orjson
import pytest
from replays import Nowhere, copy, finish, recorded
from service_client import Client, running

from lser.online.folder_store import LEASE, FolderShelf
from lser.online.learning import Learning
from lser.online.sqlite_reader import SqliteReader

CLIENTS = 4
KILLS = int(os.environ.get("LSER_KILLS", "4"))


class Ledger(threading.Thread):
    """A client that writes down what was acknowledged, and retries what was not."""

    def __init__(self, name, port, stop):
        super().__init__()
        self.label, self.port, self.stop = name, port, stop
        self.pages, self.reports, self.sent = {}, set(), set()
        self.wrong, self.retries = [], 0

    def run(self):
        client, number = None, 0
        while not self.stop.is_set():
            id = f"{self.label}-{number}"
            body = {"id": id, "user": self.label, "features": [0.1, number % 7 / 7], "k": 4}
            client, page = self.insist(client, "/recommend", body)
            if page is None:
                break
            if self.pages.setdefault(id, page["items"]) != page["items"]:
                self.wrong.append(id)
            if number % 2:
                report = f"report-{id}"
                self.sent.add(report)
                told = {"id": report, "page": id, "clicks": page["items"][:1]}
                client, answer = self.insist(client, "/feedback", told)
                if answer is not None:
                    self.reports.add(report)
            number += 1
        if client is not None:
            client.close()

    def insist(self, client, path, body):
        """Ask until there is an answer: the same id, however often."""
        while not self.stop.is_set():
            try:
                client = client or Client(self.port)
                status, answer = client("POST", path, body)
                if status == 200:
                    return client, answer
            except (OSError, ValueError, http.client.HTTPException):
                pass
            if client is not None:
                client.close()
            client = None
            self.retries += 1
            time.sleep(0.05)
        return client, None


def learner_pid(folder):
    """Who holds the learner's lock, by the system's table of locks."""
    inode = os.stat(folder / LEASE).st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        if fields[5].endswith(f":{inode}"):
            return int(fields[4])
    return None


def drill(folder, kills, seed=0):
    """Kill server and learner in turn under load; returns the clients' ledgers."""
    rng, stop = np.random.default_rng(seed), threading.Event()
    with running(folder) as (supervisor, port):
        ledgers = [Ledger(f"c{n}", port, stop) for n in range(CLIENTS)]
        for ledger in ledgers:
            ledger.start()
        done = 0
        while done < kills:
            time.sleep(float(rng.uniform(0.3, 1.5)))
            pid = supervisor.pid if done % 2 == 0 else learner_pid(folder / "shop")
            if pid is not None:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                done += 1
            if done % 2 == 1:
                assert supervisor.wait_until_ready()
        time.sleep(1.0)
        stop.set()
        for ledger in ledgers:
            ledger.join()
    return ledgers


def judge(folder, ledgers):
    """0 acknowledged lost, 0 counted twice, pages as they were shown."""
    reader = SqliteReader(folder / "shop")
    logged, reports = {}, []
    for event in reader.read(0, 10**7):
        if event.kind == "decision":
            assert event.id not in logged
            logged[event.id] = orjson.loads(event.body)["items"]
        elif event.kind == "feedback":
            reports.append(event.id)
    assert reader.rows("pragma integrity_check", ()) == [("ok",)]
    reader.close()
    assert len(reports) == len(set(reports))
    acknowledged = 0
    for ledger in ledgers:
        assert ledger.wrong == []
        for id, items in ledger.pages.items():
            assert logged[id] == items
        assert ledger.reports <= set(reports)
        acknowledged += len(ledger.pages) + len(ledger.reports)
    return acknowledged


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_and_the_learner_is_the_undisturbed_one(tmp_path):
    ledgers = drill(tmp_path / "run", kills=KILLS)
    assert judge(tmp_path / "run", ledgers) > 50
    assert sum(ledger.retries for ledger in ledgers) > 0
    disturbed = finish(tmp_path / "run" / "shop")  # goes on from its snapshots
    (tmp_path / "calm").mkdir()
    calm = copy(tmp_path / "run" / "shop", tmp_path / "calm")
    for file in (calm / "learner").glob("*.lser"):
        file.unlink()
    assert finish(calm) == disturbed


def test_a_kill_inside_a_snapshot_leaves_the_one_before(tmp_path, monkeypatch):
    """A write that ends halfway, at any of its steps, leaves a learner that goes on the same."""
    from lser.training import checkpoint

    folder = recorded(tmp_path / "shop", pages=120)
    (tmp_path / "calm").mkdir()
    undisturbed = finish(copy(folder, tmp_path / "calm"))

    class Killed(BaseException):
        pass

    real_replace, real_save = os.replace, checkpoint.save
    for broken in ("replace", "after"):

        def replace(source, target, broken=broken):
            if broken == "replace" and "learner" in str(target) and str(target).endswith(".lser"):
                raise Killed
            real_replace(source, target)

        def save(folder, number, tree, broken=broken):
            path = real_save(folder, number, tree)
            if broken == "after" and folder.name == "learner":
                raise Killed
            return path

        monkeypatch.setattr(os, "replace", replace)
        monkeypatch.setattr(checkpoint, "save", save)
        reader = SqliteReader(folder)
        learning = Learning(FolderShelf(folder), reader, Nowhere())
        with pytest.raises(Killed):
            list(iter(lambda learning=learning: learning.step(20), 0))
        reader.close()
        monkeypatch.undo()
    assert finish(folder) == undisturbed

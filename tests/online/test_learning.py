"""The learner is a function of the log: whatever interrupts it, it ends with the same bits."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import orjson
import pytest
from replays import Nowhere, copy, finish, recorded, state
from shops import Shoppers, catalogue, quick, visit

from lser.online import Recommender
from lser.online.folder_store import FolderShelf
from lser.online.learning import Learning
from lser.online.log import Entry
from lser.online.outbox import FolderOutbox, waiting
from lser.online.sqlite_log import SqliteLog
from lser.online.sqlite_reader import SqliteReader
from waiting import LIMIT, until


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return recorded(tmp_path_factory.mktemp("learning") / "shop")


@pytest.fixture(scope="module")
def undisturbed(shop, tmp_path_factory):
    return finish(copy(shop, tmp_path_factory.mktemp("calm")))


def test_it_does_not_matter_how_the_log_is_cut(shop, undisturbed, tmp_path):
    assert finish(copy(shop, tmp_path), steps=7) == undisturbed


def test_every_learner_has_learned(undisturbed):
    learners, _, pages, versions, _ = undisturbed
    assert pages == 260
    assert set(versions) == {"lser", "lser-ddpg", "bandit", "popular"}
    assert learners["lser"]["updates"] > 200
    assert learners["lser-ddpg"]["updates"] > 20


@pytest.mark.parametrize("stops", [1, 4])
def test_stopped_and_started_again_it_goes_on_to_the_same_bits(shop, undisturbed, tmp_path, stops):
    folder = copy(shop, tmp_path)
    for _ in range(stops):
        reader = SqliteReader(folder)
        learning = Learning(FolderShelf(folder), reader, Nowhere())
        learning.step(90)  # snapshots fall where the log's time says, not here
        reader.close()
    assert finish(folder) == undisturbed


RUN = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from lser.online.folder_store import FolderShelf
from lser.online.learning import Learning
from lser.online.outbox import FolderOutbox
from lser.online.sqlite_reader import SqliteReader
folder = Path(sys.argv[1])
learning = Learning(FolderShelf(folder), SqliteReader(folder), FolderOutbox(folder))
print("begun", flush=True)
while learning.step(10):
    print(learning.cursor, flush=True)
"""


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_to_the_same_bits(shop, undisturbed, tmp_path):
    folder = copy(shop, tmp_path)
    rng = np.random.default_rng(0)
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, str(folder), ""], stdout=subprocess.PIPE, text=True
        )
        process.stdout.readline()
        time.sleep(float(rng.uniform(0.02, 0.6)))
        process.kill()
        process.communicate()
    assert finish(folder) == undisturbed


def test_a_torn_snapshot_is_passed_over(shop, undisturbed, tmp_path):
    folder = copy(shop, tmp_path)
    finish(folder)
    newest = sorted((folder / "learner").glob("*.lser"))[-1]
    newest.write_bytes(newest.read_bytes()[:-100])
    assert finish(folder) == undisturbed


def test_a_published_policy_is_the_same_again(shop, tmp_path):
    sent = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        folder = copy(shop, tmp_path / name)
        reader, outbox = SqliteReader(folder), Nowhere()
        learning = Learning(FolderShelf(folder), reader, outbox)
        while learning.step(11 if name == "a" else 5000):
            pass
        reader.close()
        files = sorted(path for path in (folder / "policies").rglob("*.lser"))
        sent.append((outbox.sent, [path.read_bytes() for path in files]))
    assert sent[0] == sent[1]
    assert len(sent[0][1]) > 4


def test_pace_is_lowered_by_an_event_and_a_replay_does_the_same(tmp_path):
    folder = recorded(tmp_path / "shop", pages=200, lag_limit=100)
    log, reader = SqliteLog(folder), SqliteReader(folder)
    learning = Learning(FolderShelf(folder), reader, FolderOutbox(folder))
    for _ in range(1_000):
        for path, entry in waiting(folder):  # the writer's part
            log.append(entry)
            path.unlink()
        if not learning.step(50) and learning.cursor == log.head and not waiting(folder):
            break
    log.close()
    paces = [orjson.loads(event.body) for event in reader.of_kind("pace")]
    assert paces[0]["pace"] == 0.5
    assert paces[-1]["pace"] == 1.0  # caught up again
    found = state(learning)
    reader.close()
    for file in (folder / "learner").glob("*"):
        file.unlink()
    again = finish(folder)
    assert again[0]["lser"]["updates"] == found[0]["lser"]["updates"] < 200
    assert again[0] == found[0]


class Slow(Nowhere):
    """An outbox whose events reach the log late."""

    def arrive(self, log):
        log.append(*(Entry(*event) for event in self.sent))
        self.sent.clear()


def test_a_change_of_pace_that_arrives_after_its_learner_died_is_the_one_its_heir_waits_for(
    tmp_path, monkeypatch
):
    folder = recorded(tmp_path / "shop", pages=200, lag_limit=100)
    log, reader = SqliteLog(folder), SqliteReader(folder)
    lag = 50  # too little to slow down, too much to speed up
    monkeypatch.setattr(reader, "head", lambda: learning.cursor + lag)
    late, mail = Slow(), Slow()
    learning = Learning(FolderShelf(folder), reader, late)
    while learning.cursor < 100:
        learning.step(7)
    late.arrive(log)
    lag = 101
    assert learning.step(7) == 0
    assert [kind for kind, _, _ in late.sent] == ["pace"]
    lag = 50
    learning = Learning(FolderShelf(folder), reader, mail)  # the heir, from a snapshot
    for _ in range(10):
        learning.step(9)
    late.arrive(log)
    mail.arrive(log)
    while learning.step(9) or mail.sent:
        mail.arrive(log)
    found = state(learning)
    assert learning.pace == 0.5
    log.close()
    reader.close()
    for file in (folder / "learner").glob("*"):
        file.unlink()
    again = finish(folder)
    assert again[0] == found[0]


def test_an_outbox_survives_its_reader(tmp_path):
    outbox = FolderOutbox(tmp_path)
    outbox.send("policy", "lser/odd name-1", b"1")
    outbox.send("policy", "lser/odd name-1", b"2")
    [(path, entry)] = waiting(tmp_path)
    assert entry == Entry("policy", "lser/odd name-1", b"2")
    path.unlink()
    assert waiting(tmp_path) == []


@pytest.mark.slow
def test_a_learner_in_a_process_is_started_again(tmp_path):
    shoppers = Shoppers(catalogue())
    with Recommender(
        catalogue(), tmp_path / "shop", features=2, settings=quick(), learner="process"
    ) as shop:
        process = shop.keeper._process

        def busy_until(holds):
            def after_a_visit():
                visit(shop, shoppers, 5, start=1_000_000 + shop.log.head)
                return holds()

            until(after_a_visit)

        busy_until(lambda: "lser-steady" in shop.books.arms.versions)
        os.kill(process.pid, signal.SIGKILL)
        busy_until(lambda: shop.keeper.restarts == 1)
        before = shop.books.arms.versions["lser-steady"].current
        busy_until(lambda: shop.books.arms.versions["lser-steady"].current > before)


@pytest.mark.slow
def test_a_learner_whose_server_is_gone_ends(shop, tmp_path):
    """Also where the server was killed before the learner had begun."""
    command = [sys.executable, "-m", "lser.online.learner_process", str(copy(shop, tmp_path))]
    process = subprocess.Popen([*command, "999999999"])  # nobody's child
    assert process.wait(timeout=LIMIT) == 0


def test_the_last_two_snapshots_stay(shop, tmp_path):
    folder = copy(shop, tmp_path)
    finish(folder, steps=7)
    assert len(list((folder / "learner").glob("*.lser"))) == 2

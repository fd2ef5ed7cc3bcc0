"""The faults of the online service: processes killed, disks full, logs locked, clocks jumping."""

import contextlib
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from drill import malformed, postgres
from drill.service import SETTINGS, Ledger, crowd, judged, running
from lser.online.folder_store import LEASE, FolderStore
from lser.online.learning import SNAPSHOTS, Learning
from lser.online.service.supervisor import Supervisor
from lser.online.sqlite_reader import FILE
from lser.online.store import Store, open_store

Count = tuple[int, list[str]]
OFTEN = {**SETTINGS, "snapshot_every": 0.2}
CLOCK = """
import random, time
real, shift = time.time, [0.0]
def wall():
    if random.random() < 0.05:
        shift[0] = random.uniform(-1e8, 1e8)
    return real() + shift[0]
time.time = wall
"""


class Nowhere:
    """An outbox and a shelf that keep nothing: a learner that starts anew and leaves no trace."""

    def send(self, kind: str, id: str, body: bytes) -> None:
        """Drop an event."""

    def save(self, room: str, number: int, tree: dict[str, Any]) -> None:
        """Drop a tree."""

    def load(self, room: str, number: int) -> dict[str, Any]:
        """There is none."""
        raise FileNotFoundError(room)

    def latest(self, room: str) -> dict[str, Any] | None:
        """There is none."""
        return None

    def forget(self, room: str, *, newest: int, keep: Any = ()) -> None:
        """There is nothing."""

    def report(self, status: dict[str, Any]) -> None:
        """Nobody asks."""

    def status(self) -> dict[str, Any]:
        """It said nothing."""
        return {}


class Kept(Nowhere):
    """A shelf that reads what is there and keeps nothing."""

    def __init__(self, store: Store) -> None:
        """Read from the shelf of `store`."""
        self.load, self.latest = store.shelf.load, store.shelf.latest  # type: ignore[method-assign]


def learned(store: Store, shelf: Any) -> Any:
    """The learner's whole state at the end of the log, comparable."""
    reader = store.reader()
    learning = Learning(shelf, reader, Nowhere(), own_pace=False)
    while learning.step(500):
        pass
    reader.close()
    parts = {name: _bits(learner.state()) for name, learner in learning.learners.items()}
    return parts, learning.cursor, learning.pages, learning.versions, learning.joins.state()


def _bits(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _bits(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_bits(value) for value in node]
    if hasattr(node, "numpy"):
        node = node.numpy()
    return (str(node.dtype), node.shape, node.tobytes()) if hasattr(node, "tobytes") else node


def verdict(store: Store, ledgers: Any) -> list[str]:
    """Whether the log bears out the clients, and the learner is the undisturbed one."""
    reader = store.reader()
    acknowledged, broken = judged(reader, ledgers)
    reader.close()
    if not acknowledged:
        broken.append("no request was acknowledged")
    if learned(store, Kept(store)) != learned(store, Nowhere()):
        broken.append("the learner is not the undisturbed one")
    return broken


def learner_pid(folder: Path) -> int | None:
    """Who holds the learner's lock, by the system's table of locks."""
    inode = os.stat(folder / LEASE).st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        if fields[5].endswith(f":{inode}"):
            return int(fields[4])
    return None


def kill(pid: int | None) -> bool:
    """SIGKILL a process; False where there is none."""
    with contextlib.suppress(ProcessLookupError):
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            return True
    return False


def _in_a_write(folder: Path, seconds: float = 3.0) -> bool:
    """Wait until a snapshot is being written."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(FileNotFoundError):
            if any(name.startswith(".") for name in os.listdir(folder)):
                return True
    return False


def kill_service(folder: Path, count: int) -> Count:
    """SIGKILL server and learner in turn under load, the learner inside its snapshots' writes."""
    chance, done, inside = random.Random(0), 0, 0
    shop = folder / "shop"
    with running(folder, settings=OFTEN) as (supervisor, port), crowd([port]) as ledgers:
        while done < count:
            time.sleep(chance.uniform(0.2, 1.2))
            if done % 2 == 0:
                done += kill(supervisor.pid)
                if not supervisor.wait_until_ready():
                    return done, ["the service did not come back"]
            elif (shop / LEASE).exists():
                hit = _in_a_write(shop / SNAPSHOTS)
                if kill(learner_pid(shop)):
                    done, inside = done + 1, inside + hit
        time.sleep(1.0)
    broken = verdict(FolderStore(shop), ledgers)
    if count >= 20 and not inside:
        broken.append("no kill fell into the write of a snapshot")
    return done, broken


@contextlib.contextmanager
def machines(folder: Path, address: str, servers: int = 2) -> Iterator[Any]:
    """So many servers and two learners over one database; yields supervisors, ports, learners."""
    with contextlib.ExitStack() as stack:
        shop = {"shop": address, "learner": "off", "settings": OFTEN}
        made = [stack.enter_context(running(folder, **shop)) for _ in range(servers)]
        command = [sys.executable, "-m", "lser.online.learner_process", address, "0"]
        learners = [subprocess.Popen(command) for _ in range(2)]
        try:
            yield [one for one, _ in made], [port for _, port in made], learners
        finally:
            for process in learners:
                process.kill()
                process.wait()


def kill_machines(folder: Path, count: int) -> Count:
    """Kill servers, learners and the database's connections under load."""
    if postgres.binaries() is None:
        return 0, []
    chance, done = random.Random(1), 0
    server = postgres.Server()
    try:
        address = server.address("shop")
        with (
            machines(folder, address) as (supervisors, ports, learners),
            crowd(ports) as ledgers,
        ):
            while done < count:
                time.sleep(chance.uniform(0.2, 1.2))
                done += _hit(chance.randrange(5), server, supervisors, learners, address)
            for supervisor in supervisors:
                if not supervisor.wait_until_ready():
                    return done, ["a service did not come back"]
            time.sleep(1.0)
        store = open_store(address)
        broken = verdict(store, ledgers)
        store.close()
        return done, broken
    finally:
        server.stop()


def _hit(
    what: int, server: postgres.Server, supervisors: list[Supervisor], learners: Any, address: str
) -> bool:
    """One fault; learners that ended are started again."""
    for place, process in enumerate(learners):
        if process.poll() is not None:
            command = [sys.executable, "-m", "lser.online.learner_process", address, "0"]
            learners[place] = subprocess.Popen(command)
    match what:
        case 0 | 1:
            return kill(supervisors[what % len(supervisors)].pid)
        case 2:  # who has the lease: the other one takes over
            return kill(server.holder("shop"))
        case 3:
            return server.cut() > 0
    server.kill_backend()
    return True


def fill_service(folder: Path, count: int) -> Count:
    """Let the server's files end at a limit: refused, not lost, and it goes on with room."""
    broken, chance = [], random.Random(2)
    with running(folder) as (supervisor, port), crowd([port]) as ledgers:
        log = folder / "shop" / f"{FILE}-wal"
        for number in range(count):
            pid = supervisor.pid or 0
            limits = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            room = log.stat().st_size + chance.randrange(0, 20_000)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (room, limits[1]))
            before = sum(ledger.retries for ledger in ledgers)
            end = time.monotonic() + 120  # a log that was just begun anew has room to fill first
            while sum(ledger.retries for ledger in ledgers) < before + 2:
                if time.monotonic() > end:
                    broken.append(f"full disk {number} refused nobody")
                    break
                time.sleep(0.02)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)
            if not _goes_on(ledgers):
                broken.append(f"no answer after full disk {number}")
        if supervisor.starts != 1:
            broken.append(f"the server was started {supervisor.starts} times")
    return count, broken + verdict(FolderStore(folder / "shop"), ledgers)


def lock_service(folder: Path, count: int) -> Count:
    """Hold the log's lock, sometimes longer than the server waits."""
    broken, chance = [], random.Random(3)
    with running(folder) as (supervisor, port), crowd([port]) as ledgers:
        for number in range(count):
            other = sqlite3.connect(folder / "shop" / FILE, isolation_level=None, timeout=5)
            other.execute("begin immediate")
            time.sleep(6.0 if number % 5 == 4 else chance.uniform(0.05, 1.0))
            other.execute("rollback")
            other.close()
            if not _goes_on(ledgers):
                broken.append(f"no answer after lock {number}")
        if supervisor.starts != 1:
            broken.append(f"the server was started {supervisor.starts} times")
    return count, broken + verdict(FolderStore(folder / "shop"), ledgers)


def jump_clocks(folder: Path, count: int) -> Count:
    """Let the wall clocks of server and learner jump by years, over restarts too."""
    (folder / "clock").mkdir(parents=True)
    (folder / "clock" / "sitecustomize.py").write_text(CLOCK)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder / "clock"), before]))
    try:
        with running(folder, settings=OFTEN) as (supervisor, port), crowd([port]) as ledgers:
            for _ in range(count):
                time.sleep(1.0)
                kill(supervisor.pid)
                if not supervisor.wait_until_ready() or not _goes_on(ledgers):
                    return count, ["the service did not come back"]
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
    return count, verdict(FolderStore(folder / "shop"), ledgers)


def fuzz_service(folder: Path, count: int) -> Count:
    """Malformed requests by the service's own description: no crash, no dishonest 5xx."""
    seen, broken = malformed.fuzz(folder, count)
    return sum(seen.values()), broken


def _goes_on(ledgers: list[Ledger], more: int = 20, seconds: float = 30.0) -> bool:
    """Whether so many more requests are acknowledged within a time."""
    end = time.monotonic() + seconds
    wanted = sum(map(Ledger.acknowledged, ledgers)) + more
    while sum(map(Ledger.acknowledged, ledgers)) < wanted:
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True

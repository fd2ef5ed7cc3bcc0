"""``python -m drill.containers``: faults for the containers of ``deploy/compose.yaml``.

They must be up, the shop new, and the drill as root on their machine, with DB_PASSWORD set as it
was for them:  ``docker compose up --build --detach --scale learn=2``. At the end servers and
learners are stopped.
"""

import argparse
import http.client
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

from drill.online import verdict
from drill.service import Ledger, crowd
from lser.online import Recommender
from lser.online.store import open_store

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
DOOR, SERVERS = 8080, (8081, 8082)
FAULTS = ("serve-1", "serve-2", "serve-1 hangs", "learn", "db", "both servers", "all at once")
QUICK = {"window": 0.5, "publish_every": 0.5, "snapshot_every": 1.0, "learning_starts": 50}


class Engine:
    """The containers of the compose file, as an engine's command shows them."""

    def __init__(self, command: str, password: str) -> None:
        """Ask `command`, docker or podman."""
        self._command = command
        os.environ["PGPASSWORD"] = password  # where psycopg looks for it
        [database] = self.ids("db")
        networks = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        self.address = f"postgresql://lser@{self._ask('inspect', '-f', networks, database)}/lser"

    def _ask(self, *words: str) -> str:
        done = subprocess.run([self._command, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def ids(self, service: str) -> list[str]:
        """The running containers of a service."""
        label = f"label=com.docker.compose.service={service}"
        return self._ask("ps", "-q", "--filter", label).split()

    def kill(self, container: str) -> None:
        """SIGKILL the first process, and so all of them; the engine is not asked and restarts."""
        os.kill(int(self._ask("inspect", "-f", "{{.State.Pid}}", container)), signal.SIGKILL)

    def holder(self) -> str:
        """The learner with the lease; "" where none has it."""
        import psycopg

        try:
            with psycopg.connect(self.address, connect_timeout=3) as connection:
                row = connection.execute(
                    "select holder from lser.lease where until > clock_timestamp()"
                ).fetchone()
        except psycopg.OperationalError:
            return ""
        return str(row[0]) if row else ""

    def hang(self, container: str, seconds: float) -> None:
        """Stop all processes of a container for a while."""
        self._ask("pause", container)
        time.sleep(seconds)
        self._ask("unpause", container)

    def stop(self, *services: str) -> None:
        """End services in peace; the engine does not restart them."""
        self._ask("stop", *(one for service in services for one in self.ids(service)))

    def hit(self, fault: str) -> None:
        """Kill a service, both servers, or everything but the door; or let a server hang."""
        if fault == "serve-1 hangs":
            self.hang(self.ids("serve-1")[0], 20.0)
            return
        match fault:
            case "learn":
                host = self.holder().partition("/")[0]
                targets = [one for one in self.ids("learn") if one.startswith(host)]
            case "both servers":
                targets = self.ids("serve-1") + self.ids("serve-2")
            case "all at once":
                targets = [c for s in ("db", "serve-1", "serve-2", "learn") for c in self.ids(s)]
            case _:
                targets = self.ids(fault)
        if not targets:
            raise RuntimeError(f"no container to kill for {fault!r}")
        for target in targets:
            self.kill(target)


def waited(done: Callable[[], object], seconds: float = 120.0) -> float:
    """Seconds until `done`."""
    began = time.monotonic()
    while not done():
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"not within {seconds} s")
        time.sleep(0.02)
    return time.monotonic() - began


def ready(port: int) -> bool:
    """Whether the server behind a port answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, http.client.HTTPException):
        return False


def round_of(engine: Engine, fault: str, ledgers: Sequence[Ledger]) -> str:
    """One fault, and what the clients and the learner saw of it."""
    before = [(ledger.acknowledged(), ledger.retries) for ledger in ledgers]
    for ledger in ledgers:
        ledger.longest = 0.0
    had, began = engine.holder(), time.monotonic()
    engine.hit(fault)
    taken = waited(lambda: engine.holder() not in ("", had)) if fault == "learn" else 0.0
    for ledger, (acknowledged, _) in zip(ledgers, before, strict=True):
        waited(lambda ledger=ledger, goal=acknowledged + 50: ledger.acknowledged() >= goal)  # type: ignore[misc]
    waited(lambda: all(map(ready, SERVERS)))
    back = time.monotonic() - began
    time.sleep(3.0)  # the door tries a server again 2 s after it failed
    answered = sum(map(Ledger.acknowledged, ledgers)) - sum(a for a, _ in before)
    refused = sum(ledger.retries for ledger in ledgers) - sum(r for _, r in before)
    longest = max(ledger.longest for ledger in ledgers)
    words = f"{fault:14}{answered:7} acknowledged{refused:5} refused, longest wait {longest:5.1f} s"
    words += f", all back after {back:5.1f} s"
    return words + (f", lease taken after {taken:.1f} s" if taken else "")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m drill.containers", description=__doc__)
    parser.add_argument("--engine", default="docker", help="docker or podman")
    parser.add_argument("--rounds", type=int, default=2, help="of every fault")
    options = parser.parse_args()
    engine = Engine(options.engine, os.environ["DB_PASSWORD"])
    with Recommender.open(engine.address, learner="off") as shop:
        shop.change(QUICK)
    token = (DEPLOY / "secrets" / "writer").read_text().strip()
    with crowd([DOOR], token=token, features=0) as ledgers:
        waited(lambda: min(map(Ledger.acknowledged, ledgers)) > 100)
        for fault in FAULTS * options.rounds:
            print(round_of(engine, fault, ledgers), flush=True)
    engine.stop("serve-1", "serve-2", "learn")  # the log stands still
    store = open_store(engine.address)
    reader = store.reader()
    policies = sum(1 for _ in reader.of_kind("policy"))
    reader.close()
    broken = verdict(store, ledgers)
    store.close()
    print(f"{sum(map(Ledger.acknowledged, ledgers))} acknowledged, {policies} policies")
    print("\n".join(broken[:20]) or "nothing lost, no page changed, the learner the same")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

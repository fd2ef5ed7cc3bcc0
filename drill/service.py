"""A running service, and clients that keep their own ledgers of what it acknowledged."""

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lser.online.item_files import Table
from lser.online.service.server import Options
from lser.online.service.supervisor import Supervisor

SETTINGS: dict[str, Any] = {
    "features": 2, "window": 0.3, "publish_every": 0.2, "cold": "none", "learning_starts": 20,
    "batch_size": 16, "arms": [["lser", 0.5], ["bandit", 0.3], ["random", 0.2]],
}  # fmt: skip


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def write_items(path: Path, count: int = 60, dim: int = 4) -> Table:
    """A CSV of random items, and what it holds."""
    vectors = np.random.default_rng(0).standard_normal((count, dim)).astype(np.float32)
    lines = ["id," + ",".join(f"v{n}" for n in range(dim)) + ",kind"]
    for number, row in enumerate(vectors.tolist()):
        lines.append(",".join([str(number), *map(repr, row), "odd" if number % 2 else "even"]))
    path.write_text("\n".join(lines) + "\n")
    return Table([str(n) for n in range(count)], vectors, None)


class Client:
    """One keep-alive connection."""

    def __init__(self, port: int, token: str | None = None) -> None:
        """Speak plain HTTP to a port of this machine."""
        self._token = token
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def raw(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, Any]:
        """Status, body and headers of an answer."""
        headers = dict(headers or {})
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read(), answer.headers

    def __call__(self, method: str, path: str, value: Any = None) -> tuple[int, Any]:
        """Status and value of an answer."""
        body = b"" if value is None else json.dumps(value).encode()
        status, text, _ = self.raw(method, path, body)
        return status, json.loads(text) if text[:1] in (b"{", b"[") else text.decode()

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


@contextlib.contextmanager
def running(folder: Path, **options: Any) -> Iterator[tuple[Supervisor, int]]:
    """A supervised service in processes of its own; yields the supervisor and its port."""
    folder.mkdir(parents=True, exist_ok=True)
    items = folder / "items.csv"
    if not items.exists():
        write_items(items)
    port = options.pop("port", None) or free_port()
    shop = {"shop": str(folder / "shop"), "settings": SETTINGS}
    asked = Options(items=items, port=port, **{**shop, **options})
    supervisor = Supervisor(asked, longest_pause=0.5)  # it is killed again and again
    thread = threading.Thread(target=supervisor.run)
    thread.start()
    try:
        assert supervisor.wait_until_ready(), "the service did not start"
        yield supervisor, port
    finally:
        supervisor.stop()
        thread.join(timeout=60)
        assert not thread.is_alive()


class Ledger(threading.Thread):
    """A client that writes down what was acknowledged, and retries what was not."""

    def __init__(
        self,
        name: str,
        ports: Sequence[int],
        stop: threading.Event,
        token: str | None,
        features: int,
    ) -> None:
        """Ask any of `ports` until `stop`, with so many features of the visitor."""
        super().__init__()
        self.label, self.ports, self.stop = name, list(ports), stop
        self.token, self.features = token, features
        self.pages: dict[str, list[str]] = {}
        self.reports: set[str] = set()
        self.wrong: list[str] = []
        self.retries = self.turn = 0
        self.longest = 0.0  # seconds from the first asking to the answer
        self._client: Client | None = None

    def run(self) -> None:
        """Pages, reports on every other one, and now and then an old page once more."""
        number = 0
        while not self.stop.is_set():
            id = f"{self.label}-{number}"
            page = self._page(id, number)
            if page is not None and number % 2:
                report = {"id": f"report-{id}", "page": id, "clicks": page[:1]}
                if self.insist("/feedback", report) is not None:
                    self.reports.add(f"report-{id}")
            if number and number % 7 == 0:
                self._page(f"{self.label}-{number // 2}", number // 2)
            number += 1
        self._hang_up()

    def _page(self, id: str, number: int) -> list[str] | None:
        body: dict[str, Any] = {"id": id, "user": self.label, "k": 4}
        body["features"] = [0.1, number % 7 / 7][: self.features]
        answer = self.insist("/recommend", body)
        if answer is None:
            return None
        items: list[str] = answer["items"]
        if self.pages.setdefault(id, items) != items:
            self.wrong.append(id)
        return items

    def acknowledged(self) -> int:
        """Pages and reports that were answered with 200."""
        return len(self.pages) + len(self.reports)

    def insist(self, path: str, body: dict[str, Any]) -> Any:
        """Ask until there is an answer: the same id, however often, whichever server answers."""
        began = time.monotonic()
        while not self.stop.is_set():
            try:
                if self._client is None:
                    self.turn += 1
                    self._client = Client(self.ports[self.turn % len(self.ports)], self.token)
                status, answer = self._client("POST", path, body)
                if status == 200:
                    self.longest = max(self.longest, time.monotonic() - began)
                    return answer
            except (OSError, ValueError, http.client.HTTPException):
                pass
            self._hang_up()
            self.retries += 1
            time.sleep(0.05)
        return None

    def _hang_up(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


@contextlib.contextmanager
def crowd(
    ports: Sequence[int], count: int = 4, *, token: str | None = None, features: int = 2
) -> Iterator[list[Ledger]]:
    """Clients at work; on leaving, they stop."""
    stop = threading.Event()
    ledgers = [Ledger(f"c{n}", ports, stop, token, features) for n in range(count)]
    for ledger in ledgers:
        ledger.start()
    try:
        yield ledgers
    finally:
        stop.set()
        for ledger in ledgers:
            ledger.join()


def judged(reader: Any, ledgers: Sequence[Ledger]) -> tuple[int, list[str]]:
    """What was acknowledged, and every way in which the log does not bear it out."""
    import orjson

    logged: dict[str, list[str]] = {}
    reports: set[str] = set()
    broken, times, cursor = [], 0.0, 0
    while events := reader.read(cursor):
        cursor = events[-1].seq
        for event in events:
            if event.at < times:
                broken.append(f"time went back at event {event.seq}")
            times = event.at
            known = logged if event.kind == "decision" else reports
            if event.kind in ("decision", "feedback") and event.id in known:
                broken.append(f"{event.kind} {event.id} is in the log twice")
            if event.kind == "decision":
                logged[event.id] = orjson.loads(event.body)["items"]
            elif event.kind == "feedback":
                reports.add(event.id)
    acknowledged = 0
    for ledger in ledgers:
        acknowledged += ledger.acknowledged()
        broken += [f"page {id} changed between two answers" for id in ledger.wrong]
        lost = [id for id, items in ledger.pages.items() if logged.get(id) != items]
        broken += [f"page {id} is lost, or not as it was shown" for id in lost]
        broken += [f"report {id} is lost" for id in ledger.reports - reports]
    return acknowledged, broken

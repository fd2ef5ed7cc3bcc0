"""A running service for the tests, and a client that speaks plain HTTP to it."""

import contextlib
import http.client
import json
import socket
import threading

from shops import catalogue

from lser.online.item_files import Table
from lser.online.service.server import Options
from lser.online.service.supervisor import Supervisor

SETTINGS = {
    "features": 2, "window": 0.3, "publish_every": 0.2, "cold": "none", "learning_starts": 20,
    "batch_size": 16, "arms": [["lser", 0.5], ["bandit", 0.3], ["random", 0.2]],
}  # fmt: skip


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def write_items(path, count=60, dim=4):
    vectors = catalogue(count, dim)
    lines = ["id," + ",".join(f"v{n}" for n in range(dim)) + ",kind"]
    for number, row in enumerate(vectors.tolist()):
        lines.append(",".join([str(number), *map(repr, row), "odd" if number % 2 else "even"]))
    path.write_text("\n".join(lines) + "\n")
    return Table([str(n) for n in range(count)], vectors, None)


class Client:
    """One keep-alive connection."""

    def __init__(self, port, token=None):
        self._address, self._token = ("127.0.0.1", port), token
        self._connection = http.client.HTTPConnection(*self._address, timeout=30)

    def raw(self, method, path, body=b"", headers=None):
        headers = dict(headers or {})
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read(), answer.headers

    def __call__(self, method, path, value=None):
        body = b"" if value is None else json.dumps(value).encode()
        status, text, _ = self.raw(method, path, body)
        return status, json.loads(text) if text[:1] in (b"{", b"[") else text.decode()

    def close(self):
        self._connection.close()


@contextlib.contextmanager
def running(folder, **options):
    """A supervised service in processes of its own; yields the supervisor and its port."""
    folder.mkdir(parents=True, exist_ok=True)
    items = folder / "items.csv"
    if not items.exists():
        write_items(items)
    port = options.pop("port", None) or free_port()
    made = Options(
        shop=str(folder / "shop"), items=items, port=port, **{"settings": SETTINGS, **options}
    )
    supervisor = Supervisor(made)
    thread = threading.Thread(target=supervisor.run)
    thread.start()
    try:
        assert supervisor.wait_until_ready(), "the service did not start"
        yield supervisor, port
    finally:
        supervisor.stop()
        thread.join(timeout=60)
        assert not thread.is_alive()
